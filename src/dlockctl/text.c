/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/shown.h"

static int hex_digit(char letter)
{
	if (letter >= '0' && letter <= '9')
		return letter - '0';
	if (letter >= 'A' && letter <= 'F')
		return letter - 'A' + 10;
	if (letter >= 'a' && letter <= 'f')
		return letter - 'a' + 10;
	return -1;
}

char *text_decode(const char *text, size_t bytes)
{
	char *decoded = must(malloc(bytes + 1)), *to = decoded;
	for (size_t i = 0; i < bytes; i++) {
		int high = text[i] == '%' && bytes - i > 2 ? hex_digit(text[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
		if (low >= 0 && (high != 0 || low != 0)) {
			*to++ = (char)(high * 16 + low);
			i += 2;
		} else {
			*to++ = text[i];
		}
	}
	*to = '\0';
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
