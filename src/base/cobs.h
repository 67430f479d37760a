/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as bytes among which there is no NUL, so that they can be the end of a string:
 * Consistent Overhead Byte Stuffing (Cheshire and Baker, SIGCOMM 1997), without a NUL at its end.
 * Of each group of up to 254 bytes the first one says how many they are, and that a NUL follows,
 * unless it is 255. So n bytes become at most n + n/254 + 1, whatever they are. Any thread.
 */
#ifndef DLOCKFS_BASE_COBS_H
#define DLOCKFS_BASE_COBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What so many bytes take at most. */
#define COBS_BYTES(count) ((count) + (count) / 254 + 1)

/* Writes the bytes. Errors stay with the stream (ferror(3)). */
void cobs_write(FILE *out, const void *bytes, size_t count);

/* Reads what cobs_write() has made of `count` bytes, into memory for as many. Returns false, and
 * leaves that memory undefined, if it is not. */
bool cobs_read(const void *text, size_t text_bytes, void *to, size_t count);

#endif
