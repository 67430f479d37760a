/* SPDX-License-Identifier: Apache-2.0
 *
 * The moratorium: a time in which nothing is granted, as somebody may hold what the store does not
 * show any more. So it is when the service has gone back to an earlier state, as after its data
 * were restored from a backup, and where its root was made anew: claims that were granted before
 * are gone, but their holders do not know it until their leases end. A lease counts from a time
 * before the service was stopped, and lasts for a session timeout at most; the moratorium, for as
 * long, from when the service answered again. That holds if no host has a longer session timeout.
 *
 *   service   ---- stops ---- set back, answers ------------------------
 *   holder    held ----------------------- lease ends: told
 *   others                    | moratorium of a session timeout | granted
 *
 * A lock has a moratorium of its own when a claim of it has ended that its host did not withdraw,
 * where the store tells that (on_watched()): its lease was ended, rightly or wrongly, or somebody
 * has deleted it. Its host hears of that by the watch of the claim, or by its next sign of life;
 * stores send these each T/8 at least. So the next one is granted after that, and a T/40 for the
 * way and for telling the holders, and after a list that shows its own claim; by whatever process
 * goes on with the claims, too (save.c). What is not covered: a host that is not connected, or does
 * not run, until its own lease ends; a host that does not wait in the queue, or whose daemon is
 * being replaced, while the claim ends; and the time in which a claim was listed but not read.
 *
 * For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_MORATORIUM_H
#define DLOCKFS_ENGINE_BOOKS_MORATORIUM_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/store.h"

struct engine;

/* Of the engine. */
struct moratorium {
	int64_t until_ms; /* nothing is granted before; INT64_MIN: there is none */
	enum store_moratorium why;
	uint64_t setbacks; /* of the store, so far */
};

/* As on_moratorium() of the store. */
void moratorium_begin(struct engine *engine, enum store_moratorium why, int64_t until_ms);

/* Whether it lasts. */
bool moratorium_lasts(const struct engine *engine);

/* Ends it, if its time is over. */
void moratorium_end(struct engine *engine);

/* When moratorium_end() is needed; INT64_MAX if it is not. */
int64_t moratorium_deadline(const struct engine *engine);

#endif
