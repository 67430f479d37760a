/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: whether a journal (journal/journal.h) has what it is to have.
 */
#ifndef DLOCKFS_KEPT_H
#define DLOCKFS_KEPT_H

#include <stdbool.h>
#include <stddef.h>

/* What is kept, as a text to be freed, without the line that ends it. NULL, and one line in `why`:
 * it cannot be read. The descriptor stays the caller's. */
char *kept_read(int descriptor, char *why, size_t why_bytes);

/* Whether both have the same lines, in whatever order; if not, the first that is different is in
 * `why`. Changes both. */
bool kept_is_same(char *kept, char *known, char *why, size_t why_bytes);

#endif
