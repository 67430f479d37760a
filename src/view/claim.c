/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the data of claims, and writes a queue of claims as text. Trusts nothing in the data, which
 * anybody may have written. Pure but for memory.
 */
#include "view/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/escape.h"
#include "view/file.h"

#define VALUE_BYTES_MAX 1024
#define RANGE_BYTES_MAX 42  /* ",w", two offsets and the dash between them */
#define HOLDS_MAX	512 /* the most that dlockfs writes */

/* Reading */

/* Only ranges within the span of the name count. */
static int read_ranges(struct view_claim *view, const struct range_set *said, size_t *ranges_left)
{
	struct range whole = {view->parts.span, view->parts.mode};
	struct range_set span = {.ranges = &whole, .count = 1};
	int error;

	if (!view->parts.record || said->count > *ranges_left)
		return 0;
	error = range_set_intersect(said, &span, &view->ranges);
	view->has_ranges = error == 0 && view->ranges.count > 0;
	if (view->has_ranges) {
		*ranges_left -= view->ranges.count;
		view->parts.mode = range_set_mode(&view->ranges);
	}
	return error;
}

static int read_data(struct view_claim *view, const char *text, size_t *ranges_left)
{
	struct claim_data data;
	int error = claim_data_parse(text, &data);

	if (error != 0)
		return error;
	view->slots = data.slots;
	view->slot = data.slot;
	view->waits = (data.waits || (data.slots > 0 && data.slot < 0)) && !view->orphan;
	view->keeps = data.keeps && !view->orphan;
	view->rest = view->orphan ? 0 : data.rest;
	view->former = !view->parts.record && view->parts.id.owner == CLAIM_OWNER_NONE &&
		       !view->parts.hold;
	if (data.has_ranges) {
		error = read_ranges(view, &data.ranges, ranges_left);
	}
	if (data.has_holds && data.holds.count <= HOLDS_MAX && data.holds.count <= *ranges_left) {
		*ranges_left -= data.holds.count;
		view->has_holds = true;
		view->holds = data.holds;
		data.holds = (struct range_set){0};
	}
	claim_data_finish(&data);
	return error != 0 ? error : view_asker_read(&view->asker, text);
}

int view_claim_read(struct view_claim *view, const struct store_claim *claim, size_t *ranges_left)
{
	char *text;
	int error;

	view->known = true;
	view->asker.since_ms = claim->since_ms;
	view->session = claim->session;
	if (view->parts.id.session == 0)
		return 0;
	text = strndup(claim->data != NULL ? claim->data : "", claim->data_bytes);
	if (text == NULL)
		return -ENOMEM;
	error = read_data(view, text, ranges_left);
	free(text);
	if (view->asker.kind == NULL && view->parts.record)
		view->asker.kind = "record";
	return error;
}

void view_claim_finish(struct view_claim *view)
{
	struct view_follower *follower, *next;

	DL_FOREACH_SAFE (view->followers, follower, next) {
		view_asker_drop(&follower->asker);
		free(follower);
	}
	range_set_finish(&view->ranges);
	range_set_finish(&view->holds);
	view_asker_drop(&view->asker);
	free(view->name);
}

/* Writing */

static bool is_kept(const struct view_claim *view)
{
	return view->kept && view->held;
}

static bool is_resting(const struct view_claim *view)
{
	return view->rest > 0 && view->held;
}

struct counts {
	size_t there, holders, kept, resting, lost, followers;
};

static struct counts count_states(const struct view_claim *claims, size_t count)
{
	struct counts counts = {0};

	for (size_t i = 0; i < count; i++) {
		const struct view_claim *view = &claims[i];
		const struct view_follower *follower;
		if (view->gone)
			continue;
		counts.there += !view->orphan;
		counts.lost += view->orphan;
		counts.kept += is_kept(view);
		counts.resting += is_resting(view);
		counts.holders += view->held && !view->kept && !is_resting(view);
		DL_FOREACH (view->followers, follower) {
			counts.followers++;
		}
	}
	return counts;
}

static char mode_letter(enum claim_mode mode)
{
	return mode == CLAIM_EXCLUSIVE ? 'w' : 'r';
}

static const char *mode_name(const struct view_claim *view)
{
	return view->parts.mode == CLAIM_EXCLUSIVE ? "exclusive" : "shared";
}

/* Returns false if the text would be too long; then nothing was written. */
static bool write_ranges(FILE *out, const struct range *ranges, size_t count)
{
	char text[VALUE_BYTES_MAX + RANGE_BYTES_MAX];
	int used = 0;

	for (size_t i = 0; i < count; i++) {
		used += snprintf(text + used, RANGE_BYTES_MAX, "%s%c%" PRId64 "-%" PRId64,
				 i > 0 ? "," : "", mode_letter(ranges[i].mode),
				 ranges[i].span.start, ranges[i].span.end);
		if (used > VALUE_BYTES_MAX)
			return false;
	}
	fprintf(out, " ranges=%s", text);
	return true;
}

static void write_coverage(FILE *out, const struct view_claim *view)
{
	struct range whole = {view->parts.span, view->parts.mode};
	struct claim_span span = view->parts.span;

	if (!view->parts.record)
		return;
	if (view->has_ranges) {
		if (write_ranges(out, view->ranges.ranges, view->ranges.count))
			return;
		span = range_set_span(&view->ranges);
	} else if (!view->parts.sparse) {
		write_ranges(out, &whole, 1);
		return;
	}
	fprintf(out, " span=%" PRId64 "-%" PRId64, span.start, span.end);
}

static const char *state_of(const struct view_claim *view)
{
	if (view->orphan)
		return "lost";
	if (is_resting(view))
		return "resting";
	return is_kept(view) ? "kept" : view->held ? "held" : "waiting";
}

/* delay_until is rounded up to a whole second: the lock is not granted later than it says. */
static void write_delay(FILE *out, const struct view_claim *view)
{
	if (view->lost_ms > 0)
		fprintf(out, " lost_since=%" PRId64, view->lost_ms / 1000);
	if (view->until_ms > 0)
		fprintf(out, " delay_until=%" PRId64, (view->until_ms + 999) / 1000);
	else if (is_resting(view))
		fprintf(out, " delay_until=%" PRId64, view->rest);
}

static void write_claim(FILE *out, const struct view_claim *view, size_t position)
{
	bool ours = view->parts.id.session != 0;

	fprintf(out, "position=%zu state=%s%s%s mode=%s", position, state_of(view),
		view->held && view->keeps ? " maybe_kept=yes" : "",
		view->former ? " maybe_former=yes" : "", mode_name(view));
	if (view->slots > 0)
		fprintf(out, " slots=%" PRIu32, view->slots);
	if (view->slots > 0 && view->slot >= 0)
		fprintf(out, " slot=%d", view->slot);
	if (view->session == 0 && view->asker.hold != NULL)
		view_asker_write_hold(out, &view->asker);
	if (ours) {
		view_asker_write_kind(out, &view->asker);
		write_coverage(out, view);
		view_asker_write(out, &view->asker);
	}
	view_asker_write_since(out, &view->asker);
	write_delay(out, view);
	fprintf(out, " client=%s", ours && !view->asker.is_other ? "dlockfs" : "other");
	if (view->known && view->session != 0)
		fprintf(out, " session=0x%" PRIx64, view->session);
	else if (view->known && !view->orphan)
		fputs(" session=none", out);
	fputs(" claim=", out);
	escape_write(out, view->name);
	fputc('\n', out);
}

static void write_followers(FILE *out, const struct view_claim *view, size_t position)
{
	const struct view_follower *follower;
	size_t number = 0;

	DL_FOREACH (view->followers, follower) {
		fprintf(out, "position=%zu.%zu state=waiting mode=%s", position, ++number,
			mode_name(view));
		view_asker_write_kind(out, &follower->asker);
		view_asker_write(out, &follower->asker);
		view_asker_write_since(out, &follower->asker);
		fputs(" client=dlockfs\n", out);
	}
}

void view_claims_write(FILE *out, const char *path, const struct view_file *file,
		       const struct view_claim *claims, size_t count)
{
	struct counts counts = count_states(claims, count);
	size_t position = file != NULL;

	fputs("lock=", out);
	escape_write(out, path);
	fprintf(out, " claims=%zu holders=%zu", counts.there + position, counts.holders + position);
	if (counts.kept > 0)
		fprintf(out, " kept=%zu", counts.kept);
	if (counts.resting > 0)
		fprintf(out, " resting=%zu", counts.resting);
	if (counts.lost > 0)
		fprintf(out, " lost=%zu", counts.lost);
	if (counts.followers > 0)
		fprintf(out, " followers=%zu", counts.followers);
	fputc('\n', out);
	if (file != NULL)
		view_file_write(out, file);
	for (size_t i = 0; i < count; i++) {
		if (claims[i].gone)
			continue;
		write_claim(out, &claims[i], ++position);
		write_followers(out, &claims[i], position);
	}
}
