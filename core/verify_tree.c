/* SPDX-License-Identifier: MIT */
/*
 * verify_tree.c: one file against what its stream says, and one directory
 * against the files that streams have. Called by the threads of verify_files.c,
 * which share the streams for reading. Sizes are bytes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verify_files.h"

/* ------------------------------------------------------------- the window */

static bool is_touched(const struct brim_verify *v, uint32_t stream,
		       uint32_t id)
{
	const struct brim__verify_touched *t = &v->touched[stream];

	return id / 64 < t->words && (t->bits[id / 64] >> id % 64 & 1);
}

static int touch(struct brim__verify_touched *t, uint32_t id)
{
	uint64_t words = t->words;
	uint64_t *bits;

	if (id / 64 >= words) {
		words = BRIM__MAX(2 * words, id / 64 + 1024u);
		bits = realloc(t->bits, words * sizeof(*bits));
		if (!bits)
			return -ENOMEM;
		memset(bits + t->words, 0, (words - t->words) * sizeof(*bits));
		t->bits = bits;
		t->words = words;
	}
	t->bits[id / 64] |= 1ull << id % 64;
	return 0;
}

int brim__verify_window(struct brim_verify *v, uint32_t stream, uint64_t ops,
			struct brim_err *e)
{
	struct brim_stream *ahead;
	struct brim_op op;
	int ret = brim_stream_copy(&ahead, v->fill->subs[stream].stream, e);

	while (ret == 0 && ops--) {
		ret = brim_stream_next(ahead, &op, e);
		if (ret == 0 && op.kind != BRIM_OP_MKDIR &&
		    touch(&v->touched[stream], op.file.id) < 0)
			ret = brim__err(e, -ENOMEM, "verify", "window");
	}
	brim_stream_free(ahead);
	return ret;
}

static void count_unjudged(struct brim_verify *v)
{
	pthread_mutex_lock(&v->lock);
	v->st.unjudged++;
	pthread_mutex_unlock(&v->lock);
}

/* ---------------------------------------------------------------- one file */

struct reading {
	struct brim_verify *v;
	const struct brim_file *file;
	const char *path;
	int fd;
	uint8_t *buf;
	bool is_direct;
	uint64_t off_bytes;
};

/*
 * Reads up to `want` bytes; fewer only at the end of the file. A tail that is
 * no whole sector is read through the page cache.
 */
static ssize_t read_some(struct reading *r, size_t want)
{
	size_t got = 0, ask;
	ssize_t n;

	while (got < want) {
		if (r->is_direct && (r->off_bytes + got) % BRIM__FILL_ALIGN) {
			if (brim__fill_leave_direct(r->fd) < 0)
				return -errno;
			r->is_direct = false;
		}
		/* O_DIRECT wants whole sectors asked for, and the buffer has
		 * room for them. */
		ask = want - got;
		if (r->is_direct)
			ask = (ask + BRIM__FILL_ALIGN - 1) &
			      ~(size_t)(BRIM__FILL_ALIGN - 1);
		n = pread(r->fd, r->buf + got, ask,
			  (off_t)(r->off_bytes + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)BRIM__MIN(got, want);
}

/* Reports what differs at `off` and returns true, if anything does. */
static bool is_corrupt(struct reading *r, size_t len)
{
	int64_t at = brim_fileset_compare(r->v->fill->fileset, r->file,
					  r->off_bytes, len, r->buf);
	uint8_t right;

	if (at < 0)
		return false;
	brim_fileset_content(r->v->fill->fileset, r->file, (uint64_t)at, 1,
			     &right);
	brim__verify_found(r->v, BRIM_FILE_CORRUPT, r->path, (uint64_t)at,
			   right, r->buf[(uint64_t)at - r->off_bytes]);
	return true;
}

/* Compares the first `len` bytes; true if that said what is wrong. */
static bool compare(struct reading *r, uint64_t len)
{
	while (r->off_bytes < len) {
		size_t want = (size_t)BRIM__MIN(len - r->off_bytes,
						BRIM__VERIFY_BUFFER);
		ssize_t n = read_some(r, want);

		if (n < 0 || (size_t)n < want) {
			brim__verify_found(r->v, BRIM_FILE_UNREADABLE, r->path,
					   r->off_bytes, 0,
					   n < 0 ? (uint64_t)-n : EIO);
			return true;
		}
		if (is_corrupt(r, want))
			return true;
		r->off_bytes += want;
	}
	return false;
}

static int open_for_reading(struct brim_verify *v, const char *path,
			    bool *is_direct)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOATIME;
	int root = v->fill->root_fd, fd;

	*is_direct = v->is_direct;
	fd = openat(root, path, flags | (v->is_direct ? O_DIRECT : 0));
	if (fd < 0 && errno == EINVAL && v->is_direct) {
		*is_direct = false;
		fd = openat(root, path, flags);
	}
	if (fd < 0 && errno == EPERM) /* O_NOATIME is the owner's */
		fd = openat(root, path, flags & ~O_NOATIME);
	return fd < 0 ? -errno : fd;
}

static void check_open_file(struct brim_verify *v, const struct brim_file *f,
			    const char *path, int fd, bool is_direct,
			    uint8_t *buf)
{
	struct reading r = { .v = v,
			     .file = f,
			     .path = path,
			     .fd = fd,
			     .buf = buf,
			     .is_direct = is_direct };
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		brim__verify_found(v, BRIM_FILE_UNREADABLE, path, 0, 0, EINVAL);
		return;
	}
	size = (uint64_t)st.st_size;
	if (compare(&r, BRIM__MIN(size, f->size_bytes)))
		return;
	if (size != f->size_bytes)
		brim__verify_found(v,
				   size < f->size_bytes ? BRIM_FILE_SHORT
							: BRIM_FILE_LONG,
				   path, BRIM__MIN(size, f->size_bytes),
				   f->size_bytes, size);
}

static void check_file(struct brim_verify *v, const struct brim_file *f,
		       uint8_t *buf)
{
	char path[BRIM__FILL_PATH];
	bool is_direct;
	int fd;

	brim_fileset_path(v->fill->fileset, f->stream, f->id, 0, path,
			  sizeof(path));
	fd = open_for_reading(v, path, &is_direct);
	if (fd == -ENOENT || fd == -ENOTDIR) {
		brim__verify_found(v, BRIM_FILE_MISSING, path, 0, f->size_bytes,
				   0);
	} else if (fd < 0) {
		brim__verify_found(v, BRIM_FILE_UNREADABLE, path, 0, 0,
				   (uint64_t)-fd);
	} else {
		check_open_file(v, f, path, fd, is_direct, buf);
		close(fd);
	}
}

void brim__verify_files(struct brim_verify *v,
			const struct brim__verify_work *w, uint8_t *buf)
{
	struct brim_stream *s = v->fill->subs[w->stream].stream;
	struct brim_file f;
	uint64_t k;

	for (k = w->first; k < w->first + w->count; k++) {
		if (brim_stream_file(s, k, &f) < 0)
			continue;
		if (is_touched(v, f.stream, f.id))
			count_unjudged(v);
		else
			check_file(v, &f, buf);
		pthread_mutex_lock(&v->lock);
		v->st.files++;
		v->st.bytes += f.size_bytes;
		pthread_mutex_unlock(&v->lock);
	}
}

/* ------------------------------------------------------------- directories */

/* Takes the path over. */
static void push_dir(struct brim_verify *v, char *path)
{
	char **list;
	size_t room;

	pthread_mutex_lock(&v->lock);
	if (path && v->dir_count == v->dir_room) {
		room = v->dir_room ? 2 * v->dir_room : 256;
		list = realloc(v->dirs, room * sizeof(*list));
		if (list) {
			v->dirs = list;
			v->dir_room = room;
		}
	}
	if (!path || v->dir_count == v->dir_room) {
		v->error = -ENOMEM;
		free(path);
	} else {
		v->dirs[v->dir_count++] = path;
		pthread_cond_signal(&v->work);
	}
	pthread_mutex_unlock(&v->lock);
}

int brim__verify_push_tree(struct brim_verify *v, uint32_t stream,
			   struct brim_err *e)
{
	char path[BRIM__FILL_PATH];

	/* The first component of any of its files. */
	brim_fileset_path(v->fill->fileset, stream, 0, 0, path, sizeof(path));
	path[strcspn(path, "/")] = '\0';
	push_dir(v, strdup(path));
	return v->error < 0 ? brim__err(e, v->error, "verify", "directories")
			    : 0;
}

/* A name that is no directory: a file of a stream, or one too many. */
static void check_name(struct brim_verify *v, const char *path)
{
	struct stat st = { 0 };
	struct brim_file f;
	uint32_t stream, id;
	int is_temporary;

	if (!brim_fileset_parse(v->fill->fileset, path, &stream, &id,
				&is_temporary)) {
		if (!is_temporary &&
		    !brim_stream_find(v->fill->subs[stream].stream, id, &f))
			return;
		if (is_touched(v, stream, id)) {
			count_unjudged(v);
			return;
		}
	}
	fstatat(v->fill->root_fd, path, &st, AT_SYMLINK_NOFOLLOW);
	brim__verify_found(v, BRIM_FILE_EXTRA, path, 0, 0,
			   (uint64_t)st.st_size);
}

static bool is_dir(const struct brim_verify *v, const char *path,
		   const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return !fstatat(v->fill->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode);
}

static void read_dir(struct brim_verify *v, const char *path, DIR *dir)
{
	struct dirent *d;
	char *name;

	while (errno = 0, (d = readdir(dir)) != NULL) {
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (asprintf(&name, "%s/%s", path, d->d_name) < 0)
			name = NULL;
		if (!name || is_dir(v, name, d)) {
			push_dir(v, name);
			continue;
		}
		check_name(v, name);
		free(name);
	}
	if (errno)
		brim__verify_found(v, BRIM_FILE_UNREADABLE, path, 0, 0,
				   (uint64_t)errno);
}

void brim__verify_dir(struct brim_verify *v, char *path)
{
	int fd = openat(v->fill->root_fd, path,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir) {
		read_dir(v, path, dir);
		closedir(dir);
	} else if (fd >= 0) {
		close(fd);
		push_dir(v, NULL);
	} else if (errno != ENOENT) { /* else its files are missing */
		brim__verify_found(v, BRIM_FILE_UNREADABLE, path, 0, 0,
				   (uint64_t)errno);
	}
	free(path);
}
