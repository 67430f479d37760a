/* SPDX-License-Identifier: Apache-2.0 */
#include "claim/host_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"

void host_entry_path(char path[HOST_ENTRY_PATH_BYTES], uint64_t session)
{
	snprintf(path, HOST_ENTRY_PATH_BYTES, HOST_ENTRY_DIRECTORY "//%016" PRIx64 ".host",
		 session);
}

static bool is_word(const char *word, size_t bytes)
{
	const char *value = memchr(word, '=', bytes);

	return value != NULL && value > word &&
	       escape_is_valid(value + 1, (size_t)(word + bytes - value - 1));
}

/* Words with a space between. */
static bool is_line(const char *line, size_t bytes)
{
	const char *end = line + bytes;

	for (;;) {
		const char *space = memchr(line, ' ', (size_t)(end - line));
		const char *word_end = space != NULL ? space : end;

		if (!is_word(line, (size_t)(word_end - line)))
			return false;
		if (space == NULL)
			return true;
		line = space + 1;
	}
}

const char *host_entry_next(const char **text, const char *end, size_t *ret_bytes)
{
	while (*text < end) {
		const char *line = *text;
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		*ret_bytes = (size_t)((newline != NULL ? newline : end) - line);
		*text = newline != NULL ? newline + 1 : end;
		if (is_line(line, *ret_bytes))
			return line;
	}
	return NULL;
}
