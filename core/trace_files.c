/* SPDX-License-Identifier: MIT */
/*
 * trace_files.c: replays traces of file operations below a directory, one
 * after another, with plain calls. A path is walked from the root directory by
 * its parts, so that nothing in a trace reaches anything else: no "..", no
 * absolute path, no symbolic link. Bytes, nanoseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trace_replay.h"

#define IO_BYTES (1u << 20)
#define PAUSE_NS 50000000u
#define EVENTS_A_LOOK 64u

struct brim_replay_files {
	struct brim__replay x;
	int root;
	struct brim_trace_event ev; /* the one that is not due yet */
	bool is_waiting;
	struct brim__fds open;
	char parent[BRIM__TRACE_PATH_MAX]; /* of the last path, and its fd */
	int parent_fd;
	uint8_t *buffer;
};

/* ------------------------------------------------------------------- paths */

/* What of a path lies below the root; NULL: it would leave it. */
static const char *path_below(const struct brim_replay_files *f,
			      const char *path)
{
	size_t n = f->x.strip ? strlen(f->x.strip) : 0;
	const char *p;

	if (n) {
		while (n && f->x.strip[n - 1] == '/')
			n--;
		if (strncmp(path, f->x.strip, n) || path[n] != '/')
			return NULL;
		path += n;
		while (*path == '/')
			path++;
	}
	if (*path == '/' || !*path)
		return NULL;
	for (p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (!strncmp(p, "..", 2) && (!p[2] || p[2] == '/'))
			return NULL;
	}
	return path;
}

/* Goes down one part of a path, which is made if it is missing. */
static int step_down(int at, const char *part)
{
	int fd = openat(at, part,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT &&
	    (mkdirat(at, part, 0777) == 0 || errno == EEXIST))
		fd = openat(at, part,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The directory that a path lies in, and *name within it; kept for the next
 * path, which mostly lies there too.
 */
static int parent_of(struct brim_replay_files *f, const char *path,
		     const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	char copy[BRIM__TRACE_PATH_MAX], *part, *save = NULL;
	int at = f->root, next;

	*name = slash ? slash + 1 : path;
	if (!n)
		return f->root;
	if (f->parent_fd >= 0 && !strncmp(f->parent, path, n) && !f->parent[n])
		return f->parent_fd;
	memcpy(copy, path, n);
	copy[n] = 0;
	memcpy(f->parent, copy, n + 1);
	if (f->parent_fd >= 0)
		close(f->parent_fd);
	f->parent_fd = -1;
	for (part = strtok_r(copy, "/", &save); part;
	     part = strtok_r(NULL, "/", &save)) {
		next = step_down(at, part);
		if (at != f->root)
			close(at);
		if (next < 0)
			return next;
		at = next;
	}
	if (at != f->root)
		f->parent_fd = at;
	return at;
}

/* A directory that moved away or is gone must not be taken for the old. */
static void forget_parent(struct brim_replay_files *f)
{
	if (f->parent_fd >= 0)
		close(f->parent_fd);
	f->parent_fd = -1;
}

/* -------------------------------------------------------------- operations */

static int do_open(struct brim_replay_files *f, const char *path, int flags)
{
	const char *name;
	int dir, fd, ret;

	brim__fds_close(&f->open, path);
	dir = parent_of(f, path, &name);
	if (dir < 0)
		return dir;
	fd = openat(dir, name,
		    flags | O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC |
			    O_NONBLOCK,
		    0666);
	if (fd < 0)
		return -errno;
	ret = brim__fds_put(&f->open, path, fd);
	if (ret < 0)
		close(fd);
	return ret < 0 ? ret : fd;
}

/* Files that no line opened are opened where they are first used. */
static int fd_for(struct brim_replay_files *f, const char *path)
{
	int fd = brim__fds_get(&f->open, path);

	return fd >= 0 ? fd : do_open(f, path, 0);
}

/* A range; a read ends with the file. */
static int do_range(struct brim_replay_files *f, const char *path,
		    struct brim_trace_event *ev, uint64_t *moved)
{
	int fd = fd_for(f, path);
	uint64_t part;
	ssize_t n;

	*moved = 0;
	if (fd < 0)
		return fd;
	while (*moved < ev->len_bytes) {
		off_t at = (off_t)(ev->off_bytes + *moved);

		part = BRIM__MIN(ev->len_bytes - *moved, IO_BYTES);
		n = ev->op == BRIM_TRACE_READ ? pread(fd, f->buffer, part, at)
					      : pwrite(fd, f->buffer, part, at);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		*moved += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

static int do_trim(struct brim_replay_files *f, const char *path,
		   const struct brim_trace_event *ev)
{
	int fd = fd_for(f, path);

	if (fd < 0)
		return fd;
	if (ev->len_bytes &&
	    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)ev->off_bytes, (off_t)ev->len_bytes) < 0)
		return -errno;
	return 0;
}

static int do_unlink(struct brim_replay_files *f, const char *path)
{
	const char *name;
	int dir;

	brim__fds_close(&f->open, path);
	dir = parent_of(f, path, &name);
	if (dir < 0)
		return dir;
	if (unlinkat(dir, name, 0) == 0)
		return 0;
	if (errno != EISDIR)
		return -errno;
	forget_parent(f);
	dir = parent_of(f, path, &name);
	return dir < 0                                 ? dir
	       : unlinkat(dir, name, AT_REMOVEDIR) < 0 ? -errno
						       : 0;
}

/* Directories move with all that is open in them: those stay open. */
static int do_rename(struct brim_replay_files *f, const char *path,
		     const char *to)
{
	const char *from_name, *to_name;
	int from, dir, ret = 0;

	brim__fds_close(&f->open, path);
	brim__fds_close(&f->open, to);
	from = parent_of(f, path, &from_name);
	if (from < 0)
		return from;
	from = fcntl(from, F_DUPFD_CLOEXEC, 0);
	if (from < 0)
		return -errno;
	dir = parent_of(f, to, &to_name);
	if (dir < 0)
		ret = dir;
	else if (renameat(from, from_name, dir, to_name) < 0)
		ret = -errno;
	close(from);
	forget_parent(f);
	return ret;
}

static int do_mkdir(struct brim_replay_files *f, const char *path)
{
	const char *name;
	int dir = parent_of(f, path, &name);

	if (dir < 0)
		return dir;
	return mkdirat(dir, name, 0777) < 0 && errno != EEXIST ? -errno : 0;
}

static int do_on_fd(struct brim_replay_files *f, const char *path,
		    const struct brim_trace_event *ev)
{
	int fd = fd_for(f, path);

	if (fd < 0)
		return fd;
	switch (ev->op) {
	case BRIM_TRACE_SYNC:
		return fsync(fd) < 0 ? -errno : 0;
	case BRIM_TRACE_DATASYNC:
		return fdatasync(fd) < 0 ? -errno : 0;
	default:
		return ftruncate(fd, (off_t)ev->len_bytes) < 0 ? -errno : 0;
	}
}

static int perform(struct brim_replay_files *f, const char *path,
		   const char *to, uint64_t *moved)
{
	struct brim_trace_event *ev = &f->ev;
	int ret;

	switch (ev->op) {
	case BRIM_TRACE_READ:
	case BRIM_TRACE_WRITE:
		return do_range(f, path, ev, moved);
	case BRIM_TRACE_TRIM:
		return do_trim(f, path, ev);
	case BRIM_TRACE_OPEN:
	case BRIM_TRACE_CREATE:
		ret = do_open(f, path,
			      ev->op == BRIM_TRACE_CREATE ? O_TRUNC : 0);
		return BRIM__MIN(ret, 0);
	case BRIM_TRACE_CLOSE:
		return brim__fds_close(&f->open, path);
	case BRIM_TRACE_UNLINK:
		return do_unlink(f, path);
	case BRIM_TRACE_RENAME:
		return do_rename(f, path, to);
	case BRIM_TRACE_MKDIR:
		return do_mkdir(f, path);
	case BRIM_TRACE_ADD:
		return 0;
	default:
		return do_on_fd(f, path, ev);
	}
}

/* ------------------------------------------------------------------ events */

static void refused(struct brim_replay_files *f, int code)
{
	struct brim_replay_stats *st = &f->x.st;
	const char *name = brim__errno_name(-code);

	if (!st->failed++)
		snprintf(st->first_failure, sizeof(st->first_failure),
			 "line %llu: %s %.150s: %s",
			 (unsigned long long)brim_trace_line(f->x.trace),
			 brim__trace_op_names[f->ev.op], f->ev.path,
			 name ? name : strerror(-code));
}

static int outside(const struct brim_replay_files *f, const char *path,
		   struct brim_err *e)
{
	return brim__errf(e, -EPERM, "replay",
			  "line %llu of the trace: '%.120s' is not below the "
			  "root%s%.60s",
			  (unsigned long long)brim_trace_line(f->x.trace),
			  path ? path : "", f->x.strip ? ", without " : "",
			  f->x.strip ? f->x.strip : "");
}

/* The event at hand: 0, or what ends the replay. */
static int files_event(struct brim_replay_files *f, struct brim_err *e)
{
	struct brim_trace_event *ev = &f->ev;
	uint64_t begun_ns, moved = ev->len_bytes;
	const char *path = ev->path ? path_below(f, ev->path) : NULL;
	const char *to = ev->to ? path_below(f, ev->to) : NULL;
	int ret;

	if (!path)
		return outside(f, ev->path, e);
	if (ev->op == BRIM_TRACE_RENAME && !to)
		return outside(f, ev->to, e);
	if (ev->op > BRIM_TRACE_TRIM)
		moved = 0;
	begun_ns = brim__now_ns();
	ret = perform(f, path, to, &moved);
	if (ret == -ENOMEM || ret == -EMFILE || ret == -ENFILE)
		return brim__errf(
			e, ret, "replay",
			"line %llu of the trace, with %zu files open: %s",
			(unsigned long long)brim_trace_line(f->x.trace),
			f->open.count, strerror(-ret));
	if (ret < 0)
		refused(f, ret);
	else
		brim__replay_done(&f->x, ev->op, moved,
				  brim__now_ns() - begun_ns);
	return 0;
}

/* Whether the event at hand may begin; waits a moment where not. */
static bool files_may_begin(struct brim_replay_files *f)
{
	uint64_t due_ns = brim__replay_due_ns(&f->x, f->ev.at_ns), now_ns;
	struct timespec ts = { 0 };

	if (!due_ns)
		return true;
	now_ns = brim__now_ns();
	if (now_ns < due_ns) {
		ts.tv_nsec = (long)BRIM__MIN(due_ns - now_ns, PAUSE_NS);
		nanosleep(&ts, NULL);
		return false;
	}
	f->x.st.late_max_ns = BRIM__MAX(f->x.st.late_max_ns, now_ns - due_ns);
	return true;
}

int brim_replay_files_step(struct brim_replay_files *f, uint64_t budget_ns,
			   struct brim_replay_stats *st, struct brim_err *e)
{
	uint64_t until_ns = budget_ns ? brim__now_ns() + budget_ns : 0;
	uint32_t k = 0;
	int ret = 1;

	if (!f->x.begun_ns)
		f->x.begun_ns = brim__now_ns();
	while (ret > 0) {
		if (!f->is_waiting)
			ret = brim__replay_next(&f->x, &f->ev, e);
		f->is_waiting = ret > 0 && !files_may_begin(f);
		if (ret > 0 && !f->is_waiting)
			ret = files_event(f, e) ?: 1;
		if (ret > 0 && until_ns &&
		    (f->is_waiting || ++k % EVENTS_A_LOOK == 0) &&
		    brim__now_ns() >= until_ns)
			break;
	}
	if (st)
		brim__replay_stats(&f->x, brim__now_ns(), st);
	return ret;
}

/* --------------------------------------------------------- open and close */

void brim_replay_files_close(struct brim_replay_files *f)
{
	if (!f)
		return;
	brim__fds_free(&f->open);
	forget_parent(f);
	if (f->root >= 0)
		close(f->root);
	brim__replay_release(&f->x);
	free(f->buffer);
	free(f);
}

int brim_replay_files_open(struct brim_replay_files **out, struct brim_trace *t,
			   const char *root,
			   const struct brim_replay_options *o,
			   struct brim_err *e)
{
	struct brim_replay_files *f = calloc(1, sizeof(*f));
	int ret;

	*out = NULL;
	if (!f) {
		brim_trace_close(t);
		return brim__err(e, -ENOMEM, "replay", root);
	}
	f->parent_fd = -1;
	f->root = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = f->root < 0 ? -errno : 0;
	f->buffer = malloc(IO_BYTES);
	if (!f->buffer || brim__fds_init(&f->open) < 0)
		ret = ret ?: -ENOMEM;
	if (ret < 0) {
		brim__err(e, ret, "open", root);
		f->x.trace = t;
	} else {
		ret = brim__replay_init(&f->x, t, o, e);
	}
	if (ret < 0) {
		brim_replay_files_close(f);
		return ret;
	}
	brim__replay_bytes(f->x.o.seed, f->buffer, IO_BYTES);
	*out = f;
	return 0;
}
