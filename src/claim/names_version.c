/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of the version of names. Must not know what the versions mean. Any thread.
 */
#include "claim/names_version.h"

#include <string.h>

#define KEY		   "dlockfs-names="
#define VERSION_DIGITS_MAX 9

/* `value` goes on to the end of its line. */
static int parse_number(const char *value, size_t bytes)
{
	int number = 0;

	if (bytes == 0 || bytes > VERSION_DIGITS_MAX || *value == '0')
		return 0;
	for (size_t i = 0; i < bytes; i++) {
		if (value[i] < '0' || value[i] > '9')
			return 0;
		number = 10 * number + (value[i] - '0');
	}
	return number;
}

int names_version_parse(const void *data, size_t bytes)
{
	const char *line = data, *end = line + bytes;

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline ? newline : end;
		size_t line_bytes = (size_t)(line_end - line);

		if (line_bytes >= strlen(KEY) && memcmp(line, KEY, strlen(KEY)) == 0)
			return parse_number(line + strlen(KEY), line_bytes - strlen(KEY));
		line = newline ? newline + 1 : end;
	}
	return 1;
}
