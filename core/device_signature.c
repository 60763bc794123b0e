/* SPDX-License-Identifier: MIT */
/*
 * device_signature.c: whether a target carries something already: a
 * filesystem, a partition table, swap, RAID. libblkid knows; without it any
 * data where signatures live counts. Called by device_fd.c before anything is
 * changed. Offsets are bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_BLKID
#include <blkid/blkid.h>
#endif

#include "device.h"

#ifdef HAVE_BLKID

static const char *value_of(blkid_probe pr, const char *name)
{
	const char *value;

	if (blkid_probe_lookup_value(pr, name, &value, NULL) < 0)
		return NULL;
	return value;
}

/* "an" or "a": xfs, lvm and ntfs are spelt, squashfs and vfat are spoken. */
static const char *article(const char *name)
{
	int c = tolower((unsigned char)name[0]);
	int next = tolower((unsigned char)name[1]);

	if (strchr("aeioux", c))
		return "an";
	return strchr("fhlmnr", c) && !strchr("aeiouy", next) ? "an" : "a";
}

/* Labels come off the disk: one line of printable text, whatever they hold. */
static void quote_label(char *buf, size_t buf_bytes, const char *label)
{
	size_t k, n;

	n = (size_t)snprintf(buf, buf_bytes, " labelled '%.64s'", label);
	for (k = 0; k < n && k < buf_bytes; k++)
		if ((unsigned char)buf[k] < ' ' || buf[k] == 0x7f)
			buf[k] = '?';
}

/* Says what libblkid has just found. */
static int found(const char *shown, blkid_probe pr, struct brim_err *e)
{
	const char *type = value_of(pr, "TYPE");
	const char *usage = value_of(pr, "USAGE");
	const char *label = value_of(pr, "LABEL");
	const char *table = value_of(pr, "PTTYPE");
	const char *noun = "signature";
	char labelled[100] = "";

	if (type && usage && !strcmp(usage, "filesystem"))
		noun = "filesystem";
	if (!type && table) {
		type = table;
		noun = "partition table";
	}
	if (!type)
		type = "unknown";
	if (label && *label)
		quote_label(labelled, sizeof(labelled), label);
	return brim__errf(e, -EEXIST, "open",
			  "%s holds %s %s %s%s; --force overwrites it", shown,
			  article(type), type, noun, labelled);
}

static int probe(const char *shown, int fd, blkid_probe pr, struct brim_err *e)
{
	int ret;

	if (blkid_probe_set_device(pr, fd, 0, 0) < 0)
		return brim__errf(
			e, -EIO, "open",
			"%s cannot be searched for signatures; --force "
			"does without",
			shown);
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE |
						      BLKID_SUBLKS_USAGE |
						      BLKID_SUBLKS_LABEL);
	blkid_probe_enable_partitions(pr, 1);
	/* A GPT counts also where its protective MBR is damaged. */
	blkid_probe_set_partitions_flags(pr, BLKID_PARTS_FORCE_GPT);
	ret = blkid_do_probe(pr);
	if (ret == 0)
		return found(shown, pr, e);
	if (ret < 0)
		return brim__errf(e, -EIO, "open",
				  "%s cannot be searched for signatures: it "
				  "cannot be read; --force does without",
				  shown);
	return 0;
}

int brim__device_probe_signature(const char *shown, int fd, struct brim_err *e)
{
	blkid_probe pr;
	int ret;

	if (lseek(fd, 0, SEEK_END) == 0)
		return 0; /* empty: libblkid calls that an error */
	pr = blkid_new_probe();
	if (!pr)
		return brim__err(e, -ENOMEM, "open", shown);
	ret = probe(shown, fd, pr, e);
	blkid_free_probe(pr);
	return ret;
}

#else /* without libblkid anything where signatures live counts as one */

/* All known signatures are within so many bytes of the start or the end. */
#define SIGNATURE_BYTES (1 << 17)

static int find_data(int fd, off_t from, off_t to)
{
	char buf[4096];

	while (from < to) {
		ssize_t k, n = pread(fd, buf, sizeof(buf), from);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		for (k = 0; k < n; k++)
			if (buf[k])
				return 1;
		from += n;
	}
	return 0;
}

int brim__device_probe_signature(const char *shown, int fd, struct brim_err *e)
{
	off_t end = lseek(fd, 0, SEEK_END);
	off_t tail = BRIM__MAX(end - SIGNATURE_BYTES, 0);
	int ret;

	ret = find_data(fd, 0, BRIM__MIN(end, SIGNATURE_BYTES));
	if (ret == 0)
		ret = find_data(fd, tail, end);
	if (ret < 0)
		return brim__err(e, ret, "open", shown);
	if (ret)
		return brim__errf(e, -EEXIST, "open",
				  "%s holds data (this brim was built without "
				  "libblkid and cannot tell which); --force "
				  "overwrites it",
				  shown);
	return 0;
}

#endif
