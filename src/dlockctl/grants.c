/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/grants.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/text.h"

#define SECOND_US INT64_C(1000000)

struct grants_host {
	char *name;
	struct grant **ring; /* of the last grants, the oldest at `first` */
	size_t first, count;
};

/* Words of a line: "audit: granted kind=flock ... lock=NAME" */

static const char mark[] = "audit: ";

/* The text behind "audit: ", which is the message itself or stands behind the program's name; NULL:
 * the line is none of the audit. */
static const char *find_message(const char *line)
{
	const size_t bytes = strlen(mark);

	if (strncmp(line, mark, bytes) == 0)
		return line + bytes;
	for (const char *at = line; (at = strstr(at, "dlockfs")) != NULL;) {
		at += strlen("dlockfs");
		const char *end = *at == '[' ? strchr(at, ']') : NULL;
		const char *text = end != NULL ? end + 1 : at;
		if (strncmp(text, ": ", 2) == 0 && strncmp(text + 2, mark, bytes) == 0)
			return text + 2 + bytes;
	}
	return NULL;
}

/* Whether all words behind the first have a key, and the last one's is "lock": no other message has
 * that form, whatever names of locks stand in it. */
static bool has_form(const char *message)
{
	const char *word = strchr(message, ' ');
	bool is_lock = false;

	while (word != NULL) {
		word++;
		size_t bytes = strcspn(word, " \r\n");
		if (memchr(word, '=', bytes) == NULL)
			return false;
		is_lock = strncmp(word, "lock=", strlen("lock=")) == 0;
		word = strchr(word, ' ');
	}
	return is_lock;
}

/* The value of the key, decoded; empty if there is none. To be freed. */
static char *value_of(const char *message, const char *key)
{
	size_t bytes = strlen(key);

	for (const char *word = strchr(message, ' '); word != NULL; word = strchr(word, ' ')) {
		word++;
		if (strncmp(word, key, bytes) == 0 && word[bytes] == '=')
			return text_decode(word + bytes + 1, strcspn(word + bytes + 1, " \r\n"));
	}
	return must(strdup(""));
}

static int64_t number_of(const char *message, const char *key)
{
	char *value = value_of(message, key);
	long long number = -1;

	if (!parse_number(value, 0, INT64_MAX, &number))
		number = -1;
	free(value);
	return number;
}

/* "12.000345" as microseconds, or -1. */
static int64_t parse_us(const char *text)
{
	char *end;
	double seconds = isdigit((unsigned char)*text) ? strtod(text, &end) : -1;

	return seconds >= 0 && seconds < 1e12 ? (int64_t)(seconds * 1e6 + 0.5) : -1;
}

static int64_t seconds_of(const char *message, const char *key)
{
	char *value = value_of(message, key);
	int64_t us = parse_us(value);

	free(value);
	return us;
}

/* The minutes of a zone: "Z", "+01:00", "+0100"; false: there is none. */
static bool parse_zone(const char *text, int *ret_minutes)
{
	int hours, minutes = 0;

	*ret_minutes = 0;
	if (*text == 'Z')
		return true;
	if ((*text != '+' && *text != '-') || (sscanf(text + 1, "%2d:%2d", &hours, &minutes) != 2 &&
					       sscanf(text + 1, "%2d%2d", &hours, &minutes) != 2))
		return false;
	*ret_minutes = (hours * 60 + minutes) * (*text == '-' ? -1 : 1);
	return true;
}

/* The time that the line begins with, since 1970; -1: it begins with none. */
static int64_t time_of(const char *line)
{
	struct tm parts = {0};
	int bytes = 0, zone;
	double fraction = 0;
	char *end;

	if (sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d%n", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
		   &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &bytes) != 6)
		return strspn(line, "0123456789") >= 9 ? parse_us(line) : -1;
	const char *rest = line + bytes;
	if (*rest == '.' || *rest == ',') {
		char digits[16];
		snprintf(digits, sizeof(digits), "0.%.*s", (int)strspn(rest + 1, "0123456789"),
			 rest + 1);
		fraction = strtod(digits, &end);
		rest += 1 + strspn(rest + 1, "0123456789");
	}
	if (!parse_zone(rest, &zone))
		return -1;
	parts.tm_year -= 1900;
	parts.tm_mon--;
	time_t seconds = timegm(&parts);
	return seconds >= 0 ? (seconds - zone * 60) * SECOND_US + (int64_t)(fraction * 1e6 + 0.5)
			    : -1;
}

/* Hosts */

static struct grants_host *find_host(struct grants *grants, const char *message)
{
	char *name = value_of(message, "host");

	for (size_t i = 0; i < grants->hosts_count; i++) {
		if (strcmp(grants->hosts[i].name, name) == 0) {
			free(name);
			return &grants->hosts[i];
		}
	}
	if (grants->hosts_count == GRANTS_HOSTS_MAX) {
		free(name);
		return NULL;
	}
	grants->hosts =
		must(reallocarray(grants->hosts, grants->hosts_count + 1, sizeof(*grants->hosts)));
	struct grants_host *host = &grants->hosts[grants->hosts_count++];
	*host = (struct grants_host){
		.name = name,
		.ring = must(calloc(grants->limit, sizeof(struct grant *))),
	};
	return host;
}

/* The grant at that place among those that are kept, from 0, the oldest, on. */
static struct grant *grant_at(const struct grants *grants, const struct grants_host *host,
			      size_t place)
{
	return host->ring[(host->first + place) % grants->limit];
}

static void free_grant(struct grant *grant)
{
	free(grant->kind);
	free(grant->mode);
	free(grant->range);
	free(grant->command);
	free(grant->why);
	free(grant);
}

/* What a line says of who has the grant, or had it. */
static struct grant *read_grant(const struct grants_host *host, const char *message)
{
	struct grant *grant = must(malloc(sizeof(*grant)));

	*grant = (struct grant){
		.host = host->name,
		.kind = value_of(message, "kind"),
		.mode = value_of(message, "mode"),
		.range = value_of(message, "range"),
		.command = value_of(message, "command"),
		.why = value_of(message, "why"),
		.pid = number_of(message, "pid"),
		.uid = number_of(message, "uid"),
		.since_us = -1,
		.until_us = -1,
		.waited_us = seconds_of(message, "waited"),
		.held_us = seconds_of(message, "held"),
	};
	int64_t token = number_of(message, "token");
	grant->token = token > 0 ? (uint64_t)token : 0;
	return grant;
}

/* Takes the grant. */
static void add_grant(struct grants *grants, struct grants_host *host, struct grant *grant)
{
	size_t limit = grants->limit;

	if (host->count == limit) {
		free_grant(host->ring[host->first]);
		host->first = (host->first + 1) % limit;
		host->count--;
	}
	host->ring[(host->first + host->count++) % limit] = grant;
}

/* What a line says of a grant */

/* Reads "START-END", or "START-" to the end. */
static bool parse_range(const char *range, int64_t *ret_start, int64_t *ret_end)
{
	int bytes = 0;

	*ret_end = INT64_MAX;
	if (sscanf(range, "%" SCNd64 "-%n", ret_start, &bytes) != 1 || bytes == 0)
		return false;
	return range[bytes] == '\0' || sscanf(range + bytes, "%" SCNd64, ret_end) == 1;
}

static bool is_within(const char *part, const char *whole)
{
	int64_t start, end, first, last;

	return parse_range(part, &start, &end) && parse_range(whole, &first, &last) &&
	       first <= start && end <= last;
}

static bool is_record(const struct grant *grant)
{
	return strcmp(grant->kind, "record") == 0;
}

/* Whether the line is of who has the grant; what the line does not say is not compared. */
static bool is_of(const struct grant *line, const struct grant *grant)
{
	return grant->end == GRANT_GOES_ON && grant->pid == line->pid && grant->uid == line->uid &&
	       (*line->kind == '\0' || strcmp(line->kind, grant->kind) == 0) &&
	       (*line->mode == '\0' || strcmp(line->mode, grant->mode) == 0) &&
	       (*line->range == '\0' || is_within(grant->range, line->range));
}

static void note_token(struct grant *grant, const struct grant *line)
{
	if (line->token != 0)
		grant->token = line->token;
}

static void end_grant(struct grant *grant, const struct grant *line, enum grant_end end,
		      int64_t time_us)
{
	grant->end = end;
	grant->until_us = time_us;
	grant->held_us = line->held_us;
	if (grant->since_us < 0 && time_us >= 0 && line->held_us >= 0)
		grant->since_us = time_us - line->held_us;
	if (time_us < 0 && grant->since_us >= 0 && line->held_us >= 0)
		grant->until_us = grant->since_us + line->held_us;
	if (grant != line) {
		free(grant->why);
		grant->why = must(strdup(line->why));
	}
	note_token(grant, line);
}

/* The end of the latest grant of the caller; of record locks, of all in the range. Where the line
 * of the grant is not there, as in a log that begins later, the end says all that is known; but a
 * part of a range that is released ends no grant. Takes the line. */
static void note_end(struct grants *grants, struct grants_host *host, struct grant *line,
		     enum grant_end end, int64_t time_us)
{
	bool found = false;

	for (size_t i = host->count; i-- > 0 && (!found || is_record(line));) {
		struct grant *grant = grant_at(grants, host, i);
		if (!is_of(line, grant))
			continue;
		end_grant(grant, line, end, time_us);
		found = true;
	}
	if (found || *line->range != '\0') {
		free_grant(line);
		return;
	}
	end_grant(line, line, end, time_us);
	add_grant(grants, host, line);
}

/* It is of all that the caller holds. Takes the line. */
static void note_told(struct grants *grants, struct grants_host *host, struct grant *line)
{
	for (size_t i = host->count; i-- > 0;) {
		struct grant *grant = grant_at(grants, host, i);
		if (is_of(line, grant))
			note_token(grant, line);
	}
	free_grant(line);
}

static void note_line(struct grants *grants, struct grants_host *host, const char *message,
		      int64_t time_us)
{
	struct grant *line = read_grant(host, message);

	if (strncmp(message, "granted ", strlen("granted ")) == 0) {
		line->since_us = time_us;
		add_grant(grants, host, line);
	} else if (strncmp(message, "released ", strlen("released ")) == 0) {
		note_end(grants, host, line, GRANT_RELEASED, time_us);
	} else if (strncmp(message, "lost ", strlen("lost ")) == 0) {
		note_end(grants, host, line, GRANT_LOST, time_us);
	} else if (strncmp(message, "token ", strlen("token ")) == 0) {
		note_told(grants, host, line);
	} else {
		free_grant(line);
	}
}

void grants_begin(struct grants *grants, const char *lock, size_t limit)
{
	*grants = (struct grants){.lock = must(strdup(lock)), .limit = limit};
}

bool grants_add_line(struct grants *grants, const char *line, int64_t time_us)
{
	const char *message = find_message(line);
	int64_t own_us = message != NULL && message != line + strlen(mark) ? time_of(line) : -1;

	if (message == NULL || !has_form(message))
		return true;
	char *lock = value_of(message, "lock");
	bool is_meant = strcmp(lock, grants->lock) == 0;
	free(lock);
	if (!is_meant)
		return true;
	struct grants_host *host = find_host(grants, message);
	if (host == NULL)
		return false;
	grants->lines++;
	time_us = own_us >= 0 ? own_us : time_us;
	note_line(grants, host, message, time_us);
	return true;
}

/* The order */

/* The grants of one host, on their way into the order of all. */
struct stream {
	const struct grants_host *host;
	size_t next;
	uint64_t *least; /* the least token of each grant and those behind it; UINT64_MAX: none has
			    one */
	int64_t time_us; /* of the latest grant so far whose time is known */
};

static void begin_stream(struct stream *stream, const struct grants *grants,
			 const struct grants_host *host)
{
	*stream = (struct stream){
		.host = host,
		.least = must(calloc(host->count + 1, sizeof(*stream->least))),
	};
	stream->least[host->count] = UINT64_MAX;
	for (size_t i = host->count; i-- > 0;) {
		uint64_t token = grant_at(grants, host, i)->token;
		stream->least[i] =
			token != 0 && token < stream->least[i + 1] ? token : stream->least[i + 1];
	}
}

static int64_t time_of_next(const struct grants *grants, const struct stream *stream)
{
	int64_t since_us = grant_at(grants, stream->host, stream->next)->since_us;
	return since_us >= 0 ? since_us : stream->time_us;
}

/* The stream whose next grant is the next of all: of those that no token keeps back, the earliest
 * by the clocks. NULL: there are no more. */
static struct stream *choose(const struct grants *grants, struct stream *streams)
{
	struct stream *chosen = NULL;
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < grants->hosts_count; i++) {
		uint64_t token = streams[i].least[streams[i].next];
		least = token < least ? token : least;
	}
	for (size_t i = 0; i < grants->hosts_count; i++) {
		struct stream *stream = &streams[i];
		if (stream->next == stream->host->count)
			continue;
		bool is_free = grant_at(grants, stream->host, stream->next)->token == 0 ||
			       stream->least[stream->next] == least;
		if (is_free &&
		    (chosen == NULL || time_of_next(grants, stream) < time_of_next(grants, chosen)))
			chosen = stream;
	}
	return chosen;
}

struct grant **grants_order(struct grants *grants, size_t *ret_count)
{
	struct stream *streams = must(calloc(grants->hosts_count + 1, sizeof(*streams))), *stream;
	size_t count = 0;

	for (size_t i = 0; i < grants->hosts_count; i++) {
		begin_stream(&streams[i], grants, &grants->hosts[i]);
		count += grants->hosts[i].count;
	}
	struct grant **order = must(calloc(count + 1, sizeof(struct grant *)));
	*ret_count = 0;
	while ((stream = choose(grants, streams)) != NULL) {
		struct grant *grant = grant_at(grants, stream->host, stream->next);
		stream->time_us = time_of_next(grants, stream);
		stream->next++;
		grant->by_clock = grants->hosts_count > 1 && grant->token == 0;
		order[(*ret_count)++] = grant;
	}
	for (size_t i = 0; i < grants->hosts_count; i++)
		free(streams[i].least);
	free(streams);
	return order;
}

void grants_finish(struct grants *grants)
{
	for (size_t i = 0; i < grants->hosts_count; i++) {
		for (size_t j = 0; j < grants->hosts[i].count; j++)
			free_grant(grant_at(grants, &grants->hosts[i], j));
		free(grants->hosts[i].ring);
		free(grants->hosts[i].name);
	}
	free(grants->hosts);
	free(grants->lock);
	*grants = (struct grants){0};
}
