/* SPDX-License-Identifier: MIT */
/*
 * fill_file.c: files and directories of a fill: opening relative to cached
 * directories, making missing ones, and what stands after a refusal. Called by
 * fill_plain.c and fill_ring.c, in the submitter's thread. Sizes are bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fill.h"

static int system_openat(int dir, const char *path, int flags, mode_t mode)
{
	return openat(dir, path, flags, mode);
}

const struct brim__fill_calls brim__fill_system = {
	.openat = system_openat,
	.pwrite = pwrite,
	.fsync = fsync,
	.close = close,
	.ftruncate = ftruncate,
	.mkdirat = mkdirat,
	.unlinkat = unlinkat,
	.renameat = renameat,
};

void brim__fill_set_calls(struct brim_fill *f, const struct brim__fill_calls *c)
{
	f->calls = c;
}

/* ------------------------------------------------------------- directories */

/* Whether the fill's own directory still has a name. */
static bool root_is_there(const struct brim_fill *f)
{
	struct stat st;

	return fstat(f->root_fd, &st) == 0 && st.st_nlink > 0;
}

int brim__fill_mkdir(struct brim__fill_sub *s, const char *path, int level)
{
	struct brim_fill *f = s->fill;
	char part[BRIM__FILL_PATH];
	const char *end = path;

	for (; (end = strchr(end, '/')) != NULL && level != -2; end++) {
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		if (level > 0) {
			level--;
			continue;
		}
		if (level == 0)
			level = -2; /* the one asked for */
		if (f->calls->mkdirat(f->root_fd, part, 0777) < 0 &&
		    errno != EEXIST) {
			int ret = -errno;

			if (ret == -ENOENT && !root_is_there(f))
				brim__err(&s->err, -ENOENT, "mkdir",
					  "the directory that is filled");
			return ret;
		}
	}
	return 0;
}

/* FNV-1a: spreads the names of directories, which differ in a digit. */
static uint32_t hash_of(const char *text, size_t len)
{
	uint32_t h = 2166136261u;

	while (len--)
		h = (h ^ (uint8_t)*text++) * 16777619u;
	return h ^ h >> 16;
}

int brim__fill_dir(struct brim__fill_sub *s, const char *path, bool makes,
		   const char **name)
{
	struct brim_fill *f = s->fill;
	const char *slash = strrchr(path, '/');
	size_t len = (size_t)(slash - path);
	struct brim__fill_dir *d = &s->dirs[hash_of(path, len) % f->dirs];
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, ret;

	*name = slash + 1;
	if (d->fd >= 0 && !memcmp(d->path, path, len) && !d->path[len])
		return d->fd;
	if (d->fd >= 0)
		close(d->fd);
	snprintf(d->path, sizeof(d->path), "%.*s", (int)len, path);
	d->fd = f->calls->openat(f->root_fd, d->path, flags, 0);
	if (d->fd < 0 && errno == ENOENT && makes) {
		ret = brim__fill_mkdir(s, path, -1);
		if (ret < 0)
			return ret;
		d->fd = f->calls->openat(f->root_fd, d->path, flags, 0);
	}
	return d->fd < 0 ? -errno : d->fd;
}

void brim__fill_dirs_close(struct brim__fill_sub *s)
{
	uint32_t k;

	for (k = 0; s->dirs && k < s->fill->dirs; k++) {
		if (s->dirs[k].fd >= 0)
			close(s->dirs[k].fd);
		s->dirs[k].fd = -1;
	}
}

/* ------------------------------------------------------------------- files */

static bool is_whole(const struct brim_op *op)
{
	return op->kind == BRIM_OP_CREATE || op->kind == BRIM_OP_REPLACE;
}

/* An overwrite of all of a file, as its next version. */
static bool is_rewrite(const struct brim_op *op)
{
	return op->kind == BRIM_OP_OVERWRITE && op->off_bytes == 0 &&
	       op->len_bytes == op->file.size_bytes;
}

/* Any offset of a sector will do; what remains at the end is the tail. */
bool brim__fill_is_direct(const struct brim__fill_sub *s,
			  const struct brim_op *op)
{
	return atomic_load_explicit(&s->fill->direct_works,
				    memory_order_relaxed) &&
	       op->len_bytes >= s->fill->o.direct_min_bytes &&
	       op->off_bytes % BRIM__FILL_ALIGN == 0;
}

bool brim__fill_wants_fsync(struct brim__fill_sub *s)
{
	const struct brim_fill_options *o = &s->fill->o;

	if (o->fsync == BRIM_FSYNC_NTH)
		return ++s->files_written % o->fsync_every == 0;
	return o->fsync == BRIM_FSYNC_FILE;
}

/* Opens relative to the cached directory; one more try for what was missing. */
static int open_at(struct brim__fill_sub *s, const char *path, int flags)
{
	bool makes = flags & O_CREAT;
	const char *name;
	int dir = brim__fill_dir(s, path, makes, &name), fd;

	if (dir < 0)
		return dir;
	fd = s->fill->calls->openat(dir, name, flags, 0666);
	return fd < 0 ? -errno : fd;
}

int brim__fill_open_file(struct brim__fill_sub *s, const struct brim_op *op,
			 bool *is_direct)
{
	int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW, fd;
	char path[BRIM__FILL_PATH];

	brim_fileset_path(s->fill->fileset, s->index, op->file.id,
			  op->kind == BRIM_OP_REPLACE, path, sizeof(path));
	if (is_whole(op))
		flags |= O_CREAT | O_TRUNC;
	*is_direct = brim__fill_is_direct(s, op);
	fd = open_at(s, path, flags | (*is_direct ? O_DIRECT : 0));
	if (fd == -EINVAL && *is_direct) {
		*is_direct = false;
		atomic_store(&s->fill->direct_works, false);
		fd = open_at(s, path, flags);
	}
	/* What comes before the deletion of a file that an interrupted run
	 * had already deleted. */
	if (fd == -ENOENT && s->fill->is_resumed)
		fd = open_at(s, path, flags | O_CREAT);
	return fd;
}

int brim__fill_leave_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_DIRECT) < 0 ? -errno
								      : 0;
}

void brim__fill_content(struct brim__fill_sub *s, const struct brim_op *op,
			uint64_t off_bytes, size_t len_bytes, uint8_t *buf)
{
	uint64_t start_ns = brim__now_ns();

	brim_fileset_content(s->fill->fileset, &op->file, off_bytes, len_bytes,
			     buf);
	s->content_ns += brim__now_ns() - start_ns;
}

/* --------------------------------------------------------------- refusals */

/* Cuts a file off; what it held beyond is in doubt. */
static void cut(struct brim__fill_sub *s, const struct brim_op *op,
		uint64_t size_bytes)
{
	char path[BRIM__FILL_PATH];
	int fd;

	brim_fileset_path(s->fill->fileset, s->index, op->file.id, 0, path,
			  sizeof(path));
	fd = open_at(s, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	while (s->fill->calls->ftruncate(fd, (off_t)size_bytes) < 0 &&
	       errno == EINTR)
		;
	s->fill->calls->close(fd);
}

static void remove_temporary(struct brim__fill_sub *s, const struct brim_op *op)
{
	char path[BRIM__FILL_PATH];
	const char *name;
	int dir;

	brim_fileset_path(s->fill->fileset, s->index, op->file.id, 1, path,
			  sizeof(path));
	dir = brim__fill_dir(s, path, false, &name);
	if (dir >= 0)
		s->fill->calls->unlinkat(dir, name, 0);
}

/*
 * What is left of a file in which a write, fsync or close failed: what was
 * written before, cut off where that ends. A range in the middle is not known
 * any more, unless it was refused as a whole for want of space.
 */
static void settle_data(struct brim__fill_sub *s, const struct brim_op *op,
			struct brim__fill_result *r)
{
	bool is_write = !strcmp(r->call, "write");

	/* The pages that could not be written back may be any of them. */
	if (!is_write)
		r->written_bytes = 0;
	if (op->kind == BRIM_OP_OVERWRITE && !is_rewrite(op)) {
		r->stands = is_write && !r->written_bytes &&
					    brim__fill_is_refusal(r->error)
				    ? BRIM_FILE_AS_BEFORE
				    : op->file.size_bytes;
		return;
	}
	r->stands = op->off_bytes + r->written_bytes;
	/* A rewrite that was refused before it began. */
	if (is_rewrite(op) && is_write && !r->written_bytes &&
	    brim__fill_is_refusal(r->error))
		r->stands = BRIM_FILE_AS_BEFORE;
	else
		cut(s, op, r->stands);
}

void brim__fill_settle(struct brim__fill_sub *s, const struct brim_op *op,
		       struct brim__fill_result *r)
{
	if (op->kind == BRIM_OP_REPLACE) {
		remove_temporary(s, op);
		r->stands = BRIM_FILE_AS_BEFORE;
	} else if (!strcmp(r->call, "open")) {
		r->stands = op->kind == BRIM_OP_CREATE ? BRIM_FILE_NONE
						       : BRIM_FILE_AS_BEFORE;
	} else {
		settle_data(s, op, r);
	}
}

void brim__fill_rename(struct brim__fill_sub *s, const struct brim_op *op,
		       struct brim__fill_result *r)
{
	char from[BRIM__FILL_PATH], to[BRIM__FILL_PATH];
	const char *from_name, *to_name;
	int dir;

	brim_fileset_path(s->fill->fileset, s->index, op->file.id, 1, from,
			  sizeof(from));
	brim_fileset_path(s->fill->fileset, s->index, op->file.id, 0, to,
			  sizeof(to));
	dir = brim__fill_dir(s, from, false, &from_name);
	to_name = strrchr(to, '/') + 1;
	if (dir >= 0 &&
	    s->fill->calls->renameat(dir, from_name, dir, to_name) == 0)
		return;
	r->call = "rename";
	r->error = dir < 0 ? -dir : errno;
	brim__fill_settle(s, op, r);
}
