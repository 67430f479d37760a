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

#define FORMAT_LINE	"format=1\n"
#define VALUE_BYTES_MAX 1024
#define RANGE_BYTES_MAX 42  /* ",w", two offsets and the dash between them */
#define HOLDS_MAX	512 /* the most that dlockfs writes */

/* Reading */

static int64_t read_number(const char *value, size_t bytes, int64_t max)
{
	int64_t number = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (value[i] < '0' || value[i] > '9' || number > max)
			return -1;
		number = number * 10 + (value[i] - '0');
	}
	return bytes > 0 && number <= max ? number : -1;
}

static const char *read_kind(const char *value, size_t bytes)
{
	static const char *const kinds[] = {"open", "flock", "record"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strlen(kinds[i]) == bytes && memcmp(value, kinds[i], bytes) == 0)
			return kinds[i];
	}
	return NULL;
}

/* Returns 0 or -ENOMEM; a value that is not well-formed is left out. */
static int read_text(const char *value, size_t bytes, char **text)
{
	if (*text != NULL || bytes > VALUE_BYTES_MAX || !escape_is_valid(value, bytes))
		return 0;
	*text = strndup(value, bytes);
	return *text != NULL ? 0 : -ENOMEM;
}

static int read_line(struct view_claim *view, const char *line, size_t bytes)
{
	const char *equals = memchr(line, '=', bytes);
	size_t key_bytes = equals != NULL ? (size_t)(equals - line) : 0;
	const char *value = line + key_bytes + 1;
	size_t value_bytes = bytes - key_bytes - 1;

	if (key_bytes == 4 && memcmp(line, "host", 4) == 0)
		return read_text(value, value_bytes, &view->host);
	if (key_bytes == 7 && memcmp(line, "command", 7) == 0)
		return read_text(value, value_bytes, &view->command);
	if (key_bytes == 4 && memcmp(line, "kind", 4) == 0)
		view->kind = read_kind(value, value_bytes);
	else if (key_bytes == 3 && memcmp(line, "pid", 3) == 0)
		view->pid = read_number(value, value_bytes, INT32_MAX);
	else if (key_bytes == 3 && memcmp(line, "uid", 3) == 0)
		view->uid = read_number(value, value_bytes, UINT32_MAX);
	return 0;
}

static int read_lines(struct view_claim *view, const char *text)
{
	const char *end;
	int error = 0;

	if (strncmp(text, FORMAT_LINE, strlen(FORMAT_LINE)) != 0)
		return 0;
	for (; error == 0 && (end = strchr(text, '\n')) != NULL; text = end + 1)
		error = read_line(view, text, (size_t)(end - text));
	return error;
}

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
	view->waits = data.waits && !view->orphan;
	view->keeps = data.keeps && !view->orphan;
	view->former = !view->parts.record && view->parts.id.owner == CLAIM_OWNER_NONE;
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
	return error != 0 ? error : read_lines(view, text);
}

int view_claim_read(struct view_claim *view, const struct store_claim *claim, size_t *ranges_left)
{
	char *text;
	int error;

	view->known = true;
	view->since_ms = claim->since_ms;
	view->session = claim->session;
	if (view->parts.id.session == 0)
		return 0;
	text = strndup(claim->data != NULL ? claim->data : "", claim->data_bytes);
	if (text == NULL)
		return -ENOMEM;
	error = read_data(view, text, ranges_left);
	free(text);
	if (view->kind == NULL && view->parts.record)
		view->kind = "record";
	return error;
}

void view_claim_drop_asker(struct view_claim *view)
{
	free(view->host);
	free(view->command);
	view->host = view->command = NULL;
	view->kind = NULL;
	view->pid = view->uid = -1;
}

int view_claim_set_asker(struct view_claim *view, const char *text)
{
	static const char since[] = "\nsince=";
	const char *found = strstr(text, since);

	view_claim_drop_asker(view);
	view->since_ms = found != NULL ? strtoll(found + strlen(since), NULL, 10) * 1000 : 0;
	return read_lines(view, text);
}

void view_claim_finish(struct view_claim *view)
{
	struct view_claim *follower, *next;

	DL_FOREACH_SAFE (view->followers, follower, next) {
		view_claim_finish(follower);
		free(follower);
	}
	range_set_finish(&view->ranges);
	range_set_finish(&view->holds);
	view_claim_drop_asker(view);
	free(view->name);
}

/* Writing */

static bool is_kept(const struct view_claim *view)
{
	return view->kept && view->held;
}

struct counts {
	size_t there, holders, kept, lost, followers;
};

static struct counts count_states(const struct view_claim *claims, size_t count)
{
	struct counts counts = {0};

	for (size_t i = 0; i < count; i++) {
		const struct view_claim *view = &claims[i], *follower;
		if (view->gone)
			continue;
		counts.there += !view->orphan;
		counts.lost += view->orphan;
		counts.kept += is_kept(view);
		counts.holders += view->held && !view->kept;
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

/* The lines of dlockfs about the caller. */
static void write_asker(FILE *out, const struct view_claim *view)
{
	if (view->kind != NULL)
		fprintf(out, " kind=%s", view->kind);
	write_coverage(out, view);
	if (view->host != NULL)
		fprintf(out, " host=%s", view->host);
	if (view->pid >= 0)
		fprintf(out, " pid=%" PRId64, view->pid);
	if (view->uid >= 0)
		fprintf(out, " uid=%" PRId64, view->uid);
	if (view->command != NULL)
		fprintf(out, " command=%s", view->command);
}

static void write_since(FILE *out, const struct view_claim *view)
{
	if (view->since_ms > 0)
		fprintf(out, " since=%" PRId64, view->since_ms / 1000);
}

static const char *state_of(const struct view_claim *view)
{
	if (view->orphan)
		return "lost";
	return is_kept(view) ? "kept" : view->held ? "held" : "waiting";
}

/* delay_until is rounded up to a whole second: the lock is not granted later than it says. */
static void write_delay(FILE *out, const struct view_claim *view)
{
	if (view->lost_ms > 0)
		fprintf(out, " lost_since=%" PRId64, view->lost_ms / 1000);
	if (view->until_ms > 0)
		fprintf(out, " delay_until=%" PRId64, (view->until_ms + 999) / 1000);
}

static void write_claim(FILE *out, const struct view_claim *view, size_t position)
{
	bool ours = view->parts.id.session != 0;

	fprintf(out, "position=%zu state=%s%s%s mode=%s", position, state_of(view),
		view->held && view->keeps ? " maybe_kept=yes" : "",
		view->former ? " maybe_former=yes" : "", mode_name(view));
	if (ours)
		write_asker(out, view);
	write_since(out, view);
	write_delay(out, view);
	fprintf(out, " client=%s", ours ? "dlockfs" : "other");
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
	const struct view_claim *follower;
	size_t number = 0;

	DL_FOREACH (view->followers, follower) {
		fprintf(out, "position=%zu.%zu state=waiting mode=%s", position, ++number,
			mode_name(view));
		write_asker(out, follower);
		write_since(out, follower);
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
