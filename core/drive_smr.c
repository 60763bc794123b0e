/* SPDX-License-Identifier: MIT */
/*
 * drive_smr.c: a drive-managed shingled disk, as Skylight describes them
 * (Aghayev, Desnoyers, FAST 2015): bands that are written in order, a static
 * map, a cache at the outer diameter that takes what is not in order, and
 * cleaning of the oldest band when the drive is idle or the cache is full.
 * Called by drive.c. Bytes, nanoseconds.
 *
 * What it does not know is which bytes of a band are in the cache: reads go to
 * the band. Memory goes by bands only.
 */
#include <errno.h>
#include <stdlib.h>

#include "drive.h"
#include "mix.h"

/* ------------------------------------------------------------------- bands */

static uint32_t zones_of(const struct brim_drive *d)
{
	return (uint32_t)BRIM__MAX(d->p.zones, 1);
}

static uint64_t zone_size(const struct brim_drive *d, uint32_t zone)
{
	return zone < zones_of(d) - 1 ? d->zone_bytes
				      : d->p.size_bytes - zone * d->zone_bytes;
}

/* Outer zones have larger bands: as many tracks, of more bytes each. */
static uint32_t zone_band_size(const struct brim_drive *d, uint32_t zone)
{
	uint64_t span = d->p.band_max_bytes - d->p.band_min_bytes, size;
	uint32_t zones = zones_of(d);

	size = zones == 1 ? d->p.band_max_bytes - span / 2
			  : d->p.band_max_bytes - span * zone / (zones - 1);
	return (uint32_t)brim__align_down(size, 4096);
}

static int layout(struct brim_drive *d)
{
	struct brim__smr *s = &d->smr;
	uint32_t zone, zones = zones_of(d);
	uint64_t bands = 0;

	s->zone_band = calloc(zones, sizeof(*s->zone_band));
	s->zone_band_bytes = calloc(zones, sizeof(*s->zone_band_bytes));
	if (!s->zone_band || !s->zone_band_bytes)
		return -ENOMEM;
	for (zone = 0; zone < zones; zone++) {
		uint32_t size = zone_band_size(d, zone);

		s->zone_band[zone] = (uint32_t)bands;
		s->zone_band_bytes[zone] = size;
		bands += (zone_size(d, zone) + size - 1) / size;
	}
	s->count = (uint32_t)bands;
	return 0;
}

/* A band, and which part of it an offset is. */
struct place {
	uint32_t band, at, size;
	uint64_t start;
};

static struct place place_of(const struct brim_drive *d, uint64_t off)
{
	uint32_t zone =
		(uint32_t)BRIM__MIN(off / d->zone_bytes, zones_of(d) - 1u);
	uint64_t start = zone * d->zone_bytes, within = off - start;
	uint32_t size = d->smr.zone_band_bytes[zone];
	uint64_t left = zone_size(d, zone) - brim__align_down(within, size);

	return (struct place){
		.band = d->smr.zone_band[zone] + (uint32_t)(within / size),
		.at = (uint32_t)(within % size),
		.size = (uint32_t)BRIM__MIN(size, left),
		.start = start + brim__align_down(within, size),
	};
}

static void fill_all(struct brim_drive *d)
{
	uint64_t off = 0;

	while (off < d->p.size_bytes) {
		struct place at = place_of(d, off);

		d->smr.bands[at.band].filled = at.size;
		off = at.start + at.size;
	}
}

int brim__smr_create(struct brim_drive *d, struct brim_err *e)
{
	struct brim__smr *s = &d->smr;
	uint32_t k;

	if (layout(d) < 0)
		return brim__err(e, -ENOMEM, "drive", "bands");
	s->bands = calloc(s->count, sizeof(*s->bands));
	if (!s->bands)
		return brim__err(e, -ENOMEM, "drive", "bands");
	s->oldest = s->newest = BRIM__DRIVE_NONE;
	for (k = 0; k < BRIM__DRIVE_STREAMS; k++)
		s->streams[k] = BRIM__DRIVE_NONE;
	if (d->p.is_used)
		fill_all(d);
	return 0;
}

void brim__smr_free(struct brim_drive *d)
{
	free(d->smr.bands);
	free(d->smr.zone_band);
	free(d->smr.zone_band_bytes);
}

/* ------------------------------------------------- bands that have entries */

static void queue_add(struct brim__smr *s, uint32_t band)
{
	struct brim__band *b = &s->bands[band];

	b->next = BRIM__DRIVE_NONE;
	b->prev = s->newest;
	if (s->newest == BRIM__DRIVE_NONE)
		s->oldest = band;
	else
		s->bands[s->newest].next = band;
	s->newest = band;
}

static void queue_remove(struct brim__smr *s, uint32_t band)
{
	struct brim__band *b = &s->bands[band];

	if (b->prev == BRIM__DRIVE_NONE)
		s->oldest = b->next;
	else
		s->bands[b->prev].next = b->next;
	if (b->next == BRIM__DRIVE_NONE)
		s->newest = b->prev;
	else
		s->bands[b->next].prev = b->prev;
}

/* Its entries are no longer in the cache. */
static void drop_entries(struct brim_drive *d, uint32_t band)
{
	struct brim__band *b = &d->smr.bands[band];

	if (!b->cached_entries)
		return;
	queue_remove(&d->smr, band);
	d->st.cache_entries -= b->cached_entries;
	d->st.cache_used_bytes -= b->cached_bytes;
	b->cached_entries = 0;
	b->cached_bytes = 0;
	b->top = 0;
}

/* ---------------------------------------------------------------- cleaning */

/* Reads, modifies and writes a band: what that takes, drawn anew each time. */
static uint64_t clean(struct brim_drive *d, uint32_t band)
{
	struct brim__band *b = &d->smr.bands[band];
	uint64_t span = d->p.clean_max_ns - d->p.clean_min_ns + 1;
	uint64_t key = brim__mix_in(d->p.seed, d->st.cleaned_bands);

	b->filled = BRIM__MAX(b->filled, b->top);
	d->st.cleaned_bands++;
	d->st.cleaned_entries += b->cached_entries;
	d->st.clean_bytes += 2 * (uint64_t)b->filled;
	drop_entries(d, band);
	/* The head stands in the band; where, is nowhere said. */
	d->last_op = -1;
	d->smr.is_in_cache = false;
	return d->p.clean_min_ns + brim__mix_below(brim__mix(key), span);
}

void brim__smr_idle(struct brim_drive *d, uint64_t at_ns)
{
	uint64_t t = d->free_ns, ns;

	if (at_ns <= t || at_ns - t <= d->p.idle_ns)
		return;
	t += d->p.idle_ns;
	while (t < at_ns && d->smr.oldest != BRIM__DRIVE_NONE) {
		ns = clean(d, d->smr.oldest);
		d->st.clean_idle_ns += ns;
		t += ns;
		d->free_ns = t;
	}
}

/* ------------------------------------------------------------------- cache */

static bool is_full(const struct brim_drive *d, uint64_t more_bytes)
{
	return d->st.cache_entries >= d->p.cache_entries ||
	       more_bytes > d->p.cache_bytes - d->st.cache_used_bytes;
}

/*
 * Room for one entry: the time that cleaning takes. *fits: it may be put there;
 * else the cache is smaller than the entry.
 */
static uint64_t make_room(struct brim_drive *d, uint64_t len, bool *fits)
{
	uint64_t ns = 0;

	while (is_full(d, len) && d->smr.oldest != BRIM__DRIVE_NONE)
		ns += clean(d, d->smr.oldest);
	*fits = !is_full(d, len);
	return ns;
}

static void add_bytes(struct brim_drive *d, uint32_t band, uint32_t len,
		      uint32_t end)
{
	struct brim__band *b = &d->smr.bands[band];

	b->cached_bytes += len;
	b->top = BRIM__MAX(b->top, end);
	d->st.cache_used_bytes += len;
	d->st.cache_used_bytes_max =
		BRIM__MAX(d->st.cache_used_bytes_max, d->st.cache_used_bytes);
}

/* An entry of so many bytes that end at `end`: the time spent cleaning. */
static uint64_t add_entry(struct brim_drive *d, uint32_t band, uint32_t len,
			  uint32_t end)
{
	struct brim__band *b = &d->smr.bands[band];
	bool fits;
	uint64_t ns = make_room(d, len, &fits);

	if (!fits) {
		/* Straight into the band. */
		b->top = BRIM__MAX(b->top, end);
		ns += clean(d, band);
		b->top = 0;
	} else {
		if (!b->cached_entries++)
			queue_add(&d->smr, band);
		d->st.cache_entries++;
		d->st.cache_entries_max =
			BRIM__MAX(d->st.cache_entries_max, d->st.cache_entries);
		add_bytes(d, band, len, end);
	}
	d->st.clean_full_ns += ns;
	return ns;
}

/* ----------------------------------------------------------------- streams */

/* What a rewrite has written so far is in the cache from now on. */
static uint64_t give_up(struct brim_drive *d, uint32_t band)
{
	struct brim__band *b = &d->smr.bands[band];
	uint32_t len = b->rewritten;

	b->rewritten = 0;
	return len ? add_entry(d, band, len, len) : 0;
}

/* Puts a band at the head of the list; the last one may have to go. */
static uint64_t stream_touch(struct brim_drive *d, uint32_t band)
{
	uint32_t *list = d->smr.streams, k, last = BRIM__DRIVE_NONE;

	for (k = 0; k < BRIM__DRIVE_STREAMS && list[k] != band; k++)
		;
	if (k == BRIM__DRIVE_STREAMS)
		last = list[--k];
	for (; k > 0; k--)
		list[k] = list[k - 1];
	list[0] = band;
	return last == BRIM__DRIVE_NONE ? 0 : give_up(d, last);
}

/* All that the band holds is rewritten: nothing is left to clean. */
static void covered(struct brim_drive *d, uint32_t band)
{
	struct brim__band *b = &d->smr.bands[band];

	drop_entries(d, band);
	b->filled = b->rewritten;
	b->rewritten = 0;
	d->st.covered_bands++;
}

/* ------------------------------------------------------------------ writes */

/*
 * Whether a write goes to the band itself: it goes on where the band's data
 * end, or rewrites the band from its start on. *ns: time spent cleaning.
 */
static bool streams(struct brim_drive *d, const struct place *p, uint32_t len,
		    uint64_t *ns)
{
	struct brim__band *b = &d->smr.bands[p->band];

	if (p->at == b->filled && !b->rewritten) {
		b->filled += len;
		return true;
	}
	if (p->at != b->rewritten) {
		/* What was rewritten is older than this. */
		if (p->at < b->rewritten)
			*ns += give_up(d, p->band);
		return false;
	}
	*ns += stream_touch(d, p->band);
	b->rewritten += len;
	if (b->rewritten >= BRIM__MAX(b->filled, b->top))
		covered(d, p->band);
	return true;
}

static uint64_t to_cache(struct brim_drive *d, const struct place *p,
			 uint32_t len, uint64_t t)
{
	uint64_t off = p->start + p->at, transfer;
	struct brim__band *b = &d->smr.bands[p->band];

	/* A run is one write to the drive, in however many calls it comes. */
	if (d->smr.is_in_cache && d->smr.cache_end == off && p->at &&
	    b->cached_entries &&
	    len <= d->p.cache_bytes - d->st.cache_used_bytes) {
		add_bytes(d, p->band, len, p->at + len);
	} else {
		t += add_entry(d, p->band, len, p->at + len);
		if (!d->smr.is_in_cache)
			t += brim__drive_position(d, 0, t);
		t += d->p.cache_write_ns;
		d->st.rotate_ns += d->p.cache_write_ns;
		d->st.cached_ios++;
	}
	transfer = brim__drive_transfer_ns(len, d->p.outer_bytes_per_s);
	d->st.transfer_ns += transfer;
	d->st.cached_bytes += len;
	d->smr.is_in_cache = true;
	d->smr.cache_end = off + len;
	d->last_op = -1;
	d->head = 0;
	return t + transfer;
}

static uint64_t write_piece(struct brim_drive *d, const struct place *p,
			    uint32_t len, uint64_t t)
{
	struct brim_drive_io piece = { .op = BRIM_DRIVE_WRITE,
				       .off_bytes = p->start + p->at,
				       .len_bytes = len };
	uint64_t ns = 0;

	if (!streams(d, p, len, &ns))
		return to_cache(d, p, len, t + ns);
	d->st.streamed_bytes += len;
	d->smr.is_in_cache = false;
	return brim__drive_media(d, &piece, t + ns);
}

uint64_t brim__smr_io(struct brim_drive *d, const struct brim_drive_io *io,
		      uint64_t t)
{
	uint64_t off = io->off_bytes, left = io->len_bytes;

	if (io->op == BRIM_DRIVE_READ) {
		d->smr.is_in_cache = false;
		return brim__drive_media(d, io, t);
	}
	while (left) {
		struct place p = place_of(d, off);
		uint32_t len = (uint32_t)BRIM__MIN(left, p.size - p.at);

		t = write_piece(d, &p, len, t);
		off += len;
		left -= len;
	}
	return t;
}
