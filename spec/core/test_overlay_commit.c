/* SPDX-License-Identifier: MIT */
/*
 * test_overlay_commit.c: overlays that go into their base, whole or cut short,
 * and images that become new ones with theirs. SEED=n repeats a run.
 */
#include "overlay_helper.h"

static void test_commit(void)
{
	static uint8_t model[VOLUME_BYTES], buf[VOLUME_BYTES];
	struct brim_device *base, *d;
	struct brim_overlay_info info;
	uint64_t seed = tap_seed(3), k;
	struct step s;

	make_base();
	for (k = 0; k < VOLUME_BYTES; k++)
		model[k] = base_byte(k);
	d = overlay_must(BRIM_OVERLAY_CREATE);
	for (k = 0; k < 200; k++) {
		s = random_step(&seed, VOLUME_BYTES);
		device_step(d, &s, model, buf);
		model_step(model, &s, VOLUME_BYTES);
	}
	ok(brim_overlay_commit(d, &err) == -EROFS &&
		   strstr(err.msg, "not open for writing"),
	   "no commit to what is read-only", "%s", err.msg);
	brim_device_close(d);

	open_at(&base, base_path, FORCE, 0);
	if (overlay_over(&d, base, overlay_path, 0) < 0)
		exit(1);
	/* As a commit leaves it that is cut short. */
	brim__overlay_set_state(brim__overlay_device(d)->o,
				BRIM__OVERLAY_COMMITTING);
	brim_device_write(base, 0, 4096, model, NULL);
	brim_device_close(d);
	ok(overlay_over(&d, base, overlay_path, 0) == -EUCLEAN &&
		   strstr(err.msg, "commit it again"),
	   "a commit cut short is told of", "%s", err.msg);
	ok(overlay_over(&d, base, overlay_path, BRIM_OVERLAY_RESUME) == 0 &&
		   brim_overlay_commit(d, &err) == 0,
	   "and can be repeated", "%s", err.msg);
	ok(is_model(base, model, buf, VOLUME_BYTES), "the base has it all",
	   "differs");
	brim_overlay_info(d, &info, NULL);
	ok(!info.extents && is_model(d, model, buf, VOLUME_BYTES),
	   "the overlay has nothing", "%llu", (unsigned long long)info.extents);
	brim_device_write(d, 77, 3, "new", NULL);
	brim_device_close(d);
	brim_device_close(base);
	d = overlay_must(0);
	memcpy(model + 77, "new", 3);
	ok(is_model(d, model, buf, VOLUME_BYTES),
	   "and goes on, for the new base", "differs");
	brim_device_close(d);
}

static void test_commit_image(void)
{
	static uint8_t random[4 << 20], buf[4 << 20];
	struct brim_plan *p = groups_plan(1);
	struct brim_device *base, *d, *saved;
	uint64_t seed = tap_seed(4), k;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/new.brim", dir);
	snprintf(overlay_path, sizeof(overlay_path), "%s/image2", dir);
	for (k = 0; k < sizeof(random); k++)
		random[k] = (uint8_t)tap_random(&seed);
	if (brim_device_open_plan(&base, p, NULL) < 0 ||
	    overlay_over(&d, base, overlay_path, BRIM_OVERLAY_CREATE) < 0)
		exit(1);
	ok(brim_overlay_commit(d, &err) == -EROFS &&
		   strstr(err.msg, "making a new one"),
	   "an image is not written", "%s", err.msg);
	brim_device_zero(d, 48 << 20, 32 << 20, NULL);
	brim_device_write(d, (50 << 20) + 3, 5000, random, NULL);
	brim_device_write(d, (100 << 20) + 1, 2 << 20, random, NULL);
	for (k = 0; k < 64; k += 2) /* far from each other, some the same */
		brim_device_write(d, k << 24, 4096, k % 4 ? random : buf, NULL);
	for (k = 1; k < 64; k += 2) {
		brim_device_read(base, k << 24, 4096, buf, NULL);
		brim_device_write(d, k << 24, 4096, buf, NULL);
	}
	brim_device_write(d, (1 << 30) - 7, 7, random, NULL);
	ok(brim_overlay_save_image(d, path, &err) == 0, "a new image", "%s",
	   err.msg);
	ok(open_at(&saved, path, 0, 0) == 0, "it opens", "%s", err.msg);
	for (k = 0; saved && k < 256; k++) {
		brim_device_read(d, k << 22, 4 << 20, buf, NULL);
		brim_device_read(saved, k << 22, 4 << 20, random, NULL);
		if (memcmp(buf, random, sizeof(buf)))
			break;
	}
	ok(k == 256, "it is what the overlay was", "differs near %llu MiB",
	   (unsigned long long)k * 4);
	brim_device_close(saved);
	for (k = 0; k < sizeof(random); k++)
		random[k] = (uint8_t)tap_random(&seed);
	for (k = 0; k < 5; k++)
		brim_device_write(d, (200 << 20) + (k << 22), 4 << 20, random,
				  NULL);
	ok(brim_overlay_save_image(d, path, &err) == -EFBIG &&
		   strstr(err.msg, " KiB in ") && !strchr(err.msg, '\n'),
	   "too much for an image", "%s", err.msg);
	brim_device_close(d);
	brim_device_close(base);
	brim_plan_free(p);
}

int main(void)
{
	begin();
	test_commit();
	test_commit_image();
	return tap_end();
}
