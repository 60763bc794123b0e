/* SPDX-License-Identifier: MIT */
/*
 * test_alloc_objects.c: objects that hold extents, read and compared with a
 * table, with every allocation failing once: see alloc_helper.h.
 */
#include "alloc_helper.h"
#include "objects_image.h"

#define COPIES 40u /* reads of the same objects, so that lists grow */

static struct memdev *device;

/* Sound objects, then some that are damaged. */
static int read_them(struct brim_walk *w, struct brim_table *t,
		     struct brim_err *e)
{
	struct brim_object_range v[COPIES];
	struct brim_object_counts c;
	uint32_t k;

	for (k = 0; k < COPIES; k++)
		v[k] = (struct brim_object_range){ OBJECTS_AT, 0, 4, 15, 7 };
	TRY(brim_walk_objects(w, v, COPIES, t, &c, e));
	if (c.rows != 32 * COPIES || c.bad)
		return -EBADMSG;
	for (k = 0; k < COPIES; k++)
		v[k].number = 8; /* as all of them were others */
	TRY(brim_walk_objects(w, v, COPIES, t, &c, e));
	return 0;
}

static int compare(struct brim_table *t, struct brim_extents *x,
		   struct brim_err *e)
{
	struct brim_row row;
	size_t i = 0, j = 0;

	brim_table_merge(t, TREE);
	TRY(brim_table_extents(t, 0, x, e));
	return brim_table_differ(t, &i, SIZE_MAX, t, &j, SIZE_MAX, &row)
		       ? -EBADMSG
		       : 0;
}

static int objects_round(struct brim_err *e)
{
	struct brim_walk *w = NULL;
	struct brim_table *t = NULL;
	struct brim_extents *x = NULL;
	int ret = objects_walk(&w, device, e);

	if (ret >= 0)
		ret = brim_table_create(&t, 6, e);
	if (ret >= 0)
		ret = brim_extents_create(&x, e);
	if (ret >= 0)
		ret = read_them(w, t, e);
	if (ret >= 0)
		ret = compare(t, x, e);
	brim_extents_free(x);
	brim_table_free(t);
	brim_walk_close(w);
	return ret;
}

int main(void)
{
	tested = pthread_self();
	make_layouts();
	device = objects();
	loop("objects and tables", objects_round);
	memdev_free(device);
	free_layouts();
	return tap_end();
}
