/*
 * brim from C, without Lua: a small invented format with one header a group is
 * planned, written to a sparse file and verified.
 *
 *   cc -o embed examples/embed.c $(pkg-config --cflags --libs brim)
 *   ./embed /tmp/embed.img
 */
#include <brim.h>

#include <inttypes.h>
#include <stdio.h>

#define GROUPS 100000u
#define GROUP_BYTES (16u << 20)
#define HEADER_BYTES 4096u

static const struct brim_field fields[] = {
	{ .name = "magic",
	  .off_bytes = 0,
	  .width_bytes = 4,
	  .endian = BRIM_BIG,
	  .count = 1,
	  .value = 0x45424431 },
	{ .name = "number",
	  .off_bytes = 4,
	  .width_bytes = 4,
	  .endian = BRIM_BIG,
	  .count = 1 },
	{ .name = "crc",
	  .off_bytes = 8,
	  .width_bytes = 4,
	  .endian = BRIM_LITTLE,
	  .count = 1 },
	{ .name = "slots",
	  .off_bytes = 12,
	  .width_bytes = 4,
	  .endian = BRIM_BIG,
	  .count = 1021,
	  .value = -1 },
};

/* One header for each group, its number in it, a CRC32C over all of it. */
static int make_plan(struct brim_plan **plan, const struct brim_layout *header,
		     struct brim_err *e)
{
	struct brim_stamp *stamp;
	int ret;

	ret = brim_plan_create(plan, "embed", (uint64_t)GROUPS * GROUP_BYTES,
			       e);
	if (ret < 0)
		return ret;
	ret = brim_stamp_create(&stamp, e);
	if (ret < 0)
		return ret;
	ret = brim_stamp_place(stamp, header, 0, HEADER_BYTES, e);
	if (ret == 0)
		ret = brim_stamp_set_int(stamp, 4, 4, BRIM_BIG, 0, 1, "number",
					 e);
	if (ret == 0)
		ret = brim_stamp_seal(stamp, 0, GROUPS, e);
	if (ret < 0) {
		brim_stamp_free(stamp);
		return ret;
	}
	/* The plan owns the stamp from here on. */
	ret = brim_plan_each(*plan, stamp, 0, GROUP_BYTES, "headers", 1, e);
	return ret < 0 ? ret : brim_plan_seal(*plan, e);
}

static int run(const struct brim_plan *plan, struct brim_device *device,
	       enum brim_run_mode mode, struct brim_err *e)
{
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	struct brim_run *r;
	int ret;

	ret = brim_run_open(&r, plan, device, mode, NULL, e);
	if (ret < 0)
		return ret;
	do
		ret = brim_run_step(r, 100000000, &st, e);
	while (ret > 0);
	if (ret == 0)
		printf("%s %" PRIu64 " groups in %.3f s through %s, %" PRIu64
		       " differences\n",
		       mode == BRIM_RUN_WRITE ? "wrote" : "verified",
		       st.groups_done, (double)st.elapsed_ns / 1e9, st.engine,
		       st.mismatches);
	brim_run_close(r);
	return ret < 0 ? ret : st.mismatches > 0;
}

int main(int argc, char **argv)
{
	struct brim_layout_options lo = {
		.struct_bytes = sizeof(lo),
		.name = "header",
		.size_bytes = HEADER_BYTES,
		.checksum_field = "crc",
		.checksum = { BRIM_CRC32C, 0xffffffff, 0xffffffff, BRIM_LITTLE }
	};
	struct brim_device_options dopt = {
		.struct_bytes = sizeof(dopt),
		.flags = BRIM_DEVICE_WRITE | BRIM_DEVICE_CREATE,
		.min_size_bytes = (uint64_t)GROUPS * GROUP_BYTES
	};
	struct brim_layout *header = NULL;
	struct brim_device *device = NULL;
	struct brim_plan *plan = NULL;
	struct brim_err e = { 0 };
	int ret;

	ret = brim_layout_create(&header, &lo, fields, 4, &e);
	if (ret == 0)
		ret = make_plan(&plan, header, &e);
	if (ret == 0)
		ret = brim_device_open(
			&device, argc > 1 ? argv[1] : "embed.img", &dopt, &e);
	if (ret == 0)
		ret = run(plan, device, BRIM_RUN_WRITE, &e);
	if (ret == 0)
		ret = run(plan, device, BRIM_RUN_VERIFY, &e);
	if (ret < 0)
		fprintf(stderr, "embed: %s\n", e.msg);
	brim_device_close(device);
	brim_plan_free(plan);
	brim_layout_free(header);
	return ret != 0;
}
