/* SPDX-License-Identifier: Apache-2.0
 *
 * A text that several clients are sent, each at its own speed.
 */
#ifndef WEB_SHARED_H
#define WEB_SHARED_H

#include <stddef.h>

struct shared {
	size_t users;
	char *text;
	size_t bytes;
};

/* With one user. Takes the text. */
struct shared *shared_make(char *text, size_t bytes);

/* One user more, or less: the last one frees it. Both take NULL for no text. */
struct shared *shared_use(struct shared *shared);
void shared_drop(struct shared *shared);

#endif
