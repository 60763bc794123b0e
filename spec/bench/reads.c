/* SPDX-License-Identifier: MIT */
/*
 * reads.c: the ceiling of checking: the same reads and nothing else. Built and
 * called by bench_check.lua:  reads FILE COUNT LEN_BYTES STRIDE_BYTES DEPTH
 * Reads COUNT times LEN_BYTES, STRIDE_BYTES apart, through the page cache; with
 * DEPTH 0 by one call of pread(2) after the other, else with so many at once
 * through io_uring.
 */
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct job {
	int fd;
	unsigned long count, len_bytes, stride_bytes;
	unsigned int depth;
	char *buf;
};

static int read_in_turn(const struct job *j)
{
	unsigned long k;

	for (k = 0; k < j->count; k++)
		if (pread(j->fd, j->buf, j->len_bytes,
			  (off_t)(j->stride_bytes * k)) != (long)j->len_bytes)
			return 1;
	return 0;
}

static void queue(const struct job *j, struct io_uring *ring, unsigned long k,
		  unsigned long slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_read(sqe, j->fd, j->buf + slot * j->len_bytes,
			   (unsigned int)j->len_bytes, j->stride_bytes * k);
	sqe->user_data = slot;
}

static int read_at_depth(const struct job *j)
{
	unsigned long next = 0, done = 0;
	struct io_uring_cqe *cqe;
	struct io_uring ring;

	if (io_uring_queue_init(j->depth, &ring, 0) < 0)
		return 77;
	while (next < j->depth && next < j->count) {
		queue(j, &ring, next, next);
		next++;
	}
	while (done < j->count) {
		io_uring_submit_and_wait(&ring, 1);
		while (!io_uring_peek_cqe(&ring, &cqe)) {
			unsigned long slot = cqe->user_data;

			if (cqe->res != (int)j->len_bytes)
				return 1;
			io_uring_cqe_seen(&ring, cqe);
			done++;
			if (next < j->count)
				queue(j, &ring, next++, slot);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct job j;

	if (argc != 6)
		return 2;
	j.fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	j.count = strtoul(argv[2], NULL, 10);
	j.len_bytes = strtoul(argv[3], NULL, 10);
	j.stride_bytes = strtoul(argv[4], NULL, 10);
	j.depth = (unsigned int)strtoul(argv[5], NULL, 10);
	j.buf = malloc(j.len_bytes * (j.depth ? j.depth : 1));
	if (j.fd < 0 || !j.buf)
		return 1;
	return j.depth ? read_at_depth(&j) : read_in_turn(&j);
}
