/* SPDX-License-Identifier: MIT */
/*
 * imgcmp.c: compares two files byte for byte, holes included, however large: a
 * range that is a hole in both is equal without being read. The judge of the
 * byte identity specs.
 *
 *   imgcmp A B [OFFSET:LENGTH ...]    ranges that may differ
 *
 * Prints the first differing offsets; exit 0 equal, 1 different, 2 trouble.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (1u << 20)
#define SHOWN_MAX 20

static int mask_count;
static struct { uint64_t from, to; } masks[1024];

static bool masked(uint64_t at)
{
	int i;

	for (i = 0; i < mask_count; i++)
		if (at >= masks[i].from && at < masks[i].to)
			return true;
	return false;
}

/* The next data at or behind `at`, or the end of the file. */
static uint64_t next_data(int fd, uint64_t at, uint64_t end)
{
	off_t n = lseek(fd, (off_t)at, SEEK_DATA);

	return n < 0 ? end : (uint64_t)n;
}

static void read_all(int fd, uint8_t *buf, size_t len, uint64_t off)
{
	memset(buf, 0, len);
	while (len > 0) {
		ssize_t n = pread(fd, buf, len, (off_t)off);

		if (n < 0) {
			perror("pread");
			exit(2);
		}
		if (n == 0)
			return;
		buf += n;
		len -= (size_t)n;
		off += (uint64_t)n;
	}
}

/* Compares one chunk; the number of differences that no mask excuses. */
static uint64_t compare(int a, int b, uint64_t off, size_t len, int *shown)
{
	static uint8_t x[CHUNK], y[CHUNK];
	uint64_t differences = 0;
	size_t k;

	read_all(a, x, len, off);
	read_all(b, y, len, off);
	if (!memcmp(x, y, len))
		return 0;
	for (k = 0; k < len; k++) {
		if (x[k] == y[k] || masked(off + k))
			continue;
		differences++;
		if ((*shown)++ < SHOWN_MAX)
			printf("%" PRIu64 " (0x%" PRIx64 "): %02x %02x\n",
			       off + k, off + k, x[k], y[k]);
	}
	return differences;
}

int main(int argc, char **argv)
{
	uint64_t at = 0, end, differences = 0, compared = 0;
	int shown = 0, i, a, b;
	struct stat sa, sb;

	if (argc < 3)
		return 2;
	for (i = 3; i < argc && mask_count < 1024; i++) {
		uint64_t off, len;

		if (sscanf(argv[i], "%" SCNu64 ":%" SCNu64, &off, &len) != 2)
			return 2;
		masks[mask_count].from = off;
		masks[mask_count++].to = off + len;
	}
	a = open(argv[1], O_RDONLY);
	b = open(argv[2], O_RDONLY);
	if (a < 0 || b < 0 || fstat(a, &sa) < 0 || fstat(b, &sb) < 0) {
		perror("open");
		return 2;
	}
	if (sa.st_size != sb.st_size) {
		printf("sizes differ: %" PRIu64 " %" PRIu64 "\n",
		       (uint64_t)sa.st_size, (uint64_t)sb.st_size);
		return 1;
	}
	end = (uint64_t)sa.st_size;
	while (at < end) {
		uint64_t da = next_data(a, at, end), db = next_data(b, at, end);
		size_t len = CHUNK;

		at = da < db ? da : db;
		if (at >= end)
			break;
		at -= at % 4096;
		len = end - at < len ? (size_t)(end - at) : len;
		differences += compare(a, b, at, len, &shown);
		compared += len;
		at += len;
	}
	printf("%" PRIu64 " bytes differ, %" PRIu64 " compared, the rest are holes in both\n",
	       differences, compared);
	return differences != 0;
}
