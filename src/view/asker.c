/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks for a claim.
 */
#include "view/asker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

#define FORMAT_LINE	"format=1\n"
#define VALUE_BYTES_MAX 1024

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

/* The value of the key, if the line is "key=value" with that key; NULL: it is not. */
static const char *value_of(const char *line, size_t bytes, const char *key, size_t *ret_bytes)
{
	size_t key_bytes = strlen(key);

	if (bytes <= key_bytes || memcmp(line, key, key_bytes) != 0 || line[key_bytes] != '=')
		return NULL;
	*ret_bytes = bytes - key_bytes - 1;
	return line + key_bytes + 1;
}

/* What the host that placed the claim says, for services that stamp nothing. */
static void read_since(struct view_asker *asker, const char *value, size_t bytes)
{
	int64_t since_s = asker->since_ms == 0 ? read_number(value, bytes, UINT32_MAX) : 0;

	if (since_s <= 0)
		return;
	asker->since_ms = since_s * 1000;
	asker->by_host = true;
}

static int read_line(struct view_asker *asker, const char *line, size_t line_bytes)
{
	const char *value;
	size_t bytes;

	if ((value = value_of(line, line_bytes, "host", &bytes)) != NULL)
		return read_text(value, bytes, &asker->host);
	if ((value = value_of(line, line_bytes, "command", &bytes)) != NULL)
		return read_text(value, bytes, &asker->command);
	if ((value = value_of(line, line_bytes, "kind", &bytes)) != NULL)
		asker->kind = read_kind(value, bytes);
	else if ((value = value_of(line, line_bytes, "client", &bytes)) != NULL)
		asker->is_other = bytes == strlen("other") && memcmp(value, "other", bytes) == 0;
	else if ((value = value_of(line, line_bytes, "pid", &bytes)) != NULL)
		asker->pid = read_number(value, bytes, INT32_MAX);
	else if ((value = value_of(line, line_bytes, "uid", &bytes)) != NULL)
		asker->uid = read_number(value, bytes, UINT32_MAX);
	else if ((value = value_of(line, line_bytes, "since", &bytes)) != NULL)
		read_since(asker, value, bytes);
	return 0;
}

int view_asker_read(struct view_asker *asker, const char *text)
{
	const char *end;
	int error = 0;

	if (strncmp(text, FORMAT_LINE, strlen(FORMAT_LINE)) != 0)
		return 0;
	for (; error == 0 && (end = strchr(text, '\n')) != NULL; text = end + 1)
		error = read_line(asker, text, (size_t)(end - text));
	return error;
}

void view_asker_drop(struct view_asker *asker)
{
	free(asker->host);
	free(asker->command);
	asker->host = asker->command = NULL;
	asker->kind = NULL;
	asker->is_other = false;
	asker->pid = asker->uid = -1;
}

int view_asker_set(struct view_asker *asker, const char *text)
{
	view_asker_drop(asker);
	asker->since_ms = 0;
	return view_asker_read(asker, text);
}

void view_asker_write_kind(FILE *out, const struct view_asker *asker)
{
	if (asker->kind != NULL)
		fprintf(out, " kind=%s", asker->kind);
}

void view_asker_write(FILE *out, const struct view_asker *asker)
{
	if (asker->host != NULL)
		fprintf(out, " host=%s", asker->host);
	if (asker->pid >= 0)
		fprintf(out, " pid=%" PRId64, asker->pid);
	if (asker->uid >= 0)
		fprintf(out, " uid=%" PRId64, asker->uid);
	if (asker->command != NULL)
		fprintf(out, " command=%s", asker->command);
}

void view_asker_write_since(FILE *out, const struct view_asker *asker)
{
	if (asker->since_ms > 0)
		fprintf(out, " since=%" PRId64 "%s", asker->since_ms / 1000,
			asker->by_host ? " clock=host" : "");
}
