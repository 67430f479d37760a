/* SPDX-License-Identifier: Apache-2.0
 *
 * Proofs: transactions of the store that show that our claims stand. An open file asks for one to
 * know whether it still holds its lock, and for its token; the heartbeat brings some of all claims
 * along, in turn, because somebody may take one away by hand, and not all are watched.
 *
 * A token is the stamp of a change of the holder's own claim that is made after the grant. An
 * earlier holder's was made before its claim was taken away, so it is smaller, however claims are
 * reused. Who never asks costs nothing.
 *
 * Loop thread only.
 */
#include "engine_proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_claim.h"
#include "engine_coverage.h"
#include "engine_outbox.h"
#include "engine_queue.h"
#include "engine_save.h"
#include "engine_session.h"
#include "engine_store.h"

/* The number of the latest grant to the open file, or to a process that has locked through it. */
static uint64_t latest_grant(const struct owner *file)
{
	const struct records *records;
	uint64_t latest = file->granted;
	for (records = file->lock->records; records != NULL; records = records->hh.next) {
		if (records->owner.granted > latest && owners_are_one(&records->owner, file))
			latest = records->owner.granted;
	}
	return latest;
}

static void end(struct proof *proof)
{
	struct lock *lock = proof->lock;
	DL_DELETE(lock->proofs, proof);
	free(proof);
}

/* Answers whoever asked. If the store has not answered yet, the proof goes when it does. */
static void answer(struct proof *proof, int error, uint64_t token)
{
	struct engine *engine = proof->lock->engine;
	void *cookie = proof->cookie;

	proof->file = NULL;
	if (!proof->sent)
		end(proof);
	engine->events->on_proved(engine->context, cookie, error, token);
}

/* Whether something that was locked through the open file is held by the claim: by one of its own,
 * or of a process that has locked through it, or by a flock that such a process has locked under
 * through another file. */
static bool is_held_by(const struct owner *file, const struct claim *claim)
{
	const struct records *records;

	if (claim->state != CLAIM_HELD)
		return false;
	if (owners_are_one(claim->owner, file))
		return true;
	for (records = file->lock->records; records != NULL; records = records->hh.next) {
		if (records->held.count > 0 && owners_are_one(&records->owner, file) &&
		    coverage_may_be_by(claim, records))
			return true;
	}
	return false;
}

/* Claims that are to be shown to stand. */
struct collection {
	struct store_proof proofs[STORE_PROOFS_MAX];
	char names[STORE_PROOFS_MAX][CLAIM_NAME_BYTES];
	size_t count, znodes;
};

static bool has_room(const struct collection *collection, const struct claim *claim)
{
	return collection->znodes + claim_recipe_znodes(claim->parts.recipe) <= STORE_PROOFS_MAX;
}

static void collect(struct collection *collection, const struct claim *claim, const char *text)
{
	size_t count = collection->count++;
	collection->znodes += claim_recipe_znodes(claim->parts.recipe);
	collection->proofs[count] = (struct store_proof){
		.path = claim->lock->path,
		.name = claim_name_of(claim, collection->names[count]),
		.text = text,
	};
}

/* What the store is to look for; the first is changed, if there is a text. */
static void collect_held(const struct proof *proof, const char *text, struct collection *collection)
{
	size_t bytes_each = (3 * strlen(proof->lock->path) + CLAIM_NAME_BYTES) *
			    claim_recipe_znodes(lock_recipe(proof->lock));
	size_t bytes = text != NULL ? strlen(text) : 0;
	const struct claim *claim;

	DL_FOREACH (proof->lock->queue, claim) {
		if (!has_room(collection, claim) ||
		    (collection->count > 0 && bytes + bytes_each > STORE_PROOF_BYTES_MAX))
			break;
		if (!is_held_by(proof->file, claim))
			continue;
		collect(collection, claim, collection->count == 0 ? text : NULL);
		bytes += bytes_each;
	}
}

/* The first claim that the open file holds by; NULL: it holds nothing. */
static const struct claim *first_held(const struct owner *file)
{
	const struct claim *claim;
	DL_FOREACH (file->lock->queue, claim) {
		if (is_held_by(file, claim))
			return claim;
	}
	return NULL;
}

bool engine_file_is_revoked(const struct owner *file)
{
	const struct claim *claim;
	DL_FOREACH (file->lock->queue, claim) {
		if (claim->revoked && is_held_by(file, claim))
			return true;
	}
	return false;
}

static void send(struct proof *proof)
{
	struct engine *engine = proof->lock->engine;
	const struct claim *claim = first_held(proof->file);
	struct collection collection;
	char *text = NULL;

	if (claim == NULL) {
		answer(proof, proof->wants_token ? -ENODATA : 0, 0);
		return;
	}
	if (engine->session != STORE_CONNECTED)
		return;
	proof->granted = latest_grant(proof->file);
	if (proof->wants_token && proof->file->token_grant < proof->granted) {
		text = claim_format_data(claim);
		if (text == NULL) {
			answer(proof, -ENOMEM, 0);
			return;
		}
	}
	proof->sent = true;
	proof->sent_ms = engine->now_ms;
	collection.count = collection.znodes = 0;
	collect_held(proof, text, &collection);
	engine_send_proof(engine, proof, collection.proofs, collection.count);
	free(text);
}

int engine_prove(struct owner *file, bool token, void *cookie, struct proof **ret_proof)
{
	struct proof *proof;

	*ret_proof = NULL;
	if (file->lost)
		return -EIO;
	proof = calloc(1, sizeof(*proof));
	if (proof == NULL)
		return -ENOMEM;
	proof->lock = file->lock;
	proof->file = file;
	proof->cookie = cookie;
	proof->wants_token = token;
	DL_APPEND(file->lock->proofs, proof);
	*ret_proof = proof;
	send(proof);
	return 0;
}

void engine_cancel_proof(struct proof *proof)
{
	proof->file = NULL;
	if (!proof->sent)
		end(proof);
}

/* Two that asked at the same time are told one token: the smaller one, which came first. */
static void tell_token(struct proof *proof, int64_t stamp)
{
	struct owner *file = proof->file;

	if (file->token_grant < proof->granted) {
		file->token_grant = proof->granted;
		file->token = (uint64_t)stamp;
		owner_mark(file);
	}
	answer(proof, 0, file->token);
}

static void proved(struct proof *proof, int error, int64_t stamp)
{
	struct lock *lock = proof->lock;

	proof->sent = false;
	if (proof->file == NULL)
		end(proof);
	else if (error == 0 && proof->wants_token)
		tell_token(proof, stamp);
	else if (error == 0)
		answer(proof, 0, 0);
	else if (error == -EACCES)
		answer(proof, error, 0);
	else if (error == -ENOENT)
		proof->list_wanted = lock_list_anew(lock); /* which fences whose claim is gone */
	else
		lock_retry_after(lock, "proof of a claim", error);
}

void engine_on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	struct engine *engine = context;
	struct proof *proof = tag;

	if (proof == NULL) {
		engine_beaten(engine, error, missing);
		engine_settle(engine);
		return;
	}
	struct lock *lock = proof->lock;
	if (error == 0 || error == -ENOENT || error == -EACCES)
		engine_proved_alive(engine, proof->sent_ms);
	proved(proof, error, stamp);
	engine_settle(engine);
	lock_free_if_unused(lock);
}

void proofs_resume(struct lock *lock)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (lock->proofs, proof, next) {
		if (!proof->sent && proof->list_wanted <= lock->lists_done)
			send(proof);
	}
}

bool proofs_need_list(const struct lock *lock)
{
	const struct proof *proof;
	DL_FOREACH (lock->proofs, proof) {
		if (proof->list_wanted > lock->lists_done)
			return true;
	}
	return false;
}

void proofs_forget_sent(struct lock *lock)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (lock->proofs, proof, next) {
		proof->sent = false;
		proof->list_wanted = 0;
		if (proof->file == NULL)
			end(proof);
	}
}

void proofs_lose_file(const struct owner *file)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (file->lock->proofs, proof, next) {
		if (proof->file == file)
			answer(proof, -EIO, 0);
	}
}

void proofs_forget_file(const struct owner *file)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (file->lock->proofs, proof, next) {
		if (proof->file == file)
			engine_cancel_proof(proof);
	}
}

/* Claims that stand, as far as is known. */
static bool may_be_proved(const struct claim *claim)
{
	return claim->state == CLAIM_HELD || claim->state == CLAIM_WAITING;
}

/* Claims that had no turn yet in this round. */
static void collect_next(struct engine *engine, struct collection *collection)
{
	for (struct lock *lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		struct claim *claim;
		DL_FOREACH (lock->queue, claim) {
			if (!may_be_proved(claim) || claim->proof_round == engine->proof_round)
				continue;
			if (!has_room(collection, claim))
				return;
			claim->proof_round = engine->proof_round;
			collect(collection, claim, NULL);
		}
	}
	engine->proof_round++; /* all have had their turn */
}

void engine_send_beat(struct engine *engine)
{
	struct collection collection;

	collection.count = collection.znodes = 0;
	collect_next(engine, &collection);
	engine_send_proof(engine, NULL, collection.proofs, collection.count);
}
