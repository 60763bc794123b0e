/* SPDX-License-Identifier: MIT */
/* The version of brim, written down here only; everything else asks. */
#ifndef BRIM_VERSION_H
#define BRIM_VERSION_H

#define BRIM_VERSION_MAJOR 0
#define BRIM_VERSION_MINOR 1
#define BRIM_VERSION_PATCH 0
#define BRIM_VERSION "0.1.0"

#endif /* BRIM_VERSION_H */
