/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/escape.h"

/* Writing */

/* These lines are written with each change of a lock, for which printf(3) would be too slow. */

enum { DIGITS_MAX = 20, ESCAPED_AT_ONCE = 256 };

void state_begin(FILE *out, const char *word)
{
	fputs_unlocked(word, out);
}

static void put_key(FILE *out, const char *key)
{
	putc_unlocked(' ', out);
	fputs_unlocked(key, out);
	putc_unlocked('=', out);
}

static void put_number(FILE *out, const char *key, bool negative, uint64_t number)
{
	char digits[DIGITS_MAX + 1];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	if (negative)
		digits[--at] = '-';
	put_key(out, key);
	fwrite_unlocked(digits + at, 1, sizeof(digits) - at, out);
}

void state_number(FILE *out, const char *key, int64_t number)
{
	put_number(out, key, number < 0, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void state_unsigned(FILE *out, const char *key, uint64_t number)
{
	put_number(out, key, false, number);
}

void state_time(FILE *out, const char *key, struct timespec time)
{
	state_number(out, key, clock_ns_of(time));
}

/* Escapes the bytes. Returns the end of what was written. */
static char *escape(const unsigned char *bytes, size_t count, char *to)
{
	for (size_t i = 0; i < count; i++) {
		if (escape_is_plain(bytes[i]))
			*to++ = (char)bytes[i];
		else
			to = escape_put(to, bytes[i]);
	}
	return to;
}

void state_bytes(FILE *out, const char *key, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	char escaped[3 * ESCAPED_AT_ONCE];

	put_key(out, key);
	while (count > 0) {
		size_t part = count < ESCAPED_AT_ONCE ? count : ESCAPED_AT_ONCE;
		fwrite_unlocked(escaped, 1, (size_t)(escape(at, part, escaped) - escaped), out);
		at += part;
		count -= part;
	}
}

void state_text(FILE *out, const char *key, const char *text)
{
	state_bytes(out, key, text, strlen(text));
}

void state_ranges(FILE *out, const char *key, const struct range_set *ranges)
{
	fprintf(out, " %s=", key);
	for (size_t i = 0; i < ranges->count; i++) {
		const struct range *range = &ranges->ranges[i];
		fprintf(out, "%s%c%" PRId64 "-%" PRId64, i > 0 ? "," : "",
			range->mode == CLAIM_EXCLUSIVE ? 'w' : 'r', range->span.start,
			range->span.end);
	}
}

void state_flag(FILE *out, const char *key, bool flag)
{
	if (flag)
		state_number(out, key, 1);
}

void state_end(FILE *out)
{
	putc_unlocked('\n', out);
}

/* Reading */

void state_reader_init(struct state_reader *reader, FILE *in)
{
	*reader = (struct state_reader){.in = in};
}

void state_reader_finish(struct state_reader *reader)
{
	free(reader->line);
	reader->line = NULL;
	reader->field_count = 0;
}

int state_refuse(struct state_reader *reader, const char *key, const char *expected)
{
	const char *word = reader->word != NULL ? reader->word : "";

	if (reader->why[0] == '\0')
		snprintf(reader->why, sizeof(reader->why), "line %lu%s%.40s%s%s: expected %s",
			 reader->line_number, word[0] != '\0' ? ": " : "", word,
			 key != NULL ? ": " : "", key != NULL ? key : "", expected);
	return -EINVAL;
}

int state_starve(struct state_reader *reader)
{
	if (reader->why[0] == '\0') {
		snprintf(reader->why, sizeof(reader->why), "line %lu: out of memory",
			 reader->line_number);
		reader->starved = true;
	}
	return -ENOMEM;
}

bool state_failed(const struct state_reader *reader)
{
	return reader->why[0] != '\0';
}

/* Splits the line into its word and fields. */
static int split(struct state_reader *reader)
{
	char *rest = reader->line;

	reader->field_count = 0;
	reader->word = strsep(&rest, " ");
	for (const char *at = reader->word; *at != '\0'; at++) {
		if (!islower((unsigned char)*at))
			return state_refuse(reader, NULL, "a word of small letters");
	}
	if (*reader->word == '\0')
		return state_refuse(reader, NULL, "a word");
	while (rest != NULL) {
		char *pair = strsep(&rest, " ");
		char *value = strchr(pair, '=');
		if (value == NULL || value == pair)
			return state_refuse(reader, NULL, "KEY=VALUE, with one space between");
		if (reader->field_count == STATE_FIELDS_MAX)
			return state_refuse(reader, NULL, "fewer keys");
		*value = '\0';
		struct state_field *field = &reader->fields[reader->field_count++];
		field->key = pair;
		field->value = value + 1;
		ssize_t bytes = escape_decode(field->value, field->value, strlen(field->value));
		if (bytes < 0)
			return state_refuse(reader, NULL, "%XX with two digits 0-9, A-F");
		field->bytes = (size_t)bytes;
	}
	return 1;
}

int state_next(struct state_reader *reader)
{
	if (state_failed(reader))
		return -EINVAL;
	if (reader->again) {
		reader->again = false;
		return 1;
	}
	reader->word = NULL;
	reader->field_count = 0;
	reader->line_number++;
	errno = 0;
	ssize_t length = getline(&reader->line, &reader->line_capacity, reader->in);
	if (length < 0 && errno == ENOMEM)
		return state_starve(reader);
	if (length < 0 && ferror(reader->in)) {
		snprintf(reader->why, sizeof(reader->why), "line %lu: %s", reader->line_number,
			 strerror(errno));
		return -EIO;
	}
	if (length < 0)
		return 0;
	if (reader->line[length - 1] != '\n')
		return state_refuse(reader, NULL, "a newline at its end");
	reader->line[length - 1] = '\0';
	if (strlen(reader->line) != (size_t)length - 1)
		return state_refuse(reader, NULL, "no NUL");
	return split(reader);
}

void state_again(struct state_reader *reader)
{
	reader->again = true;
}

static const struct state_field *find(const struct state_reader *reader, const char *key)
{
	for (size_t i = 0; i < reader->field_count; i++) {
		if (strcmp(reader->fields[i].key, key) == 0)
			return &reader->fields[i];
	}
	return NULL;
}

bool state_has(const struct state_reader *reader, const char *key)
{
	return find(reader, key) != NULL;
}

/* Whether the value is digits, behind a sign if it may have one. */
static bool is_number(const struct state_field *field, bool may_be_negative)
{
	const char *digits = field->value;

	if (may_be_negative && *digits == '-')
		digits++;
	return *digits != '\0' && strspn(digits, "0123456789") == strlen(digits) &&
	       strlen(field->value) == field->bytes;
}

int64_t state_get_number(struct state_reader *reader, const char *key, int64_t least, int64_t most)
{
	const struct state_field *field = find(reader, key);
	char expected[96];

	errno = 0;
	if (field != NULL && is_number(field, true)) {
		long long number = strtoll(field->value, NULL, 10);
		if (errno == 0 && number >= least && number <= most)
			return number;
	}
	snprintf(expected, sizeof(expected), "a number from %" PRId64 " to %" PRId64, least, most);
	state_refuse(reader, key, expected);
	return least;
}

uint64_t state_get_unsigned(struct state_reader *reader, const char *key, uint64_t most)
{
	const struct state_field *field = find(reader, key);
	char expected[64];

	errno = 0;
	if (field != NULL && is_number(field, false)) {
		unsigned long long number = strtoull(field->value, NULL, 10);
		if (errno == 0 && number <= most)
			return number;
	}
	snprintf(expected, sizeof(expected), "a number up to %" PRIu64, most);
	state_refuse(reader, key, expected);
	return 0;
}

const void *state_get_bytes(struct state_reader *reader, const char *key, size_t *ret_count)
{
	const struct state_field *field = find(reader, key);

	*ret_count = 0;
	if (field == NULL) {
		state_refuse(reader, key, "a value");
		return "";
	}
	*ret_count = field->bytes;
	return field->value;
}

const char *state_get_text(struct state_reader *reader, const char *key)
{
	size_t bytes;
	const char *text = state_get_bytes(reader, key, &bytes);

	if (strlen(text) == bytes)
		return text;
	state_refuse(reader, key, "text without a NUL");
	return "";
}

struct timespec state_get_time(struct state_reader *reader, const char *key)
{
	return clock_time_of(state_get_number(reader, key, CLOCK_NS_LEAST, INT64_MAX));
}

size_t state_get_word(struct state_reader *reader, const char *key, const char *const words[],
		      size_t count)
{
	const char *text = state_get_text(reader, key);

	for (size_t i = 0; i < count; i++) {
		if (words[i] != NULL && strcmp(words[i], text) == 0)
			return i;
	}
	state_refuse(reader, key, "a word that is known");
	return 0;
}

int64_t state_find_number(struct state_reader *reader, const char *key, int64_t least, int64_t most)
{
	return state_has(reader, key) ? state_get_number(reader, key, least, most) : 0;
}

uint64_t state_find_unsigned(struct state_reader *reader, const char *key, uint64_t most)
{
	return state_has(reader, key) ? state_get_unsigned(reader, key, most) : 0;
}

bool state_find_flag(struct state_reader *reader, const char *key)
{
	return state_find_unsigned(reader, key, 1) != 0;
}

/* Reads the offset that *text begins with, and moves on behind it. */
static bool read_offset(const char **text, int64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*ret = strtoll(*text, &end, 10);
	*text = end;
	return errno == 0;
}

/* The same of "w0-63". */
static bool read_range(const char **text, struct range *ret)
{
	if (**text != 'w' && **text != 'r')
		return false;
	ret->mode = *(*text)++ == 'w' ? CLAIM_EXCLUSIVE : CLAIM_SHARED;
	return read_offset(text, &ret->span.start) && *(*text)++ == '-' &&
	       read_offset(text, &ret->span.end) && ret->span.start <= ret->span.end;
}

int state_get_ranges(struct state_reader *reader, const char *key, struct range_set *ret)
{
	static const char expected[] = "ranges in order, such as w0-9,r20-29";
	const char *text = state_get_text(reader, key);
	struct range range;
	int64_t end = -1;

	*ret = (struct range_set){0};
	if (state_failed(reader))
		return -EINVAL;
	while (*text != '\0') {
		if ((end >= 0 && *text++ != ',') || !read_range(&text, &range) ||
		    range.span.start <= end) {
			range_set_finish(ret);
			return state_refuse(reader, key, expected);
		}
		if (range_set_lock(ret, range.span, range.mode) < 0) {
			range_set_finish(ret);
			return state_starve(reader);
		}
		end = range.span.end;
	}
	return 0;
}
