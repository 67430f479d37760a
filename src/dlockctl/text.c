/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "dlockctl/dlockctl.h"
#include "dlockctl/shown.h"

char *text_decode(const char *text, size_t bytes)
{
	char *decoded = must(malloc(bytes + 1));

	escape_decode_lenient(decoded, bytes + 1, text, bytes);
	return decoded;
}

char *text_printable(const char *text)
{
	size_t left = text != NULL ? strlen(text) : 0;
	char *printable = must(malloc(left * 4 + 1)), *to = printable;
	while (left > 0) {
		int columns;
		size_t length = shown_bytes(text, left, &columns);
		if (*text == '\\') {
			*to++ = '\\';
			*to++ = '\\';
		} else if (length > 0) {
			memcpy(to, text, length);
			to += length;
		} else {
			length = 1;
			to += sprintf(to, "\\x%02X", (unsigned char)*text);
		}
		length = length > 0 ? length : 1;
		text += length;
		left -= length;
	}
	*to = '\0';
	return printable;
}

size_t text_width(const char *text)
{
	size_t left = strlen(text), width = 0;
	while (left > 0) {
		int columns = 1;
		size_t length = shown_bytes(text, left, &columns);
		length = length > 0 ? length : 1;
		width += (size_t)columns;
		text += length;
		left -= length;
	}
	return width;
}

void text_cut(char *text, size_t columns)
{
	size_t left = strlen(text), width = 0;
	if (text_width(text) <= columns)
		return;
	while (left > 0) {
		int wide = 1;
		size_t length = shown_bytes(text, left, &wide);
		if (width + (size_t)wide + 1 > columns)
			break;
		length = length > 0 ? length : 1;
		width += (size_t)wide;
		text += length;
		left -= length;
	}
	if (columns > 0)
		*text++ = '~';
	*text = '\0';
}

void text_age(int64_t seconds, char age[TEXT_AGE_BYTES])
{
	if (seconds < 0)
		seconds = 0; /* the clocks of hosts differ */
	if (seconds < 60)
		snprintf(age, TEXT_AGE_BYTES, "%" PRId64 "s", seconds);
	else if (seconds < 60 * 60)
		snprintf(age, TEXT_AGE_BYTES, "%" PRId64 "m%02" PRId64 "s", seconds / 60,
			 seconds % 60);
	else if (seconds < 24 * 60 * 60)
		snprintf(age, TEXT_AGE_BYTES, "%" PRId64 "h%02" PRId64 "m", seconds / 3600,
			 seconds / 60 % 60);
	else
		snprintf(age, TEXT_AGE_BYTES, "%" PRId64 "d%02" PRId64 "h", seconds / 86400,
			 seconds / 3600 % 24);
}

const char *text_plural(size_t count)
{
	return count == 1 ? "" : "s";
}
