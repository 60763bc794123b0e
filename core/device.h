/* SPDX-License-Identifier: MIT */
/*
 * device.h: the inside of a device, for the engines and device_*.c only.
 */
#ifndef BRIM_DEVICE_H
#define BRIM_DEVICE_H

#include <sys/stat.h>

#include "internal.h"

/*
 * What kinds of device do differently. read and write move up to len bytes and
 * return how many, or -errno, like pread; they must be safe to call from many
 * threads at once (the sync engine does). zero, discard and flush return 0 or
 * -errno; NULL means -EOPNOTSUPP (flush: nothing to do).
 */
struct brim__device_ops {
	int64_t (*read)(struct brim_device *d, void *buf, uint64_t len_bytes,
			uint64_t off_bytes);
	int64_t (*write)(struct brim_device *d, const void *buf,
			 uint64_t len_bytes, uint64_t off_bytes);
	int (*zero)(struct brim_device *d, uint64_t off_bytes,
		    uint64_t len_bytes);
	int (*discard)(struct brim_device *d, uint64_t off_bytes,
		       uint64_t len_bytes);
	int (*flush)(struct brim_device *d);
	void (*close)(struct brim_device *d);
};

struct brim_device {
	const struct brim__device_ops *ops;
	struct brim_device_info info; /* info.path is owned */
	char shown[128];              /* the path as messages show it */
	int refs;                     /* see brim__device_hold */
	int fd;                       /* -1: none */
	/* The fallocate(2) mode by which BRIM__ZERO is done on fd. */
	int zero_mode;
	const struct brim_plan *plan; /* what an image device renders; held */
};

extern const struct brim__device_ops brim__device_fd_ops;
extern const struct brim__device_ops brim__device_plan_ops;
extern const struct brim__device_ops brim__device_null_ops;

/* A device of a kind, with sectors of 512 bytes and nothing behind it yet. */
struct brim_device *brim__device_new(enum brim_device_kind kind,
				     const char *path,
				     const struct brim__device_ops *ops);
/*
 * One more user: the device stays until brim_device_close has been called once
 * more. For what must not lose it in the middle, such as a run.
 */
void brim__device_hold(struct brim_device *d);

/*
 * The two ways to fill a new device from a path: a file or block device that
 * exists (st describes it) or shall be made (st is NULL), and an image file.
 * Options are whole and checked here. On failure the caller closes d.
 */
int brim__device_fd_open(struct brim_device *d, const struct stat *st,
			 const struct brim_device_options *o,
			 struct brim_err *e);
int brim__device_image_open(struct brim_device *d,
			    const struct brim_device_options *o,
			    struct brim_err *e);
/*
 * The last step of both: refuses a size below o->min_size_bytes and cuts it to
 * o->max_size_bytes.
 */
int brim__device_fit(struct brim_device *d, const struct brim_device_options *o,
		     struct brim_err *e);

/*
 * Whether most of many reads, the i-th at off_bytes + stride_bytes * i, would
 * wait for a disk: of a regular file that is read through the page cache and
 * does not lie there. Looks at some of them.
 */
bool brim__device_is_cold(const struct brim_device *d, uint64_t off_bytes,
			  uint64_t stride_bytes, uint64_t count);

/*
 * Why a target must not be written: -EBUSY mounted, swap, held or looped;
 * -EEXIST it carries a signature; 0 it may. Messages call it `shown`.
 */
int brim__device_probe_busy(const char *shown, const struct stat *st,
			    struct brim_err *e);
int brim__device_probe_signature(const char *shown, int fd, struct brim_err *e);

#endif /* BRIM_DEVICE_H */
