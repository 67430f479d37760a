/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/runs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

/* Longer than any line that is written: a RUNS_MAX-th of RUNS_BYTES. */
enum { LINE_BYTES = RUNS_BYTES / RUNS_MAX };

/* A year is less than 2^35 ms: what is added to such a time does not overflow. */
#define TIME_MAX_MS (INT64_MAX / 4)

static bool parse_number(const char *value, uint64_t most, uint64_t *ret)
{
	char *end;

	if (*value < '0' || *value > '9')
		return false;
	errno = 0;
	*ret = strtoull(value, &end, 10);
	return errno == 0 && *end == '\0' && *ret <= most;
}

/* A time or a length of time. */
static bool parse_ms(const char *value, int64_t *ret)
{
	uint64_t number;

	if (!parse_number(value, TIME_MAX_MS, &number))
		return false;
	*ret = (int64_t)number;
	return true;
}

static bool parse_text(const char *value, char *to, size_t to_bytes)
{
	size_t bytes = strlen(value);

	if (bytes == 0 || bytes > 3 * (to_bytes - 1) || !escape_is_valid(value, bytes))
		return false;
	escape_decode_lenient(to, to_bytes, value, bytes);
	return true;
}

enum { HAS_START = 1, HAS_TOOK = 2, HAS_STATUS = 4, HAS_ALL = 7 };

/* Returns false if the value is not one of that key. */
static bool parse_word(const char *key, const char *value, struct run *run, unsigned *has)
{
	uint64_t number;

	if (strcmp(key, "start") == 0) {
		*has |= HAS_START;
		return parse_ms(value, &run->start_ms);
	}
	if (strcmp(key, "took") == 0) {
		*has |= HAS_TOOK;
		return parse_ms(value, &run->took_ms);
	}
	if (strcmp(key, "every") == 0)
		return parse_ms(value, &run->every_ms);
	if (strcmp(key, "token") == 0)
		return parse_number(value, UINT64_MAX, &run->token);
	if (strcmp(key, "host") == 0)
		return parse_text(value, run->host, sizeof(run->host));
	if (strcmp(key, "key") == 0)
		return parse_text(value, run->key, sizeof(run->key));
	if (strcmp(key, "status") == 0) {
		*has |= HAS_STATUS;
		if (!parse_number(value, 255, &number))
			return false;
		run->status = (int)number;
	} else if (strcmp(key, "uid") == 0) {
		if (!parse_number(value, UINT32_MAX, &number))
			return false;
		run->uid = (uint32_t)number;
	}
	return true;
}

static bool parse_line(const char *text, size_t bytes, struct run *ret)
{
	char line[LINE_BYTES], *rest = line, *word;
	unsigned has = 0;

	if (bytes >= sizeof(line) || memchr(text, '\0', bytes) != NULL)
		return false;
	memcpy(line, text, bytes);
	line[bytes] = '\0';
	*ret = (struct run){0};
	while ((word = strsep(&rest, " ")) != NULL) {
		char *value = strchr(word, '=');

		if (value == NULL)
			return false;
		*value++ = '\0';
		if (!parse_word(word, value, ret, &has))
			return false;
	}
	return has == HAS_ALL;
}

bool runs_next(const char **text, const char *end, struct run *ret)
{
	while (*text < end) {
		const char *line = *text;
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t bytes = (size_t)((newline != NULL ? newline : end) - line);

		*text = newline != NULL ? newline + 1 : end;
		if (parse_line(line, bytes, ret))
			return true;
	}
	return false;
}

bool runs_have(const char *text, size_t bytes, const struct run *run)
{
	const char *end = text + bytes;
	struct run other;

	while (runs_next(&text, end, &other)) {
		if (other.start_ms == run->start_ms && other.token == run->token &&
		    other.took_ms == run->took_ms && strcmp(other.key, run->key) == 0)
			return true;
	}
	return false;
}

/* The name of a host has plain characters; another one is cut, so that the line is not too long. */
void runs_write(FILE *out, const struct run *run)
{
	char host[RUN_HOST_BYTES];

	fprintf(out, "start=%" PRId64 " took=%" PRId64, run->start_ms, run->took_ms);
	if (run->every_ms > 0)
		fprintf(out, " every=%" PRId64, run->every_ms);
	fprintf(out, " status=%d token=%" PRIu64 " uid=%" PRIu32, run->status, run->token,
		run->uid);
	escape_format(host, sizeof(host), run->host);
	if (host[0] != '\0')
		fprintf(out, " host=%s", host);
	if (run->key[0] != '\0') {
		fputs(" key=", out);
		escape_write(out, run->key);
	}
	fputc('\n', out);
}

/* How many runs there are, and how many of them have failed. */
static size_t count(const char *text, const char *end, size_t *ret_failed)
{
	struct run run;
	size_t all = 0;

	*ret_failed = 0;
	for (; runs_next(&text, end, &run); all++)
		*ret_failed += run.status != 0;
	return all;
}

char *runs_add(const char *text, size_t bytes, const struct run *run)
{
	const char *end = text + bytes;
	char *added = NULL;
	size_t added_bytes, failed;
	FILE *out = open_memstream(&added, &added_bytes);
	size_t all = count(text, end, &failed);
	struct run old;

	if (out == NULL)
		return NULL;
	all += run != NULL;
	failed += run != NULL && run->status != 0;
	size_t drop_failed = failed > RUNS_FAILED_MAX ? failed - RUNS_FAILED_MAX : 0;
	size_t drop = all - drop_failed > RUNS_MAX ? all - drop_failed - RUNS_MAX : 0;

	while (runs_next(&text, end, &old)) {
		if (old.status != 0 && drop_failed > 0)
			drop_failed--;
		else if (drop > 0)
			drop--;
		else
			runs_write(out, &old);
	}
	if (run != NULL)
		runs_write(out, run);
	if (fclose(out) == 0)
		return added;
	free(added);
	return NULL;
}

bool runs_summarize(const char *text, size_t bytes, struct runs_summary *ret)
{
	const char *end = text + bytes;
	struct run run;

	*ret = (struct runs_summary){0};
	for (; runs_next(&text, end, &run); ret->count++) {
		ret->last = run;
		ret->failed += run.status != 0;
		if (run.status != 0)
			continue;
		ret->last_success = run;
		ret->has_success = true;
	}
	return ret->count > 0;
}

bool runs_want_key(const char *text, size_t bytes, const char *key)
{
	const char *end = text + bytes;
	struct run run;

	while (runs_next(&text, end, &run)) {
		if (run.status == 0 && strcmp(run.key, key) == 0)
			return false;
	}
	return true;
}

bool runs_want_period(const char *text, size_t bytes, int64_t every_ms, int64_t now_ms)
{
	const char *end = text + bytes;
	int64_t least_ms = every_ms - every_ms / 10;
	struct run run;

	while (runs_next(&text, end, &run)) {
		int64_t age_ms = now_ms - run.start_ms;

		if (run.status == 0 && age_ms < least_ms && age_ms > -least_ms)
			return false;
	}
	return true;
}
