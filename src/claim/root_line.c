/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds lines in the data of a root. Must not know what they mean.
 */
#include "claim/root_line.h"

#include <string.h>

const char *root_line_find(const void *data, size_t bytes, const char *key, size_t *ret_bytes)
{
	const char *line = data, *end = line + bytes;
	size_t key_bytes = strlen(key);

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline != NULL ? newline : end;
		size_t line_bytes = (size_t)(line_end - line);

		if (line_bytes >= key_bytes && memcmp(line, key, key_bytes) == 0) {
			*ret_bytes = line_bytes - key_bytes;
			return line + key_bytes;
		}
		line = newline != NULL ? newline + 1 : end;
	}
	return NULL;
}
