/* SPDX-License-Identifier: MIT */
/*
 * device_cached.c: whether what is about to be read of a regular file lies in
 * the page cache. If so, reading is copying, and as many hands as CPUs do it
 * best; if not, it is waiting, and a deep queue does. Called by run_write.c,
 * scan_run.c and workload_verify.c before they start an engine. Offsets are bytes.
 */
#include <errno.h>
#include <sys/uio.h>

#include "device.h"

/* With fewer reads than these a ring is not worth setting up. */
#define READS_MIN 256u
#define SAMPLES 16u

/*
 * RWF_NOWAIT (Linux 4.14) answers EAGAIN where a read would have to wait. What
 * answers otherwise, and what does not know the flag (tmpfs before 6.6, many
 * others), counts as there.
 */
static bool must_wait(int fd, uint64_t off_bytes)
{
	uint8_t byte;
	struct iovec v = { .iov_base = &byte, .iov_len = 1 };

	return preadv2(fd, &v, 1, (off_t)off_bytes, RWF_NOWAIT) < 0 &&
	       errno == EAGAIN;
}

bool brim__device_is_cold(const struct brim_device *d, uint64_t off_bytes,
			  uint64_t stride_bytes, uint64_t count)
{
	unsigned int k, waits = 0;

	if (d->fd < 0 || d->info.kind != BRIM_KIND_FILE || d->info.is_direct ||
	    count < READS_MIN)
		return false;
	for (k = 0; k < SAMPLES; k++)
		waits += must_wait(d->fd,
				   off_bytes + stride_bytes *
						       (count / SAMPLES * k));
	return waits > SAMPLES / 2;
}
