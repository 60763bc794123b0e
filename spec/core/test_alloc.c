/* SPDX-License-Identifier: MIT */
/*
 * test_alloc.c: a plan is built of layouts and stamps, sealed, encoded,
 * decoded, read and run, a scan is made and run, with every allocation failing
 * once: see alloc_helper.h.
 */
#include "alloc_helper.h"

/* ------------------------------------------------------- what is being tested */

/* Everything that one round makes, so that one place frees it. */
struct made {
	struct brim_layout *record, *header;
	struct brim_stamp *stamp;
	struct brim_plan *plan, *copy;
	struct brim_device *device, *reader;
	struct brim_run *run;
	struct brim_scan *scan;
	void *image;
};

static void made_free(struct made *m)
{
	brim_run_close(m->run);
	brim_device_close(m->device);
	brim_device_close(m->reader);
	brim_scan_free(m->scan);
	brim_plan_free(m->plan);
	brim_plan_free(m->copy);
	brim_stamp_free(m->stamp);
	brim_layout_free(m->header);
	brim_layout_free(m->record);
	free(m->image);
}

static int make_layouts(struct made *m, struct brim_err *e)
{
	const struct brim_field record[] = {
		{ "key", 0, 4, BRIM_BIG, 1, NULL, 7 },
		{ "tag", 4, 4, 0, 1, NULL, 0 },
	};
	struct brim_layout_options o = { .struct_bytes = sizeof(o),
					 .name = "record",
					 .size_bytes = 8 };
	struct brim_field header[] = {
		{ "magic", 0, 4, BRIM_BIG, 1, NULL, 0x4252494d },
		{ "crc", 4, 4, BRIM_LITTLE, 1, NULL, 0 },
		{ "number", 8, 8, BRIM_BIG, 1, NULL, 0 },
		{ "records", 16, 8, 0, 0, NULL, 0 },
	};

	TRY(brim_layout_create(&m->record, &o, record, 2, e));
	header[3].record = m->record;
	o.name = "header";
	o.size_bytes = 512;
	o.extensible = 1;
	o.checksum_field = "crc";
	o.checksum =
		(struct brim_checksum){ BRIM_CRC32C, ~0u, ~0u, BRIM_LITTLE };
	return brim_layout_create(&m->header, &o, header, 4, e);
}

/* Enough of everything that each growing array grows. */
static int make_stamp(struct made *m, uint64_t count, struct brim_err *e)
{
	uint64_t k;

	TRY(brim_stamp_create(&m->stamp, e));
	for (k = 0; k < 10; k++) {
		TRY(brim_stamp_place(m->stamp, m->header, 4096 * k, 1024, e));
		TRY(brim_stamp_set_int(m->stamp, 4096 * k + 8, 8, BRIM_BIG, 5,
				       3, "number", e));
	}
	TRY(brim_stamp_region(m->stamp, 1024, 100, "bytes", e));
	TRY(brim_stamp_set_bytes(m->stamp, 1030, "abc", 3, e));
	return brim_stamp_seal(m->stamp, 0, count, e);
}

static int add_pieces(struct made *m, struct brim_err *e)
{
	int ret, k;

	TRY(brim_plan_create(&m->plan, "plan", 1u << 30, e));
	TRY(brim_plan_set_note(m->plan, "made by", "nobody", e));
	TRY(brim_plan_set_note(m->plan, "made by", "test_alloc", e));
	TRY(brim_plan_phase(m->plan, "erase", e));
	for (k = 0; k < 20; k++)
		TRY(brim_plan_zero(m->plan, 4096 * (uint64_t)k, 4096, "old",
				   e));
	TRY(brim_plan_phase(m->plan, "groups", e));
	for (k = 0; k < 2; k++) {
		TRY(make_stamp(m, k ? 1 : 40, e));
		ret = brim_plan_each(m->plan, m->stamp, 0, 1u << 20,
				     k ? "first" : "groups", 1, e);
		m->stamp = NULL;
		TRY(ret);
	}
	TRY(brim_plan_zero(m->plan, 1u << 29, 1u << 20, "log", e));
	return brim_plan_seal(m->plan, e);
}

static int use_image(struct made *m, struct brim_err *e)
{
	struct brim_run_options o = { .struct_bytes = sizeof(o),
				      .engine = "sync",
				      .threads = 1,
				      .queue_depth = 4 };
	uint8_t buf[4096];
	size_t len;

	TRY(brim_image_encode(m->plan, &m->image, &len, e));
	TRY(brim_image_decode(&m->copy, m->image, len, e));
	TRY(brim_plan_read(m->copy, 3u << 20, sizeof(buf), buf, e));
	TRY(brim_device_open_plan(&m->reader, m->copy, e));
	TRY(brim_device_read(m->reader, 0, sizeof(buf), buf, e));
	TRY(brim_run_open(&m->run, m->plan, m->reader, BRIM_RUN_VERIFY, &o, e));
	TRY(brim_run_step(m->run, 0, NULL, e));
	brim_run_close(m->run);
	m->run = NULL;
	return 0;
}

/* Some of everything that a scan can gather. */
static int gather(struct brim_scan *s, struct brim_err *e)
{
	const struct brim_scan_field f = { 8, 8, BRIM_BIG, "header", "number" };
	const struct brim_affine v[] = { { 0, 0 }, { 1 << 20, 3 } };
	const struct brim_scan_test range = { BRIM_SCAN_RANGE, v, 2 };
	struct brim_scan_accumulator a = { .struct_bytes = sizeof(a),
					   .name = "n" };

	TRY(brim_scan_expect(s, &f, &range, e));
	TRY(brim_scan_expect_bytes(s, 0, "BRIM", 4, "header", "magic", e));
	for (a.kind = BRIM_SCAN_SUM; a.kind <= BRIM_SCAN_HISTOGRAM; a.kind++) {
		a.test.rule = BRIM_SCAN_ANY;
		if (a.kind == BRIM_SCAN_COUNT)
			a.test = range;
		TRY(brim_scan_accumulate(s, &f, &a, e));
	}
	return brim_scan_column(s, &f, e);
}

static int use_scan(struct made *m, struct brim_err *e)
{
	struct brim_run_options o = { .struct_bytes = sizeof(o),
				      .engine = "sync",
				      .threads = 1,
				      .queue_depth = 4 };

	struct brim_scan_range range = { 0, 1u << 20, 0, 40 };
	struct brim_scan_rows rows = { .struct_bytes = sizeof(rows) };
	int ret;

	TRY(brim_scan_create(&m->scan, e));
	TRY(brim_scan_expect_layout(m->scan, m->header, 0, 1024, e));
	TRY(brim_scan_expect_int(m->scan, 8, 8, BRIM_BIG, 5, 3, "header",
				 "number", e));
	TRY(gather(m->scan, e));
	TRY(brim_scan_open(&m->run, m->scan, m->reader, &range, &o, e));
	TRY(brim_scan_collect(m->run, 16, e));
	while ((ret = brim_run_step(m->run, 0, NULL, e)) == 1)
		while (brim_scan_take(m->run, 9, &rows))
			;
	TRY(ret);
	brim_run_close(m->run);
	m->run = NULL;
	return 0;
}

static int write_null(struct made *m, const char *engine, struct brim_err *e)
{
	struct brim_run_options o = { .struct_bytes = sizeof(o),
				      .engine = engine,
				      .queue_depth = 8 };

	TRY(brim_device_open_null(&m->device, 1u << 30, e));
	TRY(brim_run_open(&m->run, m->plan, m->device, BRIM_RUN_WRITE, &o, e));
	TRY(brim_run_step(m->run, 0, NULL, e));
	brim_run_close(m->run);
	brim_device_close(m->device);
	m->run = NULL;
	m->device = NULL;
	return 0;
}

static int everything(struct made *m, struct brim_err *e)
{
	TRY(make_layouts(m, e));
	TRY(add_pieces(m, e));
	TRY(write_null(m, "null", e));
	TRY(write_null(m, "fault:short=512,op=write,inner=null", e));
	TRY(use_image(m, e));
	return use_scan(m, e);
}

/* Image files: their path, and a file that is opened for writing. */
static char image_path[256], target_path[256];

static int files(struct made *m, struct brim_err *e)
{
	struct brim_device_options o = { .struct_bytes = sizeof(o),
					 .flags = BRIM_DEVICE_WRITE |
						  BRIM_DEVICE_CREATE,
					 .min_size_bytes = 1u << 20 };

	TRY(make_layouts(m, e));
	TRY(add_pieces(m, e));
	TRY(brim_image_save(m->plan, image_path, e));
	TRY(brim_image_load(&m->copy, image_path, e));
	TRY(brim_device_open(&m->reader, image_path, NULL, e));
	return brim_device_open(&m->device, target_path, &o, e);
}

static int everything_round(struct brim_err *e)
{
	struct made m = { 0 };
	int ret = everything(&m, e);

	made_free(&m);
	return ret;
}

static int files_round(struct brim_err *e)
{
	struct made m = { 0 };
	int ret;

	unlink(image_path);
	unlink(target_path);
	ret = files(&m, e);
	made_free(&m);
	return ret;
}

int main(void)
{
	const char *dir = getenv("TMPDIR");

	tested = pthread_self();
	snprintf(image_path, sizeof(image_path), "%s/test_alloc.%ld.brim",
		 dir ? dir : "/tmp", (long)getpid());
	snprintf(target_path, sizeof(target_path), "%s/test_alloc.%ld.img",
		 dir ? dir : "/tmp", (long)getpid());
	loop("plans, images, runs and scans", everything_round);
	loop("files", files_round);
	unlink(image_path);
	unlink(target_path);
	return tap_end();
}
