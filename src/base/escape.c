/* SPDX-License-Identifier: Apache-2.0 */
#include "base/escape.h"

#include <ctype.h>

void escape_format(char *to, size_t to_bytes, const char *from)
{
	size_t used = 0;

	for (; *from != '\0' && used + 4 <= to_bytes; from++) {
		unsigned char byte = (unsigned char)*from;
		if (escape_is_plain(byte))
			to[used++] = (char)byte;
		else
			used += (size_t)snprintf(to + used, 4, "%%%02X", byte);
	}
	to[used] = '\0';
}

void escape_write(FILE *out, const char *from)
{
	for (; *from != '\0'; from++) {
		unsigned char byte = (unsigned char)*from;
		if (escape_is_plain(byte))
			fputc(byte, out);
		else
			fprintf(out, "%%%02X", byte);
	}
}

bool escape_is_valid(const char *value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (escape_is_plain((unsigned char)value[i]))
			continue;
		if (value[i] != '%' || bytes - i < 3 || !isxdigit((unsigned char)value[i + 1]) ||
		    !isxdigit((unsigned char)value[i + 2]))
			return false;
		i += 2;
	}
	return bytes > 0;
}
