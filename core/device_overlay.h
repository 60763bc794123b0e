/* SPDX-License-Identifier: MIT */
/*
 * device_overlay.h: the inside of an overlay device, for device_overlay.c,
 * device_extent.c and overlay_commit.c.
 */
#ifndef BRIM_DEVICE_OVERLAY_H
#define BRIM_DEVICE_OVERLAY_H

#include "device.h"
#include "overlay.h"

struct brim__overlay_device {
	struct brim_device dev;    /* first: the ops cast back */
	struct brim_device *under; /* the base; held */
	struct brim__overlay *o;
};

extern const struct brim__device_ops brim__device_overlay_ops;

/* How a base is known again: kinds of hash in the overlay's header. */
enum {
	BRIM__OVERLAY_OF_PLAN = 1,  /* of the image file's bytes */
	BRIM__OVERLAY_OF_BYTES = 2, /* of the first and last 64 KiB */
};

bool brim__device_is_overlay(const struct brim_device *d);
struct brim__overlay_device *brim__overlay_device(struct brim_device *d);
int brim__overlay_know(struct brim_device *base, struct brim__overlay_base *out,
		       struct brim_err *e);

#endif /* BRIM_DEVICE_OVERLAY_H */
