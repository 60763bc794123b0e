/* SPDX-License-Identifier: MIT */
/*
 * test_drive_trace.c: block traces and replays from C: what is written is what
 * is read, more than 4 GiB become several records, hostile bytes end with an
 * error or the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "drive.h"
#include "tap.h"

static char path[] = "/tmp/brim-drive-XXXXXX";

static void test_round_trip(void)
{
	struct brim_drive_event in = { BRIM_DRIVE_TRIM,   7, 5, 9, 4096,
				       UINT64_C(10) << 30 };
	struct brim_drive_event x;
	struct brim_drive_writer *w;
	struct brim_drive_reader *r;
	uint64_t size = 0, end = 4096, n = 0;
	struct brim_err e = { 0 };

	brim_drive_writer_open(&w, path, 1ull << 40, &e);
	brim_drive_writer_add(w, &in);
	ok(brim_drive_writer_close(w, &e) == 0, "written", "%s", e.msg);
	brim_drive_reader_open(&r, path, &size, &e);
	while (brim_drive_reader_next(r, &x, &e) > 0) {
		if (x.op != in.op || x.stream != 7 || x.at_ns != 5 ||
		    x.took_ns != 9 || x.off_bytes != end)
			break;
		end += x.len_bytes;
		n++;
	}
	ok(size == 1ull << 40 && n == 3 && end == 4096 + in.len_bytes,
	   "10 GiB in three records", "%llu records to %llu",
	   (unsigned long long)n, (unsigned long long)end);
	brim_drive_reader_close(r);
}

static void test_full_disk(void)
{
	struct brim_drive_event x = { BRIM_DRIVE_READ, 0, 0, 0, 0, 1 };
	struct brim_drive_writer *w;
	struct brim_err e = { 0 };
	int k;

	if (brim_drive_writer_open(&w, "/dev/full", 1, &e) < 0) {
		skip("no room", "no /dev/full");
		return;
	}
	for (k = 0; k < 10000; k++)
		brim_drive_writer_add(w, &x);
	ok(brim_drive_writer_close(w, &e) == -ENOSPC && e.code == -ENOSPC,
	   "no room: said at the close", "%s", e.msg);
}

/* Random records after a right header, through every model. */
static void test_hostile(void)
{
	struct brim_drive_params p = {
		.struct_bytes = sizeof(p),
		.size_bytes = 1 << 30,
		.outer_bytes_per_s = 1 << 27,
		.inner_bytes_per_s = 1 << 26,
		.rotation_ns = 10000000,
		.zones = 7,
		.band_min_bytes = 1 << 20,
		.band_max_bytes = 3 << 20,
		.cache_bytes = 1 << 20,
		.cache_entries = 10,
	};
	uint64_t seed = tap_seed(11), rounds, size, k, bad = 0, events = 0;
	struct brim_drive_replay_options o = { .struct_bytes = sizeof(o),
					       .interval_ns = 1 };
	struct brim_drive_replay result;
	struct brim_drive_writer *w;
	struct brim_drive_reader *r;
	struct brim_drive *d;

	for (rounds = 0; rounds < 200; rounds++) {
		int fd, ret;

		brim_drive_writer_open(&w, path, 1, NULL);
		brim_drive_writer_close(w, NULL);
		fd = open(path, O_WRONLY | O_APPEND);
		for (k = 0; k < 64; k++) {
			uint64_t record[4];

			record[0] = tap_random(&seed) >> tap_below(&seed, 64);
			record[1] = tap_random(&seed) >> tap_below(&seed, 64);
			record[2] = tap_random(&seed) >> tap_below(&seed, 64);
			record[3] = (tap_random(&seed) & 0xffffffffffff) |
				    tap_below(&seed, 4) << 48;
			bad += write(fd, record, 32) != 32;
		}
		close(fd);
		p.model = rounds % BRIM_DRIVE_MODELS;
		bad += brim_drive_create(&d, &p, NULL) < 0;
		bad += brim_drive_reader_open(&r, path, &size, NULL) < 0;
		o.is_wrapped = (int)tap_below(&seed, 2);
		o.is_open_loop = (int)tap_below(&seed, 2);
		o.interval_ns = 1;
		ret = brim_drive_replay(d, r, &o, &result, NULL);
		bad += ret != 0 && ret != -EINVAL && ret != -EOVERFLOW;
		bad += result.bin_count > BRIM_DRIVE_BINS_MAX;
		events += result.events;
		brim_drive_replay_release(&result);
		brim_drive_reader_close(r);
		brim_drive_free(d);
	}
	ok(!bad && events > 100, "hostile records: an error or the end",
	   "%llu wrong, %llu events", (unsigned long long)bad,
	   (unsigned long long)events);
}

int main(void)
{
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	test_round_trip();
	test_full_disk();
	test_hostile();
	unlink(path);
	return tap_end();
}
