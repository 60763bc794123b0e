/* SPDX-License-Identifier: MIT */
/*
 * checksum.c: bare CRC registers over buffers and over runs of zeros. Called by
 * layout.c and stamp_code.c. ISA-L does the fast work where the build has it;
 * the table here is the fallback and the judge of it.
 *
 * Polynomials, reflected: CRC32C 0x82f63b78 (RFC 3720), CRC32 0xedb88320
 * (IEEE 802.3).
 */
#include <pthread.h>

#ifdef HAVE_ISAL
#include <isa-l.h>
#endif

#include "internal.h"

static uint32_t byte_table[2][256];
static pthread_once_t byte_table_once = PTHREAD_ONCE_INIT;

static uint32_t crc_poly(enum brim_checksum_kind kind)
{
	return kind == BRIM_CRC32 ? 0xedb88320u : 0x82f63b78u;
}

static void byte_table_fill(void)
{
	static const enum brim_checksum_kind kinds[] = { BRIM_CRC32C,
							 BRIM_CRC32 };
	int k, n, bit;

	for (k = 0; k < 2; k++) {
		for (n = 0; n < 256; n++) {
			uint32_t reg = (uint32_t)n;

			for (bit = 0; bit < 8; bit++)
				reg = reg & 1 ? reg >> 1 ^ crc_poly(kinds[k])
					      : reg >> 1;
			byte_table[kinds[k] - 1][n] = reg;
		}
	}
}

uint32_t brim_crc_portable(enum brim_checksum_kind kind, uint32_t reg,
			   const void *buf, size_t len_bytes)
{
	const uint8_t *p = buf;
	const uint32_t *t = byte_table[kind - 1];

	pthread_once(&byte_table_once, byte_table_fill);
	while (len_bytes--)
		reg = reg >> 8 ^ t[(reg ^ *p++) & 0xff];
	return reg;
}

uint32_t brim_crc(enum brim_checksum_kind kind, uint32_t reg, const void *buf,
		  size_t len_bytes)
{
#ifdef HAVE_ISAL
	const uint8_t *p = buf;

	/* ISA-L counts in int for one, in 64 bits for the other. */
	while (kind == BRIM_CRC32C && len_bytes > 0) {
		size_t part = BRIM__MIN(len_bytes, (size_t)1 << 30);

		/* Its prototype lacks const; it does not write. */
		reg = crc32_iscsi((unsigned char *)(uintptr_t)p, (int)part,
				  reg);
		p += part;
		len_bytes -= part;
	}
	if (kind == BRIM_CRC32C)
		return reg;
	/* This one inverts before and after; undo both. */
	return ~crc32_gzip_refl(~reg, p, len_bytes);
#else
	return brim_crc_portable(kind, reg, buf, len_bytes);
#endif
}

/* The product of two reflected polynomials modulo the CRC's. */
static uint32_t crc_multiply(uint32_t a, uint32_t b, uint32_t poly)
{
	uint32_t product = 0;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if (a & 0x80000000u)
			product ^= b;
		a <<= 1;
		b = b & 1 ? b >> 1 ^ poly : b >> 1;
	}
	return product;
}

uint32_t brim_crc_zeros(enum brim_checksum_kind kind, uint32_t reg,
			uint64_t len_bytes)
{
	uint32_t poly = crc_poly(kind);
	uint32_t power = 0x00800000u; /* x^8: one zero byte */

	/* reg * x^(8 len): square and multiply. */
	for (; len_bytes; len_bytes >>= 1) {
		if (len_bytes & 1)
			reg = crc_multiply(power, reg, poly);
		power = crc_multiply(power, power, poly);
	}
	return reg;
}
