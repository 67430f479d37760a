/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that comes in part from other hosts, users or servers, on its way to a log or a terminal.
 * What is no UTF-8 is written as \xNN, byte by byte, and so are characters that cannot be seen, or
 * that change how others are: controls (of 8 bits, too, as U+009B), directions (as U+202E), other
 * format characters, those without a width or of the end of a line. The letters of all scripts,
 * with their marks, stay. Any thread.
 */
#ifndef DLOCKFS_BASE_PRINTABLE_H
#define DLOCKFS_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* So many bytes become of one byte at most. */
#define PRINTABLE_BYTES_MAX 4

/* Whether the character, a code point of Unicode, stays as it is. */
bool printable_is(uint32_t character);

/* Appends the text; returns the end, where a NUL is. */
char *printable_append(char *to, const char *text);

/* Writes the text to a stream, in the form of printable_append(). */
void printable_write(FILE *out, const char *text);

#endif
