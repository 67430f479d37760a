/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of the root of a store, which are lines "KEY=VALUE" of dlockfs among whatever else is
 * there, any bytes.
 *
 * Pure functions, any thread.
 */
#ifndef DLOCKFS_CLAIM_ROOT_LINE_H
#define DLOCKFS_CLAIM_ROOT_LINE_H

#include <stddef.h>

/* The first line that begins with the key, which ends in "=": its value, which goes on to the end
 * of the line and is not ended by a NUL. NULL: there is none. */
const char *root_line_find(const void *data, size_t bytes, const char *key, size_t *ret_bytes);

#endif
