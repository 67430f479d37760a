/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock whose numbers run out (claim/name.h): new claims are held back until its queue is empty,
 * and the numbers start anew. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_NUMBERS_H
#define DLOCKFS_ENGINE_BOOKS_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim;
struct lock;
struct store_entry;

/* Of a lock. */
struct numbers {
	bool worn; /* a late order stands there, as far as is known: new claims are held back */
	int64_t late_order;    /* the latest one that was seen, while it is worn; 0: none was yet */
	int64_t worn_since_ms; /* since then it is */
	size_t listed;	       /* in the latest list: claims and orphans, */
	size_t listed_orphans; /* and how many of them were orphans */
	bool spent;	       /* the last number there is stands in the queue */
	bool put_off;	       /* the store takes no claim for the moment */
};

enum { NUMBERS_LOOK_MS = 50 }; /* how soon to look again while somebody waits for that */

/* Whether a WANTED claim must not be placed now. What is needed to go on is asked for. */
bool numbers_hold_back(struct claim *claim);

/* Whether several claims may have this order: nothing is granted by it. */
bool numbers_are_unsure(const struct lock *lock, int64_t order);

/* A claim stands in the queue with this order. */
void numbers_note(struct lock *lock, int64_t order);

/* The queue is this, in its order. */
void numbers_note_queue(struct lock *lock, const struct store_entry *entries, size_t count);

/* A list has been merged. While claims are held back, reads what may be none. */
void numbers_read_names(const struct lock *lock);

/* Whether a claim that was held back needs a list. */
bool numbers_need_list(const struct lock *lock);

/* The last claim of this host has left the queue. */
void numbers_look(struct lock *lock);

/* Claims are held back: looks again in a while. */
void numbers_look_later(const struct lock *lock);

/* The time to send again what could not be sent has come. */
void numbers_resume(struct lock *lock);

/* The store has put a claim off. */
void numbers_put_off(struct lock *lock);

/* Another process has placed claims of the lock, and this one goes on with some that do not stand
 * yet: they are held back until a list shows whether they have to be. */
void numbers_restored(struct lock *lock);

/* A wish that does not wait, and sees in the latest list that it would have to; NULL: none. */
struct claim *numbers_find_refused(const struct lock *lock, const struct store_entry *entries,
				   size_t count);

#endif
