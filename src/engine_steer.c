/* SPDX-License-Identifier: Apache-2.0
 *
 * Steering from outside: somebody asks a holder for its lock, or takes a claim away.
 *
 * What is wanted of a claim stands in its data (claim_data.h), as Curator's Revoker does it too. So
 * a claim that is held when a heartbeat is due is watched by its own host: locks that are held for
 * moments cost nothing, as a rule. Such a watch is an extra entry in lock->orders, by the name of
 * the claim, which may end at any time. It also tells when somebody takes the claim away unasked.
 *
 * Loop thread only.
 */
#include "engine_steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim_data.h"
#include "engine_claim.h"
#include "engine_coverage.h"
#include "engine_lead.h"
#include "engine_merge.h"
#include "engine_outbox.h"
#include "engine_queue.h"
#include "engine_save.h"
#include "engine_store.h"
#include "log.h"

/* So many watches a heartbeat sets up, which comes behind them. */
enum { OVERSEEN_AT_A_TIME = 500 };

static struct claim *find_own(struct lock *lock, const char *name)
{
	char own[CLAIM_NAME_BYTES];
	struct claim_name parts;
	struct claim *claim;
	if (!claim_name_parse(name, &parts))
		return NULL;
	for (claim = queue_seek(lock, parts.sequence);
	     claim != NULL && claim->parts.sequence == parts.sequence; claim = claim->next) {
		if ((claim->state == CLAIM_HELD || claim->state == CLAIM_WAITING) &&
		    strcmp(claim_name_of(claim, own), name) == 0)
			return claim;
	}
	return NULL;
}

static void oversee(struct claim *claim)
{
	struct lock *lock = claim->lock;
	struct claim *orders = calloc(1, sizeof(*orders));
	char name[CLAIM_NAME_BYTES];

	if (orders != NULL)
		orders->name = strdup(claim_name_of(claim, name));
	if (orders == NULL || orders->name == NULL) {
		free(orders);
		return; /* at the next heartbeat */
	}
	orders->named = true;
	orders->lock = lock;
	orders->state = CLAIM_FOREIGN;
	orders->orders = true;
	orders->sent = true;
	claim->overseen = true;
	DL_APPEND(lock->orders, orders);
	engine_watch(orders);
}

void engine_oversee(struct engine *engine)
{
	int left = OVERSEEN_AT_A_TIME;
	for (struct lock *lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		struct claim *claim;
		if (lock->own_in_queue == 0)
			continue;
		DL_FOREACH (lock->queue, claim) {
			if (claim->state != CLAIM_HELD || claim->overseen)
				continue;
			if (left-- == 0)
				return;
			oversee(claim);
		}
	}
}

void orders_end(const struct claim *orders, int error)
{
	struct claim *claim = find_own(orders->lock, orders->name);
	if (claim == NULL)
		return;
	claim->overseen = false;
	/* Its holder is not to believe in it until a heartbeat shows that: others have it already.
	 */
	if (error == 0 && claim->state == CLAIM_HELD)
		queue_lose(claim);
}

/* The open files through which the claim's owner has locked are told. */
static void tell_revoked(const struct claim *claim)
{
	struct engine *engine = claim->lock->engine;
	const struct records *records = claim->owner->records;

	if (records == NULL)
		engine->events->on_revoked(engine->context, claim->owner->cookie);
	for (size_t i = 0; records != NULL && i < records->files_count; i++)
		engine->events->on_revoked(engine->context, records->files[i]->cookie);
}

/* The lock is held with the claim, but by nobody: whoever wants it can have it. */
static void give_up_kept(struct claim *claim, const char *who)
{
	log_lock_info(claim->lock->path, "%s asks for the lock, which nobody uses", who);
	claim_withdraw(claim);
}

static void revoke(struct claim *claim, const char *who)
{
	if (claim->revoked)
		return;
	claim->revoked = true;
	claim_mark(claim);
	log_lock_warning(claim->lock->path, "%s asks for the lock, which process %d holds", who,
			 claim->pid);
	tell_revoked(claim);
}

static void take_away(struct claim *claim, const char *who)
{
	struct lock *lock = claim->lock;
	struct owner *owner = claim->owner;
	bool held = claim->state == CLAIM_HELD;
	bool flock = claim->kind != LOCK_KIND_RECORD;

	log_lock_error(lock->path, "%s has broken the %s of process %d", who,
		       held ? "lock" : "wait", claim->pid);
	if (!held) {
		if (!claim->asked)
			claim_withdraw(claim);
		else
			(void)claim_requeue(claim);
		return;
	}
	claim_withdraw(claim);
	owner_lose(owner);
	if (flock)
		coverage_lose_rest(lock);
}

void orders_read(const struct claim *orders, const char *text)
{
	char who[CLAIM_DATA_WHO_BYTES];
	enum claim_order order = claim_data_order(text, who);
	struct claim *claim = find_own(orders->lock, orders->name);

	if (claim == NULL || claim->state != CLAIM_HELD || order == CLAIM_ORDER_NONE)
		return;
	if (claim_is_kept(claim)) {
		give_up_kept(claim, who);
		return;
	}
	if (order == CLAIM_ORDER_REVOKE)
		revoke(claim, who);
	else if (order == CLAIM_ORDER_BREAK)
		take_away(claim, who);
	/* Whoever looks at the queue wants to know whose it is. */
	if (order == CLAIM_ORDER_REVOKE && strcmp(text, CLAIM_DATA_CURATOR_REVOKE) == 0)
		claim_amend(claim);
}

static const struct claim *find_named(const struct engine *engine, const char *path,
				      const char *name)
{
	struct lock *lock;
	HASH_FIND(hh, engine->locks, path, strlen(path), lock);
	return lock != NULL ? find_own(lock, name) : NULL;
}

const void *engine_claim_details(const struct engine *engine, const char *path, const char *name)
{
	const struct claim *claim = find_named(engine, path, name);
	return claim != NULL ? claim->details : NULL;
}

void engine_each_user(const struct engine *engine, const char *path,
		      void (*visit)(void *context, const char *claim, enum engine_use use,
				    const char *text),
		      void *context)
{
	const struct lock *lock;
	const struct claim *claim;

	HASH_FIND(hh, engine->locks, path, strlen(path), lock);
	if (lock == NULL || (lock->leads == NULL && lock->held_leads == NULL))
		return;
	DL_FOREACH (lock->queue, claim) {
		if (claim->lead != NULL)
			lead_each_user(claim->lead, visit, context);
	}
}

int engine_steer(struct engine *engine, const char *path, const char *name, enum engine_order order,
		 const char *who)
{
	struct lock *lock;
	struct claim *claim;

	HASH_FIND(hh, engine->locks, path, strlen(path), lock);
	claim = lock != NULL ? find_own(lock, name) : NULL;
	if (claim == NULL)
		return -ENOENT;
	if (order == ENGINE_REVOKE && claim->state != CLAIM_HELD)
		return -EINVAL;
	if (claim_is_kept(claim))
		give_up_kept(claim, who);
	else if (order == ENGINE_REVOKE)
		revoke(claim, who);
	else
		take_away(claim, who);
	engine_settle(engine);
	lock_free_if_unused(lock);
	return 0;
}
