/* SPDX-License-Identifier: MIT */
/*
 * image.h: the image file's constants, for image.c, image_decode.c and device.c,
 * which tells an image file by its magic.
 */
#ifndef BRIM_IMAGE_H
#define BRIM_IMAGE_H

#include "internal.h"

#define BRIM__IMAGE_MAGIC "brimimg" /* with its zero byte: 8 bytes */
#define BRIM__IMAGE_VERSION 1u
#define BRIM__IMAGE_HEADER_BYTES 24u

/*
 * Limits on what a file may make the reader do: a hostile one gets an error
 * instead of memory or time. A plan past them is not saved either.
 */
#define BRIM__IMAGE_MAX_BYTES (16u << 20) /* of the payload */
#define BRIM__IMAGE_MAX_PIECES 4096u
#define BRIM__IMAGE_MAX_NOTES 256u
#define BRIM__IMAGE_MAX_REGIONS 4096u         /* of one stamp */
#define BRIM__IMAGE_MAX_PATCHES 16384u        /* of one stamp */
#define BRIM__IMAGE_MAX_PARTS 65536u          /* regions, sums: of all stamps */
#define BRIM__IMAGE_MAX_TEMPLATES (64u << 20) /* bytes, of all stamps */
#define BRIM__IMAGE_MAX_TABLES 65536u         /* varying bytes, likewise */

uint32_t brim__image_crc(const void *payload, size_t len_bytes);

#endif /* BRIM_IMAGE_H */
