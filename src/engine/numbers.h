/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock whose numbers run out (claim/name.h): new claims are held back until its queue is empty,
 * and the numbers start anew. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_NUMBERS_H
#define DLOCKFS_ENGINE_NUMBERS_H

#include "engine/state.h"

/* Whether a WANTED claim must not be placed now. What is needed to go on is asked for. */
bool numbers_hold_back(struct claim *claim);

/* A claim stands in the queue with this number. */
void numbers_note(struct lock *lock, int32_t sequence);

/* The queue is this, in its order. */
void numbers_note_queue(struct lock *lock, const struct store_entry *entries, size_t count);

/* A list has been merged. While claims are held back, reads what may be none. */
void numbers_read_names(const struct lock *lock);

/* The answer of the store that the queue was noted from is dealt with: places what was held back,
 * if nothing is any more. `were_worn`: claims were held back before. */
void numbers_go_on(struct lock *lock, bool were_worn);

/* A list has come, and is noted; `were_worn`: they were before. Refuses wishes that do not wait and
 * see that they would have to, or places what was held back. */
void numbers_listed(struct lock *lock, bool were_worn, const struct store_entry *entries,
		    size_t count);

/* Whether a claim that was held back needs a list. */
bool numbers_need_list(const struct lock *lock);

/* The last claim of this host has left the queue. */
void numbers_look(struct lock *lock);

/* The time to send again what could not be sent has come. */
void numbers_resume(struct lock *lock);

/* The store has put a claim off. */
void numbers_put_off(struct lock *lock);

/* Another process has placed claims of the lock, and this one goes on with some that do not stand
 * yet: they are held back until a list shows whether they have to be. */
void numbers_restored(struct lock *lock);

/* Whether a WAITING claim has a number that nothing is granted by. Then it is withdrawn, and
 * wanted again; or refused, where it would wait for what its owner holds. */
bool numbers_refuse(struct claim *claim);

#endif
