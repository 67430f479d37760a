/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns where a line's comment begins, and where a long line may be cut. Any thread.
 */
#include "config/line.h"

#include <string.h>

#include "config/value.h"

void line_end_at_comment(char *text)
{
	char *end = text;

	while ((end = strchr(end + 1, ';')) != NULL && strchr(CONFIG_BLANKS, end[-1]) == NULL) {
	}
	while (end != NULL && end > text && strchr(CONFIG_BLANKS, end[-1]) != NULL)
		end--;
	if (end != NULL)
		*end = '\0';
}

const char *line_find_comment(const char *value)
{
	const char *found = value;

	while ((found = strchr(found, '#')) != NULL && found > value &&
	       strchr(CONFIG_BLANKS, found[-1]) == NULL)
		found++;
	return found;
}

size_t line_measure_part(const char *text, size_t longest, const char **ret_rest)
{
	size_t bytes = strnlen(text, longest + 1);
	const char *rest;

	*ret_rest = NULL;
	if (bytes <= longest)
		return bytes;
	for (bytes = longest; bytes > 0; bytes--) {
		rest = text + bytes + strspn(text + bytes, CONFIG_BLANKS);
		if (strchr(CONFIG_BLANKS, text[bytes - 1]) == NULL && strchr("#;", *rest) == NULL) {
			*ret_rest = rest;
			break;
		}
	}
	return bytes;
}
