/* SPDX-License-Identifier: MIT */
/*
 * nbdkit_plugin.c: the nbdkit plugin `brim`: any target that brim opens, with
 * an overlay if there is one, as a network block device. Built apart from the
 * library when nbdkit's headers are there. All connections share one device,
 * which is opened before nbdkit says it is ready. Units: bytes.
 */
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "drive.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
/* One answer about extents says this much at most; nbdkit asks again. */
#define EXTENTS_MAX 4096
#define REQUEST_MAX (32u << 20)

static char *target, *overlay;
static int is_readonly;
static mode_t socket_mode = 0600;
static const char *model;
static char *trace;
static double speed = 1;
static struct brim__live *live; /* NULL: as fast as it is */
static struct brim_device *device;
static struct brim_device_info info;

/* -errno of the core, for the client; e->msg for the log. */
static int failed(int code, const struct brim_err *e)
{
	nbdkit_error("%s", e->msg[0] ? e->msg : strerror(-code));
	nbdkit_set_error(-code);
	return -1;
}

/* ------------------------------------------------------------ configuration */

static int set_path(char **path, const char *value)
{
	free(*path);
	*path = nbdkit_realpath(value);
	return *path ? 0 : -1;
}

/* A file that may be made: nbdkit_realpath wants one that exists. */
static int set_absolute(char **path, const char *value)
{
	free(*path);
	*path = nbdkit_absolute_path(value);
	return *path ? 0 : -1;
}

static int set_mode(const char *value)
{
	char *end;
	unsigned long mode = strtoul(value, &end, 8);

	if (!*value || *end || mode > 0777) {
		nbdkit_error("socketmode=%s is no octal mode like 0660", value);
		return -1;
	}
	socket_mode = (mode_t)mode;
	return 0;
}

/* The drive that the device is as slow as. */
static int plugin_config_drive(const char *key, const char *value)
{
	if (!strcmp(key, "model")) {
		model = value; /* valid as long as nbdkit runs */
		return 0;
	}
	if (!strcmp(key, "trace"))
		return set_absolute(&trace, value);
	if (!strcmp(key, "speed")) {
		speed = strtod(value, NULL);
		return 0;
	}
	nbdkit_error("unknown parameter '%s'; there are file=TARGET, "
		     "overlay=FILE, readonly=BOOL, socketmode=MODE, "
		     "model=DRIVE, trace=FILE and speed=N",
		     key);
	return -1;
}

static int plugin_config(const char *key, const char *value)
{
	if (!strcmp(key, "file"))
		return set_path(&target, value);
	if (!strcmp(key, "overlay"))
		return set_absolute(&overlay, value);
	if (!strcmp(key, "readonly")) {
		is_readonly = nbdkit_parse_bool(value);
		return is_readonly < 0 ? -1 : 0;
	}
	if (!strcmp(key, "socketmode"))
		return set_mode(value);
	return plugin_config_drive(key, value);
}

static int plugin_config_complete(void)
{
	if (target)
		return 0;
	nbdkit_error("what to serve? file=TARGET: an image, a file or a "
		     "device");
	return -1;
}

/* Is what the target is written to itself? */
static bool writes_target(void)
{
	struct brim_device *d;

	if (is_readonly || overlay)
		return false;
	/* An image is read-only by nature, which is no error here. */
	if (brim_device_open(&d, target, NULL, NULL) < 0)
		return true;
	brim_device_info(d, &info);
	brim_device_close(d);
	return info.kind != BRIM_KIND_IMAGE;
}

static int plugin_get_ready(void)
{
	/* Through the page cache: clients may send any range. What is served
	   has a filesystem as a rule: that is no reason to refuse it. */
	struct brim_device_options o = {
		.struct_bytes = sizeof(o),
		.flags = BRIM_DEVICE_BUFFERED,
	};
	struct brim_device *base;
	struct brim_err e = { 0 };
	int ret;

	if (writes_target())
		o.flags |= BRIM_DEVICE_WRITE | BRIM_DEVICE_FORCE;
	ret = brim_device_open(&device, target, &o, &e);
	if (ret == 0 && overlay) {
		base = device;
		ret = brim_device_open_overlay(&device, base, overlay,
					       is_readonly
						       ? BRIM_OVERLAY_READONLY
						       : BRIM_OVERLAY_CREATE,
					       &e);
		brim_device_close(base);
	}
	if (ret < 0)
		return failed(ret, &e);
	brim_device_info(device, &info);
	if (model || trace) {
		struct brim__live_options lo = { model ? model : "ideal", trace,
						 speed, info.size_bytes };

		ret = brim__live_open(&live, &lo, &e);
		if (ret < 0)
			return failed(ret, &e);
	}
	/* nbdkit has set its own; the socket is made after this. */
	umask(0777 & ~socket_mode);
	return 0;
}

static void plugin_unload(void)
{
	struct brim_err e = { 0 };

	if (device && brim_device_flush(device, &e) < 0)
		nbdkit_error("%s", e.msg);
	if (brim__live_close(live, &e) < 0)
		nbdkit_error("%s", e.msg);
	brim_device_close(device);
	free(target);
	free(overlay);
	free(trace);
}

/* -------------------------------------------------------------- connections */

static void *plugin_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t plugin_get_size(void *handle)
{
	(void)handle;
	return (int64_t)info.size_bytes;
}

static int plugin_can_write(void *handle)
{
	(void)handle;
	return info.is_writable;
}

static int yes(void *handle)
{
	(void)handle;
	return 1;
}

static int no(void *handle)
{
	(void)handle;
	return 0;
}

static int plugin_can_trim(void *handle)
{
	(void)handle;
	return info.kind == BRIM_KIND_OVERLAY || info.kind == BRIM_KIND_BLOCK ||
	       info.kind == BRIM_KIND_FILE;
}

static int plugin_block_size(void *handle, uint32_t *minimum,
			     uint32_t *preferred, uint32_t *maximum)
{
	(void)handle;
	*minimum = info.align_bytes;
	*preferred = 4096;
	*maximum = REQUEST_MAX;
	return 0;
}

/* ----------------------------------------------------------------- requests */

static uint64_t begin(void)
{
	return live ? brim__live_now(live) : 0;
}

/*
 * Ends a request: when the drive would have. All are one stream, as nbdkit's
 * threads take them in turn.
 */
static int end(int ret, const struct brim_err *e, enum brim_drive_op op,
	       uint64_t offset, uint64_t count, uint64_t at_ns)
{
	if (ret < 0)
		return failed(ret, e);
	if (live)
		brim__live_done(live, op, offset, count, at_ns, 0);
	return 0;
}

static int plugin_pread(void *handle, void *buf, uint32_t count,
			uint64_t offset, uint32_t flags)
{
	struct brim_err e = { 0 };
	uint64_t at = begin();
	int ret = brim_device_read(device, offset, count, buf, &e);

	(void)handle;
	(void)flags;
	return end(ret, &e, BRIM_DRIVE_READ, offset, count, at);
}

static int plugin_pwrite(void *handle, const void *buf, uint32_t count,
			 uint64_t offset, uint32_t flags)
{
	struct brim_err e = { 0 };
	uint64_t at = begin();
	int ret = brim_device_write(device, offset, count, buf, &e);

	(void)handle;
	(void)flags;
	return end(ret, &e, BRIM_DRIVE_WRITE, offset, count, at);
}

static int plugin_flush(void *handle, uint32_t flags)
{
	struct brim_err e = { 0 };
	uint64_t at = begin();
	int ret = brim_device_flush(device, &e);

	(void)handle;
	(void)flags;
	return end(ret, &e, BRIM_DRIVE_FLUSH, 0, 0, at);
}

/* Without an error: nbdkit writes zeros instead, or tells the client. */
static int unsupported(void)
{
	nbdkit_set_error(EOPNOTSUPP);
	return -1;
}

static bool is_sectors(uint32_t count, uint64_t offset)
{
	return info.kind != BRIM_KIND_BLOCK ||
	       (count | offset) % info.logical_sector_bytes == 0;
}

static int plugin_zero(void *handle, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	struct brim_err e = { 0 };
	uint64_t at = begin();
	int ret;

	(void)handle;
	/* A block device may have to write the zeros itself. */
	if (info.kind == BRIM_KIND_BLOCK && (flags & NBDKIT_FLAG_FAST_ZERO))
		return unsupported();
	if (!is_sectors(count, offset))
		return unsupported();
	ret = brim_device_zero(device, offset, count, &e);
	if (ret == -EOPNOTSUPP)
		return unsupported();
	/* No data go to the drive: it is as a trim to it. */
	return end(ret, &e, BRIM_DRIVE_TRIM, offset, count, at);
}

static int plugin_trim(void *handle, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	struct brim_err e = { 0 };
	uint64_t at = begin();
	int ret;

	(void)handle;
	(void)flags;
	/* Advice: what does not fit is left. A file is given a hole. */
	if (!is_sectors(count, offset))
		return 0;
	if (info.kind == BRIM_KIND_FILE)
		ret = brim_device_zero(device, offset, count, &e);
	else
		ret = brim_device_discard(device, offset, count, &e);
	return end(ret == -EOPNOTSUPP ? 0 : ret, &e, BRIM_DRIVE_TRIM, offset,
		   count, at);
}

static int plugin_extents(void *handle, uint32_t count, uint64_t offset,
			  uint32_t flags, struct nbdkit_extents *extents)
{
	uint64_t end = offset + count;
	struct brim_device_extent x;
	struct brim_err e = { 0 };
	int ret, n;

	(void)handle;
	for (n = 0; offset < end && n < EXTENTS_MAX; n++) {
		ret = brim_device_extent(device, offset, &x, &e);
		if (ret < 0)
			return failed(ret, &e);
		if (nbdkit_add_extent(extents, offset, x.len_bytes,
				      x.is_zero ? NBDKIT_EXTENT_HOLE |
							  NBDKIT_EXTENT_ZERO
						: 0) < 0)
			return -1;
		if (flags & NBDKIT_FLAG_REQ_ONE)
			break;
		offset += x.len_bytes;
	}
	return 0;
}

static struct nbdkit_plugin plugin = {
	.name = "brim",
	.longname = "brim images, files and devices, with overlays",
	.version = BRIM_VERSION,
	.description = "Serves filesystems of any size that no disk holds.",
	.magic_config_key = "file",
	.config = plugin_config,
	.config_complete = plugin_config_complete,
	.config_help =
		"file=TARGET      (required) an image, a file or a device.\n"
		"overlay=FILE     Takes the writes; made when it is missing.\n"
		"readonly=BOOL    Nothing is written.\n"
		"socketmode=MODE  Of the unix socket, octal; default 0600.\n"
		"model=DRIVE      As slow as \"smr,size_bytes=8g,...\".\n"
		"trace=FILE       A block trace to write.\n"
		"speed=N          Of the model's clock; default 1.",
	.get_ready = plugin_get_ready,
	.unload = plugin_unload,
	.open = plugin_open,
	.get_size = plugin_get_size,
	.block_size = plugin_block_size,
	.can_write = plugin_can_write,
	.can_flush = yes,
	.can_trim = plugin_can_trim,
	.can_zero = plugin_can_write,
	.can_fast_zero = yes,
	.can_extents = yes,
	.can_multi_conn = yes, /* one device: a flush is for all */
	.is_rotational = no,
	.pread = plugin_pread,
	.pwrite = plugin_pwrite,
	.flush = plugin_flush,
	.zero = plugin_zero,
	.trim = plugin_trim,
	.extents = plugin_extents,
};

/* The macro defines what nbdkit looks for, and declares it nowhere. */
struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
