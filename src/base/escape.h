/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of "key=value" that stand in a line: printable ASCII but space and '%' stays as it is,
 * every other byte is written as %XX. Any thread.
 */
#ifndef DLOCKFS_BASE_ESCAPE_H
#define DLOCKFS_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether the byte stays as it is. */
static inline bool escape_is_plain(unsigned char byte)
{
	return byte > ' ' && byte < 0x7f && byte != '%';
}

/* Writes the text as a value, cut so that it fits with its NUL, though not within a %XX. */
void escape_format(char *to, size_t to_bytes, const char *from);

/* The same to a stream, all of it. */
void escape_write(FILE *out, const char *from);

/* Whether these bytes are such a value, of at least one byte. */
bool escape_is_valid(const char *value, size_t bytes);

#endif
