/* SPDX-License-Identifier: Apache-2.0
 *
 * Record locks: what processes hold. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RECORDS_RECORD_H
#define DLOCKFS_ENGINE_RECORDS_RECORD_H

#include "engine/books/state.h"

/* Whether the process can have what the claim asks for without it: by what it holds, or a flock. */
bool records_cover(const struct claim *claim);

/* Its owner holds what the claim asked for. It is HELD, if it is needed for that, and others that
 * it makes needless go. Returns 0; or -ENOMEM, and the claim is withdrawn. */
int records_grant(struct claim *claim);

/* The open file is closed. */
void records_forget_file(struct owner *file);

/* Whether the process holds record locks on any file of this host. */
bool records_process_holds(const struct process *process);

/* Those of a process on the lock; NULL: it has none there. */
struct records *records_find(const struct lock *lock, uint64_t process_id);

/* Those of a process on the lock, made if there are none. NULL: out of memory. */
struct records *records_open(struct lock *lock, uint64_t process_id);

/* Frees what has no claims any more. */
void records_free(struct records *records);

/* Asks for a range in the name of a process that has the open file, as engine_lock_range() does. */
int records_lock_range(struct records *records, struct owner *file, struct range range, bool waits,
		       const struct engine_caller *caller, void *cookie, struct wish **ret_wish);

/* The process gives up what it holds of the span. Returns 0, -ENOMEM or -ENOLCK. */
int records_unlock_range(struct records *records, struct claim_span span);

/* Ends all claims of the process: those held, those that linger, and the wishes made through this
 * open file. */
void records_end(struct records *records, const struct owner *file);

/* From now on the process and the open file are one. Returns 0 or -ENOMEM. */
int records_add_file(struct records *records, struct owner *file);

#endif
