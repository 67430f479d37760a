/* SPDX-License-Identifier: Apache-2.0
 *
 * Which claims stand for the record locks that processes hold. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RECORDS_COVERAGE_H
#define DLOCKFS_ENGINE_RECORDS_COVERAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/range_set.h"

struct claim;
struct lock;
struct owner;
struct place;
struct records;

/* So many more ranges are on the account of the file that the process has locked through first. */
void coverage_account(const struct records *records, ptrdiff_t more);

/* The process holds this from now on, whatever its claims cover; the set is taken over. */
void coverage_set_held(struct records *records, struct range_set held);

/* Whether all that the process holds is covered. Without memory to tell, it is not. */
bool coverage_is_complete(const struct records *records);

/* Takes a flock or an open, which is not handed on, away, or gives it to a process whose record
 * locks need it. */
void coverage_pass_on(struct claim *flock);

/* The process holds this from now on, and nothing more; the set is taken over. Its claims cover
 * that. Returns 0 or -ENOMEM: then nothing has changed, and the set is freed. */
int coverage_change(struct records *records, struct range_set held);

/* The process holds less: those are looked at again who may have waited for that. */
void coverage_release(const struct records *records);

/* The claim has been granted: older ones of the owner that it makes needless go. That can be only
 * if it overlaps with what the process held before. */
void coverage_tidy(struct claim *claim, bool overlaps);

/* Whether a flock that is held, which it need not be, covers record locks of the process that are
 * in the way of somebody else's claim. */
bool coverage_is_by(const struct claim *flock, const struct records *records,
		    const struct place *place);

/* A flock by which a claim of record locks, which waits, is granted as soon as nobody else who has
 * locked under the flock is in the way; NULL: there is none, or the claim is not of that kind. */
const struct claim *coverage_flock_for(const struct claim *claim);

/* Whether the process can have the range at once: by what it holds, or by a flock of its, if nobody
 * else who has locked under the flock is in the way. */
bool coverage_includes(const struct records *records, struct range range);

/* The list in which a claim's cycle is to be seen again; 0: it is not in one. */
uint64_t coverage_cycle_list(const struct claim *claim);

#endif
