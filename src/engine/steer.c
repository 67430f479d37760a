/* SPDX-License-Identifier: Apache-2.0
 *
 * Steering from outside: somebody asks a holder for its lock, or takes a claim away.
 *
 * What is wanted of a claim stands in its data (claim/data.h), as Curator's Revoker does it too. So
 * a claim that is held, or waits, when a heartbeat is due is watched by its own host: locks that
 * are held for moments cost nothing, as a rule. Such a watch is an extra entry in lock->overseers,
 * by the name of the claim, which may end at any time. It also tells when somebody takes the claim
 * away unasked.
 *
 * The claim's own host changes its data, too. It does so only in place of a version that it has
 * written or read, so that it overwrites nothing unread: if others were first, the store refuses
 * the change, and the claim is watched, whether it is held or waits.
 *
 * Who asks for a claim that waits is told of once it is held. One that waits and is to be broken is
 * withdrawn at once, and its wishes queue again. So nothing is granted by a claim whose data was
 * read to say so; nor by one that is watched and not read yet, or not since the data has changed,
 * or may have (settle.c). Whoever broke the claim, and takes it away when its host did not, counts
 * on that (handles/steer.h).
 *
 * A holder that has had the lock for longer than it may (books/term.h) loses its claim as if
 * somebody had broken it.
 *
 * Of two hosts whose claims wait for each other in a cycle, one sends the other's claim back in the
 * same way (deadlock.c). So a claim that says that it waits is watched by its host from then on.
 *
 * And so is one that waits for another host's claim: what takes that one away may have taken this
 * one before, as servers that are wiped do. The store tells of both in their order, so who is
 * watched and was not told to be gone stands when the other one goes (settle.c). Where the whole
 * queue is watched, and has not changed since it was listed, that tells the same.
 *
 * Loop thread only.
 */
#include "engine/steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "claim/data.h"
#include "engine/books/claim.h"
#include "engine/books/decisions.h"
#include "engine/books/delay.h"
#include "engine/books/lock.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/decide.h"
#include "engine/engine.h"
#include "engine/merge.h"
#include "engine/overseer.h"
#include "engine/proof.h"
#include "engine/settle.h"

/* So many watches a heartbeat sets up, which comes behind them. */
enum { OVERSEEN_AT_A_TIME = 500 };

/* One of ours that stands in the queue, and whose place is known. */
static struct claim *find_own(struct lock *lock, const char *name)
{
	struct claim *claim = queue_find_own(lock, name);
	return claim != NULL && claim->state != CLAIM_QUEUED ? claim : NULL;
}

/* The watch of a claim of ours, which may have gone since, is over. */
static void end_oversight(struct lock *lock, struct claim *claim, int error)
{
	if (claim == NULL) {
		proofs_resume(lock); /* which waited for it to be read */
		return;
	}
	claim->overseen = claim->shown = false;
	queue_judge(claim); /* it waits for no reading any more */
	if (claim->data.stale && error != 0)
		lock_retry_after(lock, "reading of a claim", error);
	/* Its holder is not to believe in it until a heartbeat shows that: others have it already.
	 * What stands there under its name does not count. */
	if ((error == 0 || error == -ENXIO) && claim->state == CLAIM_HELD) {
		merge_lose(claim);
		return;
	}
	if (error == 0 || error == -ENXIO) {
		lock->doubts.missing = true;
		lock_list(lock);
	}
}

void steer_watch_ended(struct rival *overseer, int error)
{
	struct lock *lock = overseer->place.lock;

	end_oversight(lock, queue_find_own(lock, overseer->name), error);
	DL_DELETE(lock->overseers, &overseer->place);
	rival_free(overseer);
}

/* The open files through which the claim's owner has locked are told. */
static void tell_revoked(const struct claim *claim)
{
	struct engine *engine = claim->place.lock->engine;
	const struct owner *owner = owner_of(claim);
	const struct records *records = owner_records(owner);

	if (records == NULL)
		decisions_add(engine, REVOKED, owner->cookie, 0);
	for (size_t i = 0; records != NULL && i < records->files_count; i++)
		decisions_add(engine, REVOKED, records->files[i]->cookie, 0);
}

/* The lock is held with the claim, but by nobody: whoever wants it can have it. */
static void give_up_kept(struct claim *claim, const char *who)
{
	if (claim_may_log(claim))
		log_lock_info(claim->place.lock->path, "%s asks for the lock, which nobody uses",
			      who);
	claim_withdraw(claim);
}

static void revoke(struct claim *claim, const char *who)
{
	if (claim->revoked)
		return;
	claim->revoked = true;
	claim_mark(claim);
	if (claim_may_log(claim))
		log_lock_warning(claim->place.lock->path,
				 "%s asks for the lock, which process %d holds", who,
				 claim->wishes->pid);
	tell_revoked(claim);
}

/* What was read while it waited. */
static void do_wanted(struct claim *claim)
{
	char *who = claim->wanted_by;

	claim->wanted_by = NULL;
	if (claim_is_spare(claim))
		give_up_kept(claim, who);
	else if (!claim_rests(claim))
		revoke(claim, who);
	free(who);
}

/* Whether others may want something of it. */
static bool is_steered(const struct claim *claim)
{
	return claim->state == CLAIM_HELD || claim->state == CLAIM_WAITING;
}

void steer_oversee(struct engine *engine)
{
	int left = OVERSEEN_AT_A_TIME;
	for (struct lock *lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		struct claim *claim, *next;
		if (lock->in_queue.own == 0)
			continue;
		CLAIMS_FOREACH_SAFE (lock->queue.first, claim, next) {
			if (claim->state == CLAIM_HELD && claim->wanted_by != NULL)
				do_wanted(claim); /* after which it may be LEAVING */
			if (!is_steered(claim) || claim->overseen)
				continue;
			if (left-- == 0)
				return;
			overseer_set(claim);
		}
	}
}

/* One that waits loses its place; without memory it does before it could be granted (settle.c). */
static void requeue(struct claim *claim)
{
	if (claim_first_asked(claim) == NULL) {
		claim_withdraw(claim);
	} else if (!claim_requeue(claim)) {
		claim->place.requeue = true;
		lock_retry_in(claim->place.lock->engine, RETRY_MEMORY_MS);
	}
}

static void take_away(struct claim *claim, const char *who)
{
	struct lock *lock = claim->place.lock;
	struct owner *owner = owner_of(claim);
	bool held = claim->state == CLAIM_HELD;
	bool flock = !claim->place.parts.record;

	if (claim_may_log(claim))
		log_lock_error(lock->path, "%s has broken the %s of process %d", who,
			       held ? "lock" : "wait", claim->wishes->pid);
	if (!held) {
		requeue(claim);
		return;
	}
	delay_break(claim);
	claim_withdraw(claim);
	decide_lose_lock(owner, flock, ENGINE_LOSS_BROKEN);
}

void steer_expire(struct claim *claim)
{
	struct owner *owner = owner_of(claim);
	bool flock = !claim->place.parts.record;

	if (claim_may_log(claim))
		log_lock_error(claim->place.lock->path,
			       "process %d has held the lock for max_hold, which is %lld ms: the "
			       "lock is lost",
			       claim->wishes->pid, (long long)term_most_ms(owner));
	delay_break(claim);
	if (!claim_rest(claim))
		claim_withdraw(claim);
	decide_lose_lock(owner, flock, ENGINE_LOSS_EXPIRED);
}

/* It is to be given up when it is held. */
static void note_wanted(struct claim *claim, const char *who)
{
	free(claim->wanted_by);
	claim->wanted_by = strdup(who);
}

static void obey(struct claim *claim, const char *text)
{
	char who[CLAIM_DATA_WHO_BYTES];
	enum claim_order order = claim_data_order(text, who);

	if (order == CLAIM_ORDER_NONE || (order == CLAIM_ORDER_REVOKE && claim_rests(claim)))
		return;
	if (claim_is_kept(claim)) {
		give_up_kept(claim, who);
		return;
	}
	if (order == CLAIM_ORDER_BREAK) {
		take_away(claim, who);
		return;
	}
	if (claim->state != CLAIM_HELD) {
		note_wanted(claim, who);
		return;
	}
	revoke(claim, who);
	/* Whoever looks at the queue wants to know whose it is. */
	if (strcmp(text, CLAIM_DATA_CURATOR_REVOKE) == 0)
		claim_amend(claim);
}

/* Notes whether others of a cycle go before the claim, and may have done so. */
static void note_sent_back(struct claim *claim, const char *text)
{
	struct claim_data data = {.requeue = true}; /* without memory to tell */
	if (claim->state == CLAIM_HELD)
		return;
	if (claim_data_parse(text, &data) == 0)
		claim_data_finish(&data);
	/* Other clients replace what they have not read: of one that says that it waits, this too.
	 */
	if (!data.requeue && (data.valid || !claim->careful))
		return;
	claim->place.requeue = claim->gave_way = true;
	queue_weaken(&claim->place);
	queue_judge(claim);
	queue_look_for_cycles(claim->place.lock); /* those who have passed it are held */
}

void steer_watch_read(const struct rival *overseer, const char *text, uint32_t version)
{
	struct lock *lock = overseer->place.lock;
	struct claim *claim = queue_find_own(lock, overseer->name);
	bool was_stale = claim != NULL && claim->data.stale;

	if (claim == NULL) {
		if (text != NULL)
			proofs_resume(lock);
		return;
	}
	claim->shown = text != NULL;
	if (text == NULL)
		return;
	overseer_note_version(claim, version);
	note_sent_back(claim, text);
	queue_judge(claim);
	if (was_stale && !claim->data.stale && claim->data.amended)
		claim_amend(claim);
	obey(claim, text);
	if (was_stale)
		proofs_resume(lock);
}

static struct claim *find_named(const struct engine *engine, const char *path, const char *name)
{
	struct lock *lock = lock_find(engine, path);
	return lock != NULL ? find_own(lock, name) : NULL;
}

bool engine_claim_caller(const struct engine *engine, const char *path, const char *name,
			 struct engine_caller *ret)
{
	const struct claim *claim = find_named(engine, path, name);
	if (claim != NULL)
		*ret = wish_caller(claim->wishes);
	return claim != NULL;
}

int engine_steer(struct engine *engine, const char *path, const char *name, enum engine_order order,
		 const char *who)
{
	struct claim *claim = find_named(engine, path, name);

	if (claim == NULL)
		return -ENOENT;
	if (order == ENGINE_REVOKE && (claim->state != CLAIM_HELD || claim_rests(claim)))
		return -EINVAL;
	if (claim_is_kept(claim))
		give_up_kept(claim, who);
	else if (order == ENGINE_REVOKE)
		revoke(claim, who);
	else
		take_away(claim, who);
	settle_all(engine);
	return 0;
}
