/* SPDX-License-Identifier: MIT */
/*
 * test_overlay_hostile.c: overlay files that are not what they were: bits that
 * flipped, cut files, newer ones, and files made with malice. SEED=n repeats a
 * run.
 */
#include "overlay_helper.h"

static void write_file(const char *path, const void *bytes, size_t len)
{
	make(path, 0, "", 0);
	if (len)
		make(path, (int64_t)len, bytes, len);
}

static uint8_t *read_file(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint8_t *p;

	if (fd < 0 || fstat(fd, &st) < 0)
		exit(1);
	p = malloc((size_t)st.st_size);
	*len = (size_t)st.st_size;
	if (!p || read(fd, p, *len) != (ssize_t)*len)
		exit(1);
	close(fd);
	return p;
}

/* The checksum of a block that has one made right: who attacks can do that. */
static void forge(uint8_t *block)
{
	bool is_head = !memcmp(block, "brimovl", 8);
	size_t at = is_head ? 12 : 4;

	if (!is_head && memcmp(block, "BOVP", 4))
		return;
	memset(block + at, 0, 4);
	brim__store(block + at, 4, BRIM_LITTLE,
		    ~brim_crc(BRIM_CRC32C, 0xffffffffu, block, 4096));
}

/* The same for all blocks, each page following on the one before. */
static void forge_all(uint8_t *file, size_t len)
{
	uint64_t chain = 0;
	bool has = false;
	size_t k;

	for (k = 0; k + 4096 <= len; k += 4096) {
		uint8_t *page = file + k;
		bool is_page = !memcmp(page, "BOVP", 4);
		uint32_t crc;

		if (is_page && has)
			brim__store(page + 32, 8, BRIM_LITTLE, chain);
		forge(page);
		if (!is_page)
			continue;
		crc = (uint32_t)brim__load(page + 4, 4, BRIM_LITTLE);
		chain = (uint64_t)crc << 32 |
			brim_crc(BRIM_CRC32, 0xffffffffu, page, 4096);
		has = true;
	}
}

/* Opens and, should that work, uses it in all ways. */
static int try_all(void)
{
	static uint8_t buf[VOLUME_BYTES];
	struct brim_device_extent x;
	struct brim_device *d;
	uint64_t at;
	int ret = overlay_open(&d, 0);

	if (ret < 0)
		return ret;
	brim_device_read(d, 0, VOLUME_BYTES, buf, NULL);
	for (at = 0; at < VOLUME_BYTES; at += x.len_bytes)
		if (brim_device_extent(d, at, &x, NULL) < 0 || !x.len_bytes)
			abort();
	brim_device_write(d, 100, 100000, buf, NULL);
	brim_device_zero(d, 300000, 100000, NULL);
	brim_device_flush(d, NULL);
	brim_device_close(d);
	return 0;
}

static bool is_answer(int ret)
{
	return ret == 0 || ret == -EILSEQ || ret == -EINVAL ||
	       ret == -ENOTSUP || ret == -EUCLEAN;
}

static uint8_t *used_overlay(size_t *len)
{
	static uint8_t buf[VOLUME_BYTES];
	uint64_t seed = 8, k;
	struct brim_device *d;

	make_base();
	d = overlay_must(BRIM_OVERLAY_CREATE);
	for (k = 0; k < 400; k++) {
		struct step s = random_step(&seed, VOLUME_BYTES);

		s.len = BRIM__MIN(s.len, 9000);
		if (s.op != OP_READ)
			device_step(d, &s, NULL, buf);
	}
	brim_device_close(d);
	return read_file(overlay_path, len);
}

/* One flipped bit in what describes: told of, or of no consequence. */
static void test_flips(void)
{
	size_t len, k, told = 0, flips = 0;
	uint8_t *file = used_overlay(&len);
	bool good = true;

	for (k = 0; k < len && good; k += 4096) {
		size_t at = k + (k / 4096 * 37) % 4096;
		int ret;

		if (memcmp(file + k, "brimovl", 8) &&
		    memcmp(file + k, "BOVP", 4))
			continue;
		file[at] ^= 4;
		write_file(overlay_path, file, len);
		ret = try_all();
		file[at] ^= 4;
		flips++;
		told += ret == -EILSEQ;
		good = k < 8192 ? ret == 0 : ret == -EILSEQ;
	}
	ok(good && flips > 20, "a flipped bit in the map is told of",
	   "%zu of %zu, block %zu: %s", told, flips, k / 4096, err.msg);
	write_file(overlay_path, file, len / 2);
	ok(try_all() == -EILSEQ && strstr(err.msg, "damaged"), "cut in half",
	   "%s", err.msg);
	memset(file, 1, 8);
	memset(file + 4096, 1, 8);
	write_file(overlay_path, file, len);
	ok(try_all() == -EILSEQ, "no headers", "%s", err.msg);
	free(file);
}

static void test_newer(void)
{
	size_t len, k;
	uint8_t *file = used_overlay(&len);

	for (k = 0; k < 2; k++) {
		brim__store(file + 4096 * k + 8, 4, BRIM_LITTLE, 2);
		forge(file + 4096 * k);
	}
	write_file(overlay_path, file, len);
	ok(try_all() == -ENOTSUP && strstr(err.msg, "newer"), "a newer version",
	   "%s", err.msg);
	free(file);
}

/* Changed with malice: the numbers people would try, checksums right. */
static void test_hostile(uint64_t seed)
{
	static const uint64_t NUMBERS[] = {
		0,
		1,
		2,
		63,
		64,
		65,
		255,
		0x7fffffff,
		0xffffffff,
		UINT64_C(1) << 40,
		UINT64_C(1) << 51,
		(UINT64_C(1) << 51) - 1,
		INT64_MAX,
		(uint64_t)INT64_MAX + 1,
		UINT64_MAX,
	};
	size_t len, n, opened = 0;
	uint8_t *file = used_overlay(&len), *copy = malloc(len);
	int ret = 0;

	for (n = 0; n < 1000 && is_answer(ret); n++) {
		uint64_t changes = 1 + tap_below(&seed, 3);

		memcpy(copy, file, len);
		while (changes--) {
			uint8_t *block;
			size_t at = tap_below(&seed, 3) ? 64 : 512;

			do
				block = copy +
					tap_below(&seed, len / 4096) * 4096;
			while (memcmp(block, "brimovl", 8) &&
			       memcmp(block, "BOVP", 4));
			at = 8 + tap_below(&seed, at) / 4 * 4;
			brim__store(
				block + at, tap_below(&seed, 2) ? 8 : 4,
				BRIM_LITTLE,
				tap_below(&seed, 4)
					? NUMBERS[tap_below(
						  &seed, sizeof(NUMBERS) / 8)]
					: tap_random(&seed));
		}
		forge_all(copy, len);
		write_file(overlay_path, copy, len);
		ret = try_all();
		opened += ret == 0;
	}
	ok(is_answer(ret), "hostile files get an answer", "file %zu: %d %s", n,
	   ret, err.msg);
	printf("# %zu of %zu open\n", opened, n);
	free(copy);
	free(file);
}

int main(void)
{
	begin();
	test_flips();
	test_newer();
	test_hostile(tap_seed(22));
	return tap_end();
}
