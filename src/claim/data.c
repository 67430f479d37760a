/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of a claim's data. Must not know what the caller's lines say. Any thread.
 *
 * Reads only lines that end in a newline: if the text was cut, the last line may not be whole.
 */
#include "claim/data.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_LINE "format=1\n"
#define RANGES_KEY  "ranges="
#define HOLDS_KEY   "holds="
#define WAITS_KEY   "waits="
#define KEEP_LINE   "keep=yes\n"
#define REST_KEY    "rest="
#define SLOTS_KEY   "slots="
#define SLOT_KEY    "slot="
#define TRIP_KEY    "trip="
#define PEER_KEY    "peer="
#define HOLD_KEY    "hold="
#define FOR_KEY	    "for="
#define TOKEN_KEY   "token="
#define REQUEUE_KEY "requeue="
#define UID_KEY	    "uid="
#define PID_KEY	    "pid="
#define COMMAND_KEY "command="
#define REVOKE_KEY  "revoke="
#define BREAK_KEY   "break="

static const char mode_letters[] = {[CLAIM_SHARED] = 'r', [CLAIM_EXCLUSIVE] = 'w'};

void claim_data_finish(struct claim_data *data)
{
	range_set_finish(&data->ranges);
	range_set_finish(&data->holds);
}

static void write_ranges(FILE *stream, const char *key, const struct range_set *set)
{
	fputs(key, stream);
	for (size_t i = 0; i < set->count; i++) {
		const struct range *range = &set->ranges[i];

		fprintf(stream, "%s%c%" PRId64 "-%" PRId64, i > 0 ? "," : "",
			mode_letters[range->mode], range->span.start, range->span.end);
	}
	fputc('\n', stream);
}

char *claim_data_format(const char *asker, const struct claim_data *data)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);
	bool failed;

	if (stream == NULL)
		return NULL;
	fputs(asker, stream);
	if (data->has_ranges)
		write_ranges(stream, RANGES_KEY, &data->ranges);
	if (data->has_holds)
		write_ranges(stream, HOLDS_KEY, &data->holds);
	if (data->waits)
		fprintf(stream, WAITS_KEY "%" PRId64 "\n", claim_name_number(data->waits_for));
	if (data->keeps)
		fputs(KEEP_LINE, stream);
	if (data->rest > 0)
		fprintf(stream, REST_KEY "%" PRId64 "\n", data->rest);
	if (data->slots > 0)
		fprintf(stream, SLOTS_KEY "%u\n", data->slots);
	if (data->slots > 0 && data->slot >= 0)
		fprintf(stream, SLOT_KEY "%d\n", data->slot);
	if (data->trip_ms > 0)
		fprintf(stream, TRIP_KEY "%" PRId64 "\n", data->trip_ms);

	failed = ferror(stream);
	if (fclose(stream) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* Reads the decimal number at *text, and moves *text behind it. */
static bool read_number(const char **text, int64_t *ret)
{
	const char *digits = **text == '-' ? *text + 1 : *text;
	char *end;

	if (!isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	*ret = strtoll(*text, &end, 10);
	*text = end;
	return errno == 0;
}

/* Reads "w0-63" at *text, and moves *text behind it. The caller checks where the range begins. */
static bool read_range(const char **text, struct range *ret)
{
	if (**text == mode_letters[CLAIM_SHARED])
		ret->mode = CLAIM_SHARED;
	else if (**text == mode_letters[CLAIM_EXCLUSIVE])
		ret->mode = CLAIM_EXCLUSIVE;
	else
		return false;
	++*text;
	if (!read_number(text, &ret->span.start) || *(*text)++ != '-' ||
	    !read_number(text, &ret->span.end))
		return false;
	return ret->span.start <= ret->span.end;
}

/* Returns 0, -EINVAL for a value that makes no sense, or -ENOMEM. */
static int read_ranges(const char *value, struct range_set *ret)
{
	struct range_set set = {0};
	int error = 0;

	if (*value == '\n')
		return -EINVAL; /* a claim that covers nothing is withdrawn */
	while (!error && *value != '\n') {
		struct range range;

		if (set.count > 0 && *value++ != ',')
			error = -EINVAL;
		/* An empty set ends at -1, so that no range may begin below 0. */
		else if (!read_range(&value, &range) ||
			 range.span.start <= range_set_span(&set).end)
			error = -EINVAL;
		else
			error = range_set_lock(&set, range.span, range.mode);
	}
	if (error)
		range_set_finish(&set);
	else
		*ret = set;
	return error;
}

/* Reads the number of a claim. */
static bool read_order(const char *value, int64_t *ret)
{
	int64_t number;

	if (!read_number(&value, &number) || *value != '\n' || number < INT32_MIN ||
	    claim_name_number(claim_name_order(number)) != number)
		return false;
	*ret = claim_name_order(number);
	return true;
}

static bool begins_with(const char *line, const char *key)
{
	return strncmp(line, key, strlen(key)) == 0;
}

/* Reads a number that is within the limits, else leaves *ret as it is. */
static void read_within(const char *value, int64_t least, int64_t most, int64_t *ret)
{
	int64_t number;

	if (read_number(&value, &number) && *value == '\n' && number >= least && number <= most)
		*ret = number;
}

static void read_slots(const char *line, struct claim_data *data)
{
	int64_t slots = data->slots, slot = data->slot;

	if (begins_with(line, SLOTS_KEY))
		read_within(line + strlen(SLOTS_KEY), 2, CLAIM_DATA_SLOTS_MAX, &slots);
	else if (begins_with(line, SLOT_KEY))
		read_within(line + strlen(SLOT_KEY), 0, CLAIM_DATA_SLOTS_MAX - 1, &slot);
	data->slots = (uint32_t)slots;
	data->slot = (int)slot;
}

/* Reads a word of printable ASCII; any other value leaves the word empty. */
static void read_peer(const char *value, char peer[CLAIM_DATA_PEER_BYTES])
{
	size_t length = 0;

	while (value[length] > ' ' && value[length] < 0x7f)
		length++;
	if (value[length] != '\n' || length >= CLAIM_DATA_PEER_BYTES)
		length = 0;
	memcpy(peer, value, length);
	peer[length] = '\0';
}

/* Reads a line with a set, if it makes sense. It replaces a set that was read before. */
static int read_set(const char *value, struct range_set *set, bool *has)
{
	struct range_set read;
	int error = read_ranges(value, &read);

	if (error)
		return error == -EINVAL ? 0 : error;
	range_set_finish(set);
	*set = read;
	*has = true;
	return 0;
}

/* Reads a line, which ends in a newline. A later one of the same key replaces an earlier one. */
static int read_line(const char *line, struct claim_data *data)
{
	int64_t order;

	if (begins_with(line, RANGES_KEY))
		return read_set(line + strlen(RANGES_KEY), &data->ranges, &data->has_ranges);
	if (begins_with(line, HOLDS_KEY))
		return read_set(line + strlen(HOLDS_KEY), &data->holds, &data->has_holds);
	if (begins_with(line, WAITS_KEY))
		data->waits |= read_order(line + strlen(WAITS_KEY), &data->waits_for);
	if (begins_with(line, REQUEUE_KEY))
		data->requeue |= read_order(line + strlen(REQUEUE_KEY), &order);
	if (begins_with(line, REST_KEY))
		read_within(line + strlen(REST_KEY), 1, INT64_MAX / 1000, &data->rest);
	if (begins_with(line, TRIP_KEY))
		read_within(line + strlen(TRIP_KEY), 0, CLAIM_DATA_TRIP_MAX_MS, &data->trip_ms);
	if (begins_with(line, FOR_KEY))
		read_within(line + strlen(FOR_KEY), 0, CLAIM_DATA_FOR_MAX_MS, &data->for_ms);
	if (begins_with(line, PEER_KEY))
		read_peer(line + strlen(PEER_KEY), data->peer);
	read_slots(line, data);
	data->keeps |= begins_with(line, KEEP_LINE);
	return 0;
}

int claim_data_parse(const char *text, struct claim_data *ret)
{
	struct claim_data data = {.slot = -1};
	int error = 0;

	if (strncmp(text, FORMAT_LINE, strlen(FORMAT_LINE)) == 0) {
		const char *line = text + strlen(FORMAT_LINE), *end;

		data.valid = true;
		for (; !error && (end = strchr(line, '\n')) != NULL; line = end + 1)
			error = read_line(line, &data);
	}
	if (error)
		claim_data_finish(&data);
	else
		*ret = data;
	return error;
}

char *claim_data_hold(const char *owner, int64_t for_ms, uint64_t token)
{
	char *text;

	if (asprintf(&text, HOLD_KEY "%s\n" FOR_KEY "%" PRId64 "\n" TOKEN_KEY "%" PRIu64 "\n",
		     owner, for_ms, token) < 0)
		return NULL;
	return text;
}

char *claim_data_set_for(const char *text, int64_t for_ms)
{
	const char *line = strstr(text, "\n" FOR_KEY);
	const char *behind = line != NULL ? strchr(line + 1, '\n') : NULL;
	size_t before = line != NULL ? (size_t)(line + 1 - text) : strlen(text);
	char *changed;

	if (asprintf(&changed, "%.*s" FOR_KEY "%" PRId64 "\n%s", (int)before, text, for_ms,
		     behind != NULL ? behind + 1 : "") < 0)
		return NULL;
	return changed;
}

/* Copies the value of the last line with the key, if there is one. Bytes that are not printable
 * ASCII, and spaces, become '?'. */
static bool read_who(const char *text, const char *key, char who[CLAIM_DATA_WHO_BYTES])
{
	const char *line = text, *end;
	bool found = false;

	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		size_t used = 0;

		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		for (const char *at = line + strlen(key); at < end; at++)
			if (used < CLAIM_DATA_WHO_BYTES - 1)
				who[used++] = (char)(*at > ' ' && *at < 0x7f ? *at : '?');
		who[used] = '\0';
		found = true;
	}
	return found;
}

enum claim_order claim_data_order(const char *text, char who[CLAIM_DATA_WHO_BYTES])
{
	if (strcmp(text, CLAIM_DATA_CURATOR_REVOKE) == 0) {
		snprintf(who, CLAIM_DATA_WHO_BYTES, "another-client");
		return CLAIM_ORDER_REVOKE;
	}
	if (strncmp(text, FORMAT_LINE, strlen(FORMAT_LINE)) != 0)
		return CLAIM_ORDER_NONE;
	if (read_who(text, BREAK_KEY, who))
		return CLAIM_ORDER_BREAK;
	return read_who(text, REVOKE_KEY, who) ? CLAIM_ORDER_REVOKE : CLAIM_ORDER_NONE;
}

bool claim_data_uid(const char *text, uint32_t *ret)
{
	char value[CLAIM_DATA_WHO_BYTES];
	const char *at = value;
	int64_t number;

	if (strncmp(text, FORMAT_LINE, strlen(FORMAT_LINE)) != 0 ||
	    !read_who(text, UID_KEY, value) || !read_number(&at, &number) || *at != '\0' ||
	    number < 0 || number > UINT32_MAX)
		return false;
	*ret = (uint32_t)number;
	return true;
}

void claim_data_words(const char *text, char words[CLAIM_DATA_WHO_BYTES])
{
	char pid[CLAIM_DATA_WHO_BYTES] = "", command[CLAIM_DATA_WHO_BYTES] = "";

	read_who(text, PID_KEY, pid);
	read_who(text, COMMAND_KEY, command);
	bool known = pid[0] != '\0' && strcmp(pid, "0") != 0;
	snprintf(words, CLAIM_DATA_WHO_BYTES, "%s%.20s%s%.64s%s", known ? "process " : "a process",
		 known ? pid : "", command[0] != '\0' ? " (" : "", command,
		 command[0] != '\0' ? ")" : "");
}

char *claim_data_add_requeue(const char *text, int64_t order)
{
	char *result;

	if (asprintf(&result, "%s" REQUEUE_KEY "%" PRId64 "\n", text, claim_name_number(order)) < 0)
		return NULL;
	return result;
}

char *claim_data_add_order(const char *text, enum claim_order order, const char *who)
{
	char *result;

	if (strncmp(text, FORMAT_LINE, strlen(FORMAT_LINE)) != 0 ||
	    strlen(text) > CLAIM_DATA_BYTES_MAX)
		return order == CLAIM_ORDER_REVOKE ? strdup(CLAIM_DATA_CURATOR_REVOKE) : NULL;
	if (asprintf(&result, "%s%s%s\n", text, order == CLAIM_ORDER_BREAK ? BREAK_KEY : REVOKE_KEY,
		     who) < 0)
		return NULL;
	return result;
}
