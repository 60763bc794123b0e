/* SPDX-License-Identifier: MIT */
/*
 * brim_overlay.h: part of brim.h, which includes it and states the conventions.
 * Copy-on-write overlays over devices, and what a device holds where.
 */
#ifndef BRIM_OVERLAY_API_H
#define BRIM_OVERLAY_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- overlays */

/*
 * A copy-on-write overlay: a file that takes what is written to a device, in
 * blocks of 4 KiB, so that an image or an original can be changed and stays as
 * it is. It grows with what is written, whatever the volume's size; zeroed and
 * discarded ranges take an entry each. After brim_device_flush all that was
 * written before is there, whatever happens then; the file opens after any
 * crash, and shows what was flushed and perhaps some of what was not. Memory
 * is 24 to 48 bytes a written block as a rule, next to none where they were
 * written in order, and 200 at the very worst.
 *
 * Unlike other devices it may be read, written, zeroed, discarded and flushed
 * by any number of threads at once. Any range may be written.
 */
enum brim_overlay_flags {
	BRIM_OVERLAY_CREATE = 1 << 0,   /* make a missing file */
	BRIM_OVERLAY_READONLY = 1 << 1, /* several processes may have it */
	BRIM_OVERLAY_RESUME = 1 << 2,   /* accept one whose commit was cut
					   short: to commit it again */
};

/*
 * Lays the overlay in file `path` over a device, which is held until the
 * overlay is closed; closing flushes. The file remembers what it was made for
 * (the size, and a hash of the image, or of both ends of what is no image) and
 * goes with nothing else (-EINVAL). -EBUSY: another process writes to it;
 * -EILSEQ: no overlay, or damaged; -EUCLEAN: its commit was cut short.
 */
BRIM_API int brim_device_open_overlay(struct brim_device **out,
				      struct brim_device *base,
				      const char *path, uint32_t flags,
				      struct brim_err *e);

/*
 * Writes what the base of the overlay in file `path` was called into buf, the
 * last part of its path, and returns 1; 0 for what is no overlay. -EILSEQ: a
 * damaged one.
 */
BRIM_API int brim_overlay_base_name(const char *path, char *buf,
				    size_t buf_bytes, struct brim_err *e);

struct brim_overlay_info {
	uint64_t block_bytes;
	uint64_t data_bytes; /* of the volume, kept in the file */
	uint64_t zero_bytes; /* of the volume, known to be zeros */
	uint64_t extents;
	uint64_t file_bytes; /* how long the file is, holes included */
};
BRIM_API int brim_overlay_info(struct brim_device *d,
			       struct brim_overlay_info *out,
			       struct brim_err *e);

/*
 * What a device holds from off_bytes on, and how far that goes: zeros that
 * need not be read, or data (which may be zeros, too); of the overlay or of
 * the base. Works for every kind of device. -ERANGE at or behind the end.
 */
struct brim_device_extent {
	uint64_t len_bytes;
	int is_zero;
	int is_overlay;
};
BRIM_API int brim_device_extent(struct brim_device *d, uint64_t off_bytes,
				struct brim_device_extent *out,
				struct brim_err *e);

/*
 * Writes the overlay's blocks into its base, which must be open for writing,
 * and empties it. Cut short it can be repeated (BRIM_OVERLAY_RESUME). Nobody
 * else may use the device meanwhile.
 */
BRIM_API int brim_overlay_commit(struct brim_device *d, struct brim_err *e);
/*
 * Saves an image and its overlay as a new image; neither is changed. -EFBIG
 * where what differs is too much for an image: the message says how much.
 */
BRIM_API int brim_overlay_save_image(struct brim_device *d, const char *path,
				     struct brim_err *e);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_OVERLAY_API_H */
