/* SPDX-License-Identifier: Apache-2.0
 *
 * The words by which Redis servers say what is wrong: what each means for who asks, and for people.
 * Source: src/server.c and src/script.c of Redis 7.0, createSharedObjects() and
 * scriptPrepareForRun(). Pure functions, any thread.
 */
#ifndef DLOCKFS_STORES_REDIS_WIRE_WORD_H
#define DLOCKFS_STORES_REDIS_WIRE_WORD_H

#include <stdbool.h>

struct word {
	const char *text;
	int error;	     /* as in struct redis_answer */
	bool ends;	     /* another connection may lead to a server that can do it */
	const char *trouble; /* why nothing can be locked; NULL: it is about one key or request */
};

/* The first word of an error that is known, wherever it stands: what a script meets is quoted in an
 * error of the script up to Redis 6. NULL: there is none. */
const struct word *word_find(const char *error);

/* The script is not in the server's cache, which RESTART, SCRIPT FLUSH and EVAL of many others
 * empty. */
bool word_is_noscript(const char *error);

#endif
