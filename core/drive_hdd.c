/* SPDX-License-Identifier: MIT */
/*
 * drive_hdd.c: the mechanics of a disk: seeks, rotation, rates by zone. Called
 * by drive.c and, for shingled disks, drive_smr.c. Integers only: the same
 * times everywhere. Bytes, nanoseconds.
 */
#include "drive.h"

#define NS_PER_S 1000000000u

uint64_t brim__drive_rate(const struct brim_drive *d, uint64_t off_bytes)
{
	uint64_t zones = BRIM__MAX(d->p.zones, 1);
	uint64_t zone = BRIM__MIN(off_bytes / d->zone_bytes, zones - 1);
	uint64_t fall = d->p.outer_bytes_per_s - d->p.inner_bytes_per_s;

	if (zones == 1)
		return d->p.outer_bytes_per_s - fall / 2;
	return d->p.outer_bytes_per_s - fall * zone / (zones - 1);
}

uint64_t brim__drive_transfer_ns(uint64_t len_bytes, uint64_t rate)
{
	unsigned __int128 ns;

	if (!rate)
		return 0;
	ns = ((unsigned __int128)len_bytes * NS_PER_S + rate - 1) / rate;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

/* The integer part of the square root. */
static uint64_t root(uint64_t n)
{
	uint64_t r = 0, bit = UINT64_C(1) << 62;

	while (bit > n)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (n >= r + bit) {
			n -= r + bit;
			r = (r >> 1) + bit;
		} else {
			r >>= 1;
		}
	}
	return r;
}

/*
 * Half of a seek's distance is spent accelerating and half braking, so that
 * its time goes with the root of it (Ruemmler, Wilkes: An introduction to disk
 * drive modeling, 1994); the settling time is in seek_min_ns.
 */
static uint64_t seek_ns(const struct brim_drive *d, uint64_t distance)
{
	/* The distance as a part of 2^48, its root as one of 2^24. */
	uint64_t part = (uint64_t)(((unsigned __int128)distance << 48) /
				   d->p.size_bytes);
	uint64_t span = d->p.seek_max_ns - d->p.seek_min_ns;

	return d->p.seek_min_ns + (span * root(part) >> 24);
}

static uint64_t rotate_ns(const struct brim_drive *d, uint64_t off, uint64_t t,
			  uint64_t track_bytes)
{
	uint64_t turn = d->p.rotation_ns, angle;

	if (!turn)
		return 0;
	angle = (uint64_t)((unsigned __int128)(off % track_bytes) * turn /
			   track_bytes);
	return (angle + turn - t % turn) % turn;
}

uint64_t brim__drive_position(struct brim_drive *d, uint64_t off, uint64_t t)
{
	uint64_t distance = off > d->head ? off - d->head : d->head - off;
	uint64_t track =
		(uint64_t)((unsigned __int128)brim__drive_rate(d, off) *
			   d->p.rotation_ns / NS_PER_S);
	uint64_t seek = 0, rotate;

	track = BRIM__MAX(track, 1);
	if (distance >= track) {
		seek = seek_ns(d, distance);
		d->st.seeks++;
		d->st.seek_bytes += distance;
	}
	rotate = rotate_ns(d, off, t + seek, track);
	d->st.seek_ns += seek;
	d->st.rotate_ns += rotate;
	d->head = off;
	return seek + rotate;
}

/*
 * What goes on where the head stands costs its transfer only, however late it
 * comes: drives read ahead, and gather writes, so that no revolution is lost.
 */
uint64_t brim__drive_media(struct brim_drive *d, const struct brim_drive_io *io,
			   uint64_t t)
{
	uint64_t transfer;

	if (d->last_op != (int)io->op || d->head != io->off_bytes)
		t += brim__drive_position(d, io->off_bytes, t);
	transfer = brim__drive_transfer_ns(io->len_bytes,
					   brim__drive_rate(d, io->off_bytes));
	d->st.transfer_ns += transfer;
	d->head = io->off_bytes + io->len_bytes;
	d->last_op = (int)io->op;
	return t + transfer;
}
