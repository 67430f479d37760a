/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that are written as %XX. In values of "key=value" that stand in a line printable ASCII but
 * space and '%' stays as it is, and every other byte is written so. Any thread.
 */
#ifndef DLOCKFS_BASE_ESCAPE_H
#define DLOCKFS_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* Whether the byte stays as it is. */
static inline bool escape_is_plain(unsigned char byte)
{
	return byte > ' ' && byte < 0x7f && byte != '%';
}

/* Writes the byte as %XX. Returns the end. */
char *escape_put(char *to, unsigned char byte);

/* Writes the text as a value, cut so that it fits with its NUL, though not within a %XX. */
void escape_format(char *to, size_t to_bytes, const char *from);

/* Writes the whole text to a stream, in the form of escape_format(). */
void escape_write(FILE *out, const char *from);

/* Replaces each %XX, whose digits are 0-9 and A-F, as all of dlockfs writes them. Writes no more
 * than `bytes` bytes and a NUL; `to` may be `from`. Returns how many, without the NUL; -1: a '%'
 * has no such digits. */
ssize_t escape_decode(char *to, const char *from, size_t bytes);

/* Replaces each %XX of what others have written: small letters are digits, too, and a '%' without
 * digits stays, as does %00. The result is cut so that it fits with its NUL. */
void escape_decode_lenient(char *to, size_t to_bytes, const char *from, size_t bytes);

/* Whether these bytes are such a value, of at least one byte; small letters are digits, too. */
bool escape_is_valid(const char *value, size_t bytes);

#endif
