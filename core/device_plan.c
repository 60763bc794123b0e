/* SPDX-License-Identifier: MIT */
/*
 * device_plan.c: a plan as a read-only device, whether it was built in this
 * process or loaded from an image file: what is read is rendered. Safe to read
 * from many threads, since sealed plans are immutable. Units: bytes.
 */
#include <errno.h>

#include "device.h"
#include "plan.h"

static int64_t plan_read(struct brim_device *d, void *buf, uint64_t len_bytes,
			 uint64_t off_bytes)
{
	int ret = brim_plan_read(d->plan, off_bytes, len_bytes, buf, NULL);

	return ret < 0 ? ret : (int64_t)len_bytes;
}

static int64_t plan_write(struct brim_device *d, const void *buf,
			  uint64_t len_bytes, uint64_t off_bytes)
{
	(void)d;
	(void)buf;
	(void)len_bytes;
	(void)off_bytes;
	return -EROFS;
}

static int plan_range(struct brim_device *d, uint64_t off_bytes,
		      uint64_t len_bytes)
{
	(void)d;
	(void)off_bytes;
	(void)len_bytes;
	return -EROFS;
}

static void plan_close(struct brim_device *d)
{
	brim_plan_free((struct brim_plan *)(uintptr_t)d->plan);
}

const struct brim__device_ops brim__device_plan_ops = {
	.read = plan_read,
	.write = plan_write,
	.zero = plan_range,
	.discard = plan_range,
	.close = plan_close,
};

/* The device takes over one hold on the plan. */
static void show_plan(struct brim_device *d, const struct brim_plan *p)
{
	d->ops = &brim__device_plan_ops;
	d->plan = p;
	d->info.kind = BRIM_KIND_IMAGE;
	d->info.size_bytes = brim_plan_size_bytes(p);
}

int brim__device_image_open(struct brim_device *d,
			    const struct brim_device_options *o,
			    struct brim_err *e)
{
	struct brim_plan *p;
	int ret;

	if (o->flags & BRIM_DEVICE_WRITE)
		return brim__errf(
			e, -EROFS, "open",
			"%s is a brim image, which is read-only; raw takes it "
			"for a plain file",
			d->shown);
	ret = brim_image_load(&p, d->info.path, e);
	if (ret < 0)
		return ret;
	show_plan(d, p);
	return brim__device_fit(d, o, e);
}

int brim_device_open_plan(struct brim_device **out, const struct brim_plan *p,
			  struct brim_err *e)
{
	struct brim_device *d;

	*out = NULL;
	d = brim__device_new(BRIM_KIND_IMAGE, brim_plan_name(p),
			     &brim__device_plan_ops);
	if (!d)
		return brim__err(e, -ENOMEM, "open", brim_plan_name(p));
	brim__plan_hold(p);
	show_plan(d, p);
	*out = d;
	return 0;
}
