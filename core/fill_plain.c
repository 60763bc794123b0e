/* SPDX-License-Identifier: MIT */
/*
 * fill_plain.c: operations by plain system calls, as few as a file needs: open,
 * one write, close. Called by fill_submit.c in the submitter's thread, and for
 * tails by fill_ring.c. Sizes are bytes.
 */
#include <errno.h>
#include <string.h>

#include "fill.h"

static void refuse(struct brim__fill_result *r, const char *call, int error)
{
	r->call = call;
	r->error = error;
}

/*
 * Whether a write goes on without O_DIRECT: where the filesystem does not take
 * it at all, or not at the offset that a short write left.
 */
static bool leaves_direct(struct brim__fill_sub *s, int fd, ssize_t n)
{
	int error = errno;
	bool leaves = n < 0 ? error == EINVAL : n % BRIM__FILL_ALIGN != 0;

	if (leaves && n < 0)
		atomic_store(&s->fill->direct_works, false);
	leaves = leaves && !brim__fill_leave_direct(fd);
	errno = error;
	return leaves;
}

/* All of a buffer, in as many calls as it takes; 0, or errno. */
static int write_all(struct brim__fill_sub *s, int fd, bool *is_direct,
		     size_t len, uint64_t at, uint64_t *written)
{
	const uint8_t *from = s->buf;
	ssize_t n;

	while (len) {
		n = s->fill->calls->pwrite(fd, from, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return EIO;
		if (*is_direct && (n < 0 || (size_t)n < len) &&
		    leaves_direct(s, fd, n)) {
			*is_direct = false;
			n = BRIM__MAX(n, 0);
		}
		if (n < 0)
			return errno;
		from += n;
		at += (uint64_t)n;
		len -= (size_t)n;
		*written += (uint64_t)n;
	}
	return 0;
}

int brim__fill_write(struct brim__fill_sub *s, const struct brim_op *op, int fd,
		     bool is_direct, struct brim__fill_result *r)
{
	int ret;

	while (r->written_bytes < op->len_bytes) {
		uint64_t at = op->off_bytes + r->written_bytes;
		uint64_t left = op->len_bytes - r->written_bytes;
		size_t len = (size_t)BRIM__MIN(left, s->fill->o.max_io_bytes);

		if (is_direct && len < BRIM__FILL_ALIGN) {
			ret = brim__fill_leave_direct(fd);
			if (ret < 0)
				return -ret;
			is_direct = false;
		}
		if (is_direct)
			len -= len % BRIM__FILL_ALIGN;
		brim__fill_content(s, op, at, len, s->buf);
		ret = write_all(s, fd, &is_direct, len, at, &r->written_bytes);
		if (ret)
			return ret;
	}
	return 0;
}

static void data_op(struct brim__fill_sub *s, const struct brim_op *op,
		    struct brim__fill_result *r)
{
	const struct brim__fill_calls *c = s->fill->calls;
	bool is_direct;
	int fd = brim__fill_open_file(s, op, &is_direct), ret;

	if (fd < 0) {
		refuse(r, "open", -fd);
		brim__fill_settle(s, op, r);
		return;
	}
	ret = brim__fill_write(s, op, fd, is_direct, r);
	if (ret)
		refuse(r, "write", ret);
	else
		r->is_synced = brim__fill_wants_fsync(s);
	if (r->is_synced && c->fsync(fd) < 0)
		refuse(r, "fsync", errno);
	if (c->close(fd) < 0 && !r->error)
		refuse(r, "close", errno);
	if (r->error)
		brim__fill_settle(s, op, r);
	else if (op->kind == BRIM_OP_REPLACE)
		brim__fill_rename(s, op, r);
}

static void truncate_op(struct brim__fill_sub *s, const struct brim_op *op,
			struct brim__fill_result *r)
{
	const struct brim__fill_calls *c = s->fill->calls;
	bool is_direct;
	int fd = brim__fill_open_file(s, op, &is_direct);

	if (fd < 0) {
		refuse(r, "open", -fd);
		brim__fill_settle(s, op, r);
		return;
	}
	if (c->ftruncate(fd, (off_t)op->off_bytes) < 0) {
		refuse(r, "truncate", errno);
		r->stands = BRIM_FILE_AS_BEFORE;
	}
	if (c->close(fd) < 0 && !r->error) {
		refuse(r, "close", errno);
		brim__fill_settle(s, op, r);
	}
}

static void delete_op(struct brim__fill_sub *s, const struct brim_op *op,
		      struct brim__fill_result *r)
{
	char path[BRIM__FILL_PATH];
	const char *name;
	int dir, ret = 0;

	brim_fileset_path(s->fill->fileset, s->index, op->file.id, 0, path,
			  sizeof(path));
	dir = brim__fill_dir(s, path, false, &name);
	if (dir < 0)
		ret = -dir;
	else if (s->fill->calls->unlinkat(dir, name, 0) < 0)
		ret = errno;
	if (!ret || (ret == ENOENT && s->fill->is_resumed))
		return;
	refuse(r, "unlink", ret);
	r->stands = BRIM_FILE_AS_BEFORE;
}

static void mkdir_op(struct brim__fill_sub *s, const struct brim_op *op,
		     struct brim__fill_result *r)
{
	char path[BRIM__FILL_PATH];
	int ret;

	brim_fileset_path(s->fill->fileset, s->index, op->file.id, 0, path,
			  sizeof(path));
	ret = brim__fill_mkdir(s, path, op->dir_level);
	/* An earlier refusal may have left out the ones above. */
	if (ret == -ENOENT)
		ret = brim__fill_mkdir(s, path, -1);
	if (ret == 0)
		return;
	refuse(r, "mkdir", -ret);
	r->stands = BRIM_FILE_AS_BEFORE;
}

void brim__fill_plain(struct brim__fill_sub *s, const struct brim_op *op,
		      struct brim__fill_result *r)
{
	memset(r, 0, sizeof(*r));
	switch (op->kind) {
	case BRIM_OP_MKDIR:
		mkdir_op(s, op, r);
		break;
	case BRIM_OP_TRUNCATE:
		truncate_op(s, op, r);
		break;
	case BRIM_OP_DELETE:
		delete_op(s, op, r);
		break;
	default:
		data_op(s, op, r);
	}
}
