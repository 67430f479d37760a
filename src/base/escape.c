/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"

#include <string.h>

char *escape_put(char *to, unsigned char byte)
{
	static const char hex[] = "0123456789ABCDEF";

	*to++ = '%';
	*to++ = hex[byte >> 4];
	*to++ = hex[byte & 15];
	return to;
}

void escape_format(char *to, size_t to_bytes, const char *from)
{
	const char *end = to + to_bytes;

	for (; *from != '\0' && end - to >= 4; from++) {
		if (escape_is_plain((unsigned char)*from))
			*to++ = *from;
		else
			to = escape_put(to, (unsigned char)*from);
	}
	*to = '\0';
}

void escape_write(FILE *out, const char *from)
{
	char escaped[3];

	for (; *from != '\0'; from++) {
		if (escape_is_plain((unsigned char)*from))
			fputc(*from, out);
		else
			fwrite(escaped, 1,
			       (size_t)(escape_put(escaped, (unsigned char)*from) - escaped), out);
	}
}

/* -1: it is none. */
static int digit_value(char digit, bool lenient)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return lenient && digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* What the %XX at the beginning of the text stands for; -1: there is none. */
static int byte_of(const char *text, size_t bytes, bool lenient)
{
	if (bytes < 3 || text[0] != '%')
		return -1;
	int high = digit_value(text[1], lenient);
	int low = high < 0 ? -1 : digit_value(text[2], lenient);
	return low < 0 ? -1 : high << 4 | low;
}

ssize_t escape_decode(char *to, const char *from, size_t bytes)
{
	const char *begin = to, *end = from + bytes;

	while (from < end) {
		const char *escape = memchr(from, '%', (size_t)(end - from));
		size_t plain = (size_t)((escape != NULL ? escape : end) - from);
		int byte;

		memmove(to, from, plain);
		to += plain;
		from += plain;
		if (escape == NULL)
			break;
		byte = byte_of(from, (size_t)(end - from), false);
		if (byte < 0)
			return -1;
		*to++ = (char)byte;
		from += 3;
	}
	*to = '\0';
	return to - begin;
}

void escape_decode_lenient(char *to, size_t to_bytes, const char *from, size_t bytes)
{
	const char *end = from + bytes;

	for (; from < end && to_bytes > 1; to_bytes--) {
		int byte = byte_of(from, (size_t)(end - from), true);

		*to++ = byte > 0 ? (char)byte : *from;
		from += byte > 0 ? 3 : 1;
	}
	*to = '\0';
}

bool escape_is_valid(const char *value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (escape_is_plain((unsigned char)value[i]))
			continue;
		if (byte_of(value + i, bytes - i, true) < 0)
			return false;
		i += 2;
	}
	return bytes > 0;
}
