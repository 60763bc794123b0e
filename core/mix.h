/* SPDX-License-Identifier: MIT */
/*
 * mix.h: 64-bit mixing, from which filesets and streams draw all that they
 * draw: pure functions of what is put in, the same on every machine. The step
 * is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable
 * Pseudorandom Number Generators, OOPSLA 2014).
 */
#ifndef BRIM_MIX_H
#define BRIM_MIX_H

#include <stdint.h>

#define BRIM__GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t brim__mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A key for number n below another key. */
static inline uint64_t brim__mix_in(uint64_t key, uint64_t n)
{
	return brim__mix(key + BRIM__GOLDEN * (n + 1));
}

/* 0 .. n-1, from 64 random bits; n > 0. */
static inline uint64_t brim__mix_below(uint64_t bits, uint64_t n)
{
	return (uint64_t)((unsigned __int128)bits * n >> 64);
}

#endif /* BRIM_MIX_H */
