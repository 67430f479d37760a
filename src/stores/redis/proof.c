/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns proofs that are under way. Loop thread only.
 */
#include "stores/redis/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "stores/redis/lock.h"

/* The renewal of one key. */
struct renewal {
	struct redis_request request;
	struct redis_proof *proof;
	struct redis_lock *lock;
	uint64_t take; /* the key's, when it was asked for */
	int64_t sent_ms;
};

struct redis_proof {
	struct store_redis *store;
	void *tag;
	struct store_proof *proofs; /* a copy, with copies of its strings */
	size_t count;
	struct renewal *renewals;
	size_t renewal_count, under_way;
	int error;
	int64_t stamp;
	bool is_found;	/* `home` was asked for the claims: it has this as the tag */
	bool is_of_all; /* a heartbeat, or of no claim: of the session, which is all keys */
	struct redis_proof *prev, *next;
};

static void free_copies(struct redis_proof *proof)
{
	for (size_t i = 0; proof->proofs != NULL && i < proof->count; i++) {
		free((char *)proof->proofs[i].path);
		free((char *)proof->proofs[i].name);
		free((char *)proof->proofs[i].text);
	}
	free(proof->proofs);
}

static void free_proof(struct redis_proof *proof)
{
	for (size_t i = 0; i < proof->renewal_count; i++) {
		struct renewal *renewal = &proof->renewals[i];

		redis_forget(&renewal->request);
		renewal->lock->proofs--;
		redis_lock_settle(renewal->lock);
	}
	free_copies(proof);
	free(proof->renewals);
	free(proof);
}

static char *copy_text(const char *text, bool *failed)
{
	char *copy = text != NULL ? strdup(text) : NULL;

	*failed |= text != NULL && copy == NULL;
	return copy;
}

static int copy_proofs(struct redis_proof *proof, const struct store_proof *proofs, size_t count)
{
	bool failed = false;

	proof->proofs = calloc(count + 1, sizeof(*proofs));
	if (proof->proofs == NULL)
		return -ENOMEM;
	proof->count = count;
	for (size_t i = 0; i < count; i++) {
		proof->proofs[i] = (struct store_proof){
			.path = copy_text(proofs[i].path, &failed),
			.name = copy_text(proofs[i].name, &failed),
			.text = copy_text(proofs[i].text, &failed),
			.version = proofs[i].version,
		};
	}
	return failed ? -ENOMEM : 0;
}

static bool is_passing(int error)
{
	return error == -ECONNRESET || error == -ENOTCONN || error == -EAGAIN || error == -EROFS;
}

static void note_error(struct redis_proof *proof, int error)
{
	if (error != 0 && error != -ENOENT && error != -EBADMSG)
		proof->error = is_passing(error) ? -ECONNRESET : -EIO;
}

static void on_renewed(struct redis_request *request, const struct redis_answer *answer)
{
	struct renewal *renewal = (void *)((char *)request - offsetof(struct renewal, request));
	struct redis_proof *proof = renewal->proof;
	struct redis_lock *lock = renewal->lock;

	proof->under_way--;
	if (answer->error == 0 && answer->stamp > proof->stamp)
		proof->stamp = answer->stamp;
	note_error(proof, answer->error);
	key_renewed(&lock->key, renewal->take, renewal->sent_ms, answer->error, clock_now_ms());
	redis_lock_settle(lock);
}

static void renew(struct redis_proof *proof, struct redis_lock *lock, enum redis_verb verb)
{
	struct renewal *renewal = &proof->renewals[proof->renewal_count];
	char *key = redis_lock_key(lock);
	int error = -ENOMEM;

	*renewal = (struct renewal){
		.request = {.done = on_renewed},
		.proof = proof,
		.lock = lock,
		.take = lock->key.takes,
		.sent_ms = clock_now_ms(),
	};
	if (key != NULL)
		error = redis_ask(proof->store->service, &renewal->request, verb, key, lock->value,
				  proof->store->rules.ttl_ms);
	free(key);
	note_error(proof, error);
	if (error != 0)
		return;
	lock->proofs++;
	proof->renewal_count++;
	proof->under_way++;
}

/* A proof is of one lock, as the engine asks, or of a few, one behind the other. */
static void renew_proved(struct redis_proof *proof)
{
	for (size_t i = 0, next; i < proof->count; i = next) {
		const char *path = proof->proofs[i].path;
		struct redis_lock *lock = redis_lock_find(proof->store, path);
		bool is_changed = false;

		for (next = i; next < proof->count && !strcmp(proof->proofs[next].path, path);
		     next++)
			is_changed |= proof->proofs[next].text != NULL;
		if (lock != NULL && lock->key.step == KEY_OURS)
			renew(proof, lock, is_changed ? REDIS_STAMP : REDIS_RENEW);
	}
}

static void renew_all(struct redis_proof *proof)
{
	struct redis_lock *lock;

	for (lock = proof->store->locks; lock != NULL; lock = lock->hh.next) {
		if (lock->key.step == KEY_OURS)
			renew(proof, lock, REDIS_RENEW);
	}
}

void redis_proof_send(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct store_redis *store = store_redis_from(base);
	struct redis_proof *proof = calloc(1, sizeof(*proof));
	bool is_of_all = tag == NULL || count == 0;
	size_t renewals = (is_of_all ? HASH_COUNT(store->locks) : count) + 1;

	if (proof != NULL) {
		proof->store = store;
		proof->tag = tag;
		proof->is_of_all = is_of_all;
		proof->renewals = calloc(renewals, sizeof(*proof->renewals));
	}
	if (proof == NULL || proof->renewals == NULL || copy_proofs(proof, proofs, count) < 0) {
		if (proof != NULL)
			free_proof(proof);
		redis_starve(store);
		return;
	}
	DL_APPEND(store->proofs, proof);
	if (tag == NULL)
		redis_lease_beat(&store->lease, clock_now_ms());
	if (is_of_all)
		renew_all(proof);
	else
		renew_proved(proof);
	redis_wake(store);
}

/* The eldest sign of the keys that this host has. */
static void look_at_keys(struct store_redis *store)
{
	const struct redis_lock *lock;
	int64_t least_ms = INT64_MAX, before_ms = store->lease.heard_ms;

	for (lock = store->locks; lock != NULL; lock = lock->hh.next) {
		if (lock->key.step == KEY_OURS && lock->key.heard_ms < least_ms)
			least_ms = lock->key.heard_ms;
	}
	redis_lease_note(&store->lease, least_ms);
	if (least_ms > before_ms)
		store->events->on_renewed(store->context);
}

/* The next lock whose loss is to be told. */
static struct redis_lock *next_lost(const struct store_redis *store)
{
	struct redis_lock *lock = store->lost > 0 ? store->locks : NULL;

	while (lock != NULL && !lock->is_lost)
		lock = lock->hh.next;
	return lock;
}

static void tell(struct redis_proof *proof, int error, const char *missing)
{
	struct store_redis *store = proof->store;

	DL_DELETE(store->proofs, proof);
	if (proof->is_of_all)
		look_at_keys(store);
	store->events->on_proved(store->context, proof->tag, error, missing,
				 error == 0 ? proof->stamp : 0);
	free_proof(proof);
}

/* A loss comes before all else, even if a key could not be renewed. */
static void tell_lost(struct redis_proof *proof, struct redis_lock *lock)
{
	struct store_redis *store = proof->store;

	lock->is_lost = false;
	store->lost--;
	lock->proofs++; /* it stays until it was told */
	if (store->lost > 0)
		redis_lease_hurry(&store->lease);
	tell(proof, -ENOENT, lock->path);
	lock->proofs--;
	redis_lock_settle(lock);
}

static void conclude(struct redis_proof *proof)
{
	struct store *home = proof->store->queues.home;
	struct redis_lock *lost = proof->tag == NULL ? next_lost(proof->store) : NULL;

	if (lost != NULL) {
		tell_lost(proof, lost);
	} else if (proof->error != 0) {
		tell(proof, proof->error, NULL);
	} else {
		proof->is_found = true;
		home->ops->prove(home, proof, proof->proofs, proof->count);
	}
}

static struct redis_proof *next_answered(const struct store_redis *store)
{
	struct redis_proof *proof = store->proofs;

	while (proof != NULL && (proof->under_way > 0 || proof->is_found))
		proof = proof->next;
	return proof;
}

/* What is told may end others. */
void redis_proofs_conclude(struct store_redis *store)
{
	struct redis_proof *proof;

	while ((proof = next_answered(store)) != NULL)
		conclude(proof);
}

void redis_proof_found(struct redis_proof *proof, int error, const char *missing)
{
	tell(proof, error, missing);
}

void redis_proofs_forget(struct store_redis *store)
{
	struct redis_proof *proof, *next;

	DL_FOREACH_SAFE (store->proofs, proof, next) {
		DL_DELETE(store->proofs, proof);
		free_proof(proof);
	}
}
