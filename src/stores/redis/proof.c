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
	struct redis_lock *lock; /* where it waits until it is the first; NULL: a heartbeat, or of
				    no claim: of the session, which is all keys */
	bool is_begun;
	struct renewal *renewals;
	size_t renewal_count, under_way;
	int error;
	int64_t stamp;
	struct redis_proof *prev, *next;
	size_t count;
	struct store_proof proofs[]; /* a copy, with its strings behind it */
};

static void free_proof(struct redis_proof *proof)
{
	for (size_t i = 0; i < proof->renewal_count; i++) {
		struct renewal *renewal = &proof->renewals[i];

		redis_forget(&renewal->request);
		renewal->lock->users--;
		redis_lock_settle(renewal->lock);
	}
	if (proof->lock != NULL) {
		redis_lock_pass(proof->lock, proof);
		proof->lock->users--;
		redis_lock_settle(proof->lock);
	}
	free(proof->renewals);
	free(proof);
}

static size_t bytes_of(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
	char *begin = *at;

	if (text == NULL)
		return NULL;
	*at = stpcpy(begin, text) + 1;
	return begin;
}

/* Returns NULL when out of memory. */
static struct redis_proof *create(const struct store_proof *proofs, size_t count)
{
	struct redis_proof *proof;
	size_t bytes = 0;
	char *at;

	for (size_t i = 0; i < count; i++)
		bytes += bytes_of(proofs[i].path) + bytes_of(proofs[i].name) +
			 bytes_of(proofs[i].text);
	proof = calloc(1, sizeof(*proof) + count * sizeof(*proofs) + bytes);
	if (proof == NULL)
		return NULL;
	at = (char *)(proof->proofs + count);
	proof->count = count;
	for (size_t i = 0; i < count; i++) {
		proof->proofs[i] = (struct store_proof){
			.path = put(&at, proofs[i].path),
			.name = put(&at, proofs[i].name),
			.text = put(&at, proofs[i].text),
			.version = proofs[i].version,
		};
	}
	return proof;
}

static void note_error(struct redis_proof *proof, int error)
{
	if (error != 0 && error != -ENOENT && error != -EBADMSG)
		proof->error = verb_may_pass(error) ? -ECONNRESET : -EIO;
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
	int error;

	*renewal = (struct renewal){
		.request = {.done = on_renewed},
		.proof = proof,
		.lock = lock,
		.take = lock->key.takes,
		.sent_ms = clock_now_ms(),
	};
	error = redis_ask(proof->store->service, &renewal->request, verb, lock->name, lock->value,
			  proof->store->rules.ttl_ms);
	note_error(proof, error);
	if (error != 0)
		return;
	lock->users++;
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

/* The keys are asked for. */
static void begin(struct redis_proof *proof)
{
	size_t most = proof->lock != NULL ? proof->count : HASH_COUNT(proof->store->locks);

	proof->is_begun = true;
	proof->renewals = calloc(most + 1, sizeof(*proof->renewals));
	if (proof->renewals == NULL)
		proof->error = -EIO;
	else if (proof->lock != NULL)
		renew_proved(proof);
	else
		renew_all(proof);
}

static bool is_due(const struct redis_proof *proof)
{
	return !proof->is_begun && (proof->lock == NULL || redis_lock_is_first(proof->lock, proof));
}

void redis_proof_send(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct store_redis *store = store_redis_from(base);
	struct redis_proof *proof = create(proofs, count);
	bool has_lock = tag != NULL && count > 0;
	struct redis_lock *lock = has_lock ? redis_lock_open(store, proofs[0].path) : NULL;

	if (proof == NULL || (has_lock && lock == NULL)) {
		free(proof);
		redis_starve(store);
		return;
	}
	proof->store = store;
	proof->tag = tag;
	DL_APPEND(store->proofs, proof);
	if (tag == NULL)
		store->lease.beat_ms = clock_now_ms();
	if (lock != NULL) {
		proof->lock = lock;
		lock->users++;
		redis_lock_call(lock, &(struct redis_call){.kind = CALL_PROVE, .tag = proof});
	}
	if (is_due(proof))
		begin(proof);
	redis_wake(store->service);
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
	store->lease.heard_ms = least_ms;
	if (least_ms > before_ms)
		store->events->on_renewed(store->context);
}

/* The next lock whose loss is to be told. What an earlier heartbeat has told is over: the queue has
 * been asked for since, and told, if nothing waits. */
static struct redis_lock *next_lost(const struct store_redis *store)
{
	struct redis_lock *lock, *next, *lost = NULL;

	if (store->losses == 0)
		return NULL;
	HASH_ITER (hh, store->locks, lock, next) {
		if (lock->loss == LOSS_UNTOLD) {
			lost = lock;
		} else if (lock->loss == LOSS_TOLD && lock->calls == NULL) {
			redis_lock_set_loss(lock, LOSS_NONE);
			redis_lock_settle(lock);
		}
	}
	return lost;
}

static void tell(struct redis_proof *proof, int error, const char *missing)
{
	struct store_redis *store = proof->store;

	DL_DELETE(store->proofs, proof);
	if (proof->lock == NULL)
		look_at_keys(store);
	store->events->on_proved(store->context, proof->tag, error, missing,
				 error == 0 ? proof->stamp : 0);
	free_proof(proof);
}

/* A loss comes before all else, even if a key could not be renewed. */
static void tell_lost(struct redis_proof *proof, struct redis_lock *lock)
{
	struct store_redis *store = proof->store;

	redis_lock_set_loss(lock, LOSS_TOLD);
	lock->users++; /* it stays until it was told */
	store->lease.beat_ms = INT64_MIN;
	tell(proof, -ENOENT, lock->path);
	lock->users--;
	redis_lock_settle(lock);
}

static void conclude(struct redis_proof *proof)
{
	struct store *home = proof->store->queues.home;
	struct redis_lock *lost = proof->tag == NULL ? next_lost(proof->store) : NULL;
	const char *missing = NULL;
	int error = proof->error;

	if (lost != NULL) {
		tell_lost(proof, lost);
		return;
	}
	if (error == 0)
		error = store_local_prove(home, proof->proofs, proof->count, &missing);
	tell(proof, error, missing);
}

/* Once the key is not this host's any more, what was asked of it says nothing new. */
static bool is_decided(const struct redis_proof *proof)
{
	return proof->is_begun && (proof->under_way == 0 ||
				   (proof->lock != NULL && proof->lock->key.step != KEY_OURS));
}

static struct redis_proof *next_due(const struct store_redis *store)
{
	struct redis_proof *proof = store->proofs;

	while (proof != NULL && !is_due(proof) && !is_decided(proof))
		proof = proof->next;
	return proof;
}

/* What is told may end others. The queues have their answers told first: a proof takes effect when
 * it is told. */
void redis_proofs_conclude(struct store_redis *store)
{
	struct store *home = store->queues.home;
	struct redis_proof *proof;

	for (;;) {
		home->ops->dispatch(home);
		proof = next_due(store);
		if (proof == NULL)
			return;
		if (proof->is_begun)
			conclude(proof);
		else
			begin(proof);
	}
}

void redis_proofs_forget(struct store_redis *store)
{
	struct redis_proof *proof, *next;

	DL_FOREACH_SAFE (store->proofs, proof, next) {
		DL_DELETE(store->proofs, proof);
		free_proof(proof);
	}
}
