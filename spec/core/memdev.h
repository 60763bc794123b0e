/* SPDX-License-Identifier: MIT */
/*
 * memdev.h: a device in memory for the tests of engines and runs, with the
 * faults real ones have: short transfers, latency, no zeroing. It counts and
 * logs what it is asked. Safe from many threads, as a device must be.
 */
#ifndef BRIM_MEMDEV_H
#define BRIM_MEMDEV_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device.h"

#define MEMDEV_LOG_MAX 65536

/* One call: 'r', 'w', 'z' or 'f', as it was when it arrived. */
struct memdev_call {
	char op;
	uint64_t off_bytes, len_bytes;
};

struct memdev {
	struct brim_device dev; /* first: the ops cast back */
	uint8_t *bytes;
	uint64_t size_bytes;
	uint64_t move_max_bytes; /* longer transfers come out short; 0: never */
	long sleep_ns;           /* latency of each read and write */
	int zero_error;          /* what zero returns, if not 0 */
	_Atomic uint32_t calls;
	_Atomic uint32_t at_once, at_once_max;
	struct memdev_call log[MEMDEV_LOG_MAX];
};

static inline struct memdev *memdev_enter(struct brim_device *d, char op,
					  uint64_t off, uint64_t len)
{
	struct memdev *m = (struct memdev *)d;
	uint32_t k = atomic_fetch_add(&m->calls, 1);
	uint32_t n = atomic_fetch_add(&m->at_once, 1) + 1;
	uint32_t max = atomic_load(&m->at_once_max);

	if (k < MEMDEV_LOG_MAX)
		m->log[k] = (struct memdev_call){ op, off, len };
	while (n > max &&
	       !atomic_compare_exchange_weak(&m->at_once_max, &max, n))
		;
	if (m->sleep_ns && (op == 'r' || op == 'w')) {
		struct timespec ts = { .tv_nsec = m->sleep_ns };

		nanosleep(&ts, NULL);
	}
	return m;
}

/* How much of a transfer happens; nothing past the end. */
static inline uint64_t memdev_moves(const struct memdev *m, uint64_t off,
				    uint64_t len)
{
	if (off >= m->size_bytes)
		return 0;
	len = BRIM__MIN(len, m->size_bytes - off);
	return m->move_max_bytes ? BRIM__MIN(len, m->move_max_bytes) : len;
}

static inline int64_t memdev_read(struct brim_device *d, void *buf,
				  uint64_t len, uint64_t off)
{
	struct memdev *m = memdev_enter(d, 'r', off, len);

	len = memdev_moves(m, off, len);
	memcpy(buf, m->bytes + off, len);
	atomic_fetch_sub(&m->at_once, 1);
	return (int64_t)len;
}

static inline int64_t memdev_write(struct brim_device *d, const void *buf,
				   uint64_t len, uint64_t off)
{
	struct memdev *m = memdev_enter(d, 'w', off, len);

	len = memdev_moves(m, off, len);
	memcpy(m->bytes + off, buf, len);
	atomic_fetch_sub(&m->at_once, 1);
	return (int64_t)len;
}

static inline int memdev_zero(struct brim_device *d, uint64_t off, uint64_t len)
{
	struct memdev *m = memdev_enter(d, 'z', off, len);

	if (!m->zero_error)
		memset(m->bytes + off, 0, len);
	atomic_fetch_sub(&m->at_once, 1);
	return m->zero_error;
}

static inline int memdev_flush(struct brim_device *d)
{
	struct memdev *m = memdev_enter(d, 'f', 0, 0);

	atomic_fetch_sub(&m->at_once, 1);
	return 0;
}

static const struct brim__device_ops memdev_ops = {
	.read = memdev_read,
	.write = memdev_write,
	.zero = memdev_zero,
	.flush = memdev_flush,
};

/* Filled with 0xa5, so that whatever is not written shows. */
static inline struct memdev *memdev_new(uint64_t size_bytes)
{
	struct memdev *m = calloc(1, sizeof(*m));

	m->bytes = malloc(size_bytes);
	memset(m->bytes, 0xa5, size_bytes);
	m->size_bytes = size_bytes;
	m->dev.ops = &memdev_ops;
	m->dev.refs = 1;
	m->dev.fd = -1;
	m->dev.info.kind = BRIM_KIND_FILE;
	m->dev.info.path = "memdev";
	m->dev.info.size_bytes = size_bytes;
	m->dev.info.align_bytes = 1;
	m->dev.info.is_writable = 1;
	return m;
}

static inline void memdev_free(struct memdev *m)
{
	free(m->bytes);
	free(m);
}

#endif /* BRIM_MEMDEV_H */
