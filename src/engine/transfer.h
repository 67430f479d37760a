/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine's books passed on to the engine of another process, which goes on with the same
 * session: who holds, who waits and in which order, what was sent and not answered, and until when
 * the lease lasts.
 *
 * The new engine begins as one whose connection was lost a moment ago. What the old one had sent
 * and not heard of may have happened; of claims of other hosts it knows nothing until the store has
 * listed the queue. Until it is connected it grants nothing, and the lease goes on: it counts from
 * the latest write that was acknowledged to the old one, so no lock is held longer than it would
 * have been.
 *
 * Not passed on: tests and proofs (engine_test_range(), engine_prove()), whose questions are to be
 * asked again; and the policies of locks, which are those of the configuration now, but for the
 * recipe of a lock with claims.
 *
 * Loop thread only; nothing here blocks, but for the stream.
 */
#ifndef DLOCKFS_ENGINE_TRANSFER_H
#define DLOCKFS_ENGINE_TRANSFER_H

#include "engine/engine.h"
#include "journal/journal.h"
#include "journal/text.h"

/* Writes what the owner is known by, as keys of a line. */
void engine_save_owner(const struct owner *owner, FILE *out);

/* As engine_owner_open(), and the owner is the one that the present line tells of. Returns NULL
 * when out of memory, or when the line makes no sense; the reader then says which. */
struct owner *engine_restore_owner(struct engine *engine, const char *path,
				   const struct lock_policy *policy, void *cookie,
				   struct state_reader *in);

/* Writes everything but which owners there are. */
void engine_save(struct engine *engine, const struct engine_transfer *transfer, FILE *out);

/* Reads that, up to the first line that is not of an engine. The engine is new, but for its owners.
 * Its time, which begins with the next engine_advance(), is that of the former process.
 * Calls nothing of the store but resume(). Returns 0; or -EINVAL, -ENOMEM, with a line in the
 * reader's `why`, and the engine is good for nothing but engine_destroy(). */
int engine_restore(struct engine *engine, const struct engine_transfer *transfer,
		   struct state_reader *in);

/* Keeps the books in the journal from now on, and what is in them already. Their items' places
 * begin with that number. The transfer stays the caller's, as does the journal, which may be NULL:
 * then nothing is kept, as before.
 *
 * With a journal the engine sends nothing to its store by itself: engine_send() is to be called
 * after each commit. So the next process knows of all that was sent. */
void engine_set_journal(struct engine *engine, struct state_journal *journal,
			const struct engine_transfer *transfer, uint64_t place);

/* Sends what has waited. Makes no callbacks, and nothing in the journal changes. */
void engine_send(struct engine *engine);

#endif
