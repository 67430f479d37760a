/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of the version of names. Must not know what the versions mean. Any thread.
 */
#include "claim/names_version.h"

#include "claim/root_line.h"

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
	size_t value_bytes;
	const char *value = root_line_find(data, bytes, KEY, &value_bytes);

	return value != NULL ? parse_number(value, value_bytes) : NAMES_VERSION;
}
