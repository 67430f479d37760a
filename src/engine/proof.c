/* SPDX-License-Identifier: Apache-2.0
 *
 * Proofs: transactions of the store that show that our claims stand. An open file asks for one to
 * know whether it still holds its lock, and for its token; the heartbeat brings some of all claims
 * along, in turn, because somebody may take one away by hand, and not all are watched.
 *
 * A file may hold by more claims than one transaction takes. Then several are sent, one behind the
 * other, and the answer is yes only if all of them succeed. A claim that is gone does not come
 * back: so what a later transaction shows to stand has stood when the first one was carried out,
 * and at that moment all of it did.
 *
 * A token is the stamp of a change of the holder's own claim that is made after the grant, in the
 * first transaction. Whoever held before had its token before its claim was gone, so that one is
 * smaller, however claims are reused; whoever holds next is granted when one of these claims is
 * gone, which is after the first transaction, so its token is greater. (Were the change in the last
 * one, a claim of the first could be gone by then, and the next holder have its token already.)
 *
 * A token is told for what was held when the question was sent: it is younger than every grant
 * that was made through the file before the question came. A grant that is made while the answer is
 * on its way has a token of its own, which who asks from then on is told.
 *
 * A proof that was sent before a doubt (engine_doubt()) is sent again when it is answered: what it
 * shows may have been so before the clock stood still.
 *
 * Who never asks costs nothing.
 *
 * Loop thread only.
 */
#include "engine/proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/conflict.h"
#include "engine/books/decisions.h"
#include "engine/books/lock.h"
#include "engine/books/outbox.h"
#include "engine/books/owner.h"
#include "engine/books/save.h"
#include "engine/books/state.h"
#include "engine/engine.h"
#include "engine/overseer.h"

/* Ends a proof that is not under way. */
static void end(struct proof *proof)
{
	struct lock *lock = proof->lock;
	DL_DELETE(lock->proofs, proof);
	free(proof);
}

/* If the store has not answered yet, the proof goes when it does. */
void engine_cancel_proof(struct proof *proof)
{
	proof->file = NULL;
	if (proof->under_way == 0)
		end(proof);
}

static void answer(struct proof *proof, int error, uint64_t token)
{
	decisions_add_proof(proof->lock->engine, proof->cookie, error, token);
	engine_cancel_proof(proof);
}

void proofs_lose_file(const struct owner *file)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (file->lock->proofs, proof, next) {
		if (proof->file == file)
			answer(proof, -EIO, 0);
	}
}

/* The number of the latest grant to the open file, or to a process that has locked through it. */
static uint64_t latest_grant(const struct owner *file)
{
	const struct records *records;
	uint64_t latest = file->granted;
	for (records = file->lock->records; records != NULL; records = records->hh.next) {
		if (records->owner.granted > latest && owners_same_side(&records->owner, file))
			latest = records->owner.granted;
	}
	return latest;
}

/* Whether something that was locked through the open file is held by the claim: by one of its own,
 * or of a process that has locked through it, or by a flock that such a process has locked under
 * through another file. */
static bool is_held_by(const struct owner *file, const struct claim *claim)
{
	const struct records *records;

	if (claim->state != CLAIM_HELD)
		return false;
	if (owners_same_side(owner_of(claim), file))
		return true;
	if (claim->place.parts.record)
		return false;
	for (records = file->lock->records; records != NULL; records = records->hh.next) {
		if (records->held.count > 0 && owners_same_side(&records->owner, file) &&
		    conflict_may_cover(claim, records))
			return true;
	}
	return false;
}

/* Claims that one transaction is to show to stand. */
struct collection {
	struct store_proof proofs[STORE_PROOFS_MAX];
	char names[STORE_PROOFS_MAX][CLAIM_NAME_BYTES];
	size_t count, znodes, bytes;
};

/* In front of each path in a transaction: the store's root, and what the protocol adds. */
#define ROOT_BYTES 48

/* What of a transaction a znode takes, at most: paths are encoded. */
static size_t bytes_of(const char *path, size_t name_bytes)
{
	return ROOT_BYTES + 3 * strlen(path) + name_bytes;
}

static bool has_room(const struct engine *engine, const struct collection *collection,
		     size_t znodes, size_t bytes)
{
	return collection->count == 0 || (collection->znodes + znodes <= engine->limits.proofs &&
					  collection->bytes + bytes <= STORE_PROOFS_BYTES_MAX);
}

/* Returns false if there is no room for the claim. */
static bool collect(struct collection *collection, const struct claim *claim, const char *text)
{
	const char *path = claim->place.lock->path;
	size_t znodes = claim_recipe_znodes(claim->place.parts.recipe), count = collection->count;
	char name[CLAIM_NAME_BYTES];
	size_t bytes = znodes * bytes_of(path, strlen(place_name(&claim->place, name)));

	if (text != NULL)
		bytes += strlen(text);
	if (!has_room(claim->place.lock->engine, collection, znodes, bytes))
		return false;
	collection->proofs[count] = (struct store_proof){
		.path = path,
		.name = place_name(&claim->place, collection->names[count]),
		.text = text,
		.version = claim->place.version,
	};
	collection->count++;
	collection->znodes += znodes;
	collection->bytes += bytes;
	return true;
}

static void send_collection(struct proof *proof, struct collection *collection)
{
	proof->under_way++;
	outbox_send_proof(proof->lock->engine, proof, collection->proofs, collection->count);
	collection->count = collection->znodes = collection->bytes = 0;
}

/* Lets the store look for all claims that the file holds by; the first is changed, if there is a
 * text. */
static void send_held(struct proof *proof, const char *text)
{
	struct collection collection;
	const struct claim *claim;

	collection.count = collection.znodes = collection.bytes = 0;
	CLAIMS_FOREACH (proof->lock->queue.first, claim) {
		if (!is_held_by(proof->file, claim))
			continue;
		if (!collect(&collection, claim, text)) {
			send_collection(proof, &collection);
			collect(&collection, claim, text);
		}
		text = NULL;
	}
	send_collection(proof, &collection);
}

/* The first claim that the open file holds by; NULL: it holds nothing. */
static const struct claim *first_held(const struct owner *file)
{
	const struct claim *claim;
	CLAIMS_FOREACH (file->lock->queue.first, claim) {
		if (is_held_by(file, claim))
			return claim;
	}
	return NULL;
}

bool engine_file_holds(const struct owner *file)
{
	return first_held(file) != NULL;
}

bool engine_file_claim(const struct owner *file, struct engine_claim *ret)
{
	const struct claim *claim = first_held(file);

	if (claim == NULL)
		return false;
	ret->path = claim->place.lock->path;
	ret->version = claim->place.version;
	claim_name_format_placed(ret->name, &claim->place.parts); /* it is ours */
	return true;
}

bool engine_file_is_revoked(const struct owner *file)
{
	const struct claim *claim;
	CLAIMS_FOREACH (file->lock->queue.first, claim) {
		if (claim->revoked && is_held_by(file, claim))
			return true;
	}
	return false;
}

static void send(struct proof *proof)
{
	struct engine *engine = proof->lock->engine;
	const struct claim *claim = first_held(proof->file);
	char *text = NULL;

	if (claim == NULL) {
		answer(proof, proof->wants_token ? -ENODATA : 0, 0);
		return;
	}
	if (engine->session.state != STORE_CONNECTED || claim->data.stale)
		return;
	proof->granted = latest_grant(proof->file);
	proof->doubts = engine->session.doubts;
	if (proof->wants_token && proof->file->token_grant < proof->granted) {
		text = wish_format_data(claim);
		if (text == NULL) {
			answer(proof, -ENOMEM, 0);
			return;
		}
		proof->changes = claim->place.parts.id.number;
		proof->version = claim->place.version;
	}
	proof->sent_ms = engine->now_ms;
	proof->error = 0;
	proof->stamp = 0;
	send_held(proof, text);
	free(text);
}

int engine_prove(struct owner *file, bool token, void *cookie, struct proof **ret_proof)
{
	struct proof *proof;

	*ret_proof = NULL;
	if (token && !lock_has_abilities(file->lock, STORE_HAS_STAMPS))
		return -ENOLCK;
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
	outbox_conclude(file->lock->engine);
	return 0;
}

/* Two that asked at the same time are told one token: the smaller one, which came first. */
static void tell_token(struct proof *proof)
{
	struct owner *file = proof->file;

	if (file->token_grant < proof->granted) {
		file->token_grant = proof->granted;
		file->token = (uint64_t)proof->stamp;
		owner_mark(file);
	}
	answer(proof, 0, file->token);
}

/* The claim that was to be changed; NULL: none was, or it is gone. */
static struct claim *find_changed(const struct proof *proof)
{
	struct claim *claim;
	CLAIMS_FOREACH (proof->lock->queue.first, claim) {
		if (proof->changes != 0 && claim->place.parts.id.number == proof->changes)
			return claim;
	}
	return NULL;
}

/* Others had changed it before. It is sent again when what they wrote was read. */
static void prove_again(struct proof *proof)
{
	struct claim *claim = find_changed(proof);

	if (claim != NULL)
		overseer_note_stale(claim, proof->version);
	send(proof);
}

/* All that was sent is answered. */
static void conclude(struct proof *proof)
{
	struct lock *lock = proof->lock;
	int error = proof->error;

	if (proof->file == NULL)
		end(proof);
	else if (error == 0 && proof->doubts != lock->engine->session.doubts)
		send(proof);
	else if (error == 0 && proof->wants_token)
		tell_token(proof);
	else if (error == 0)
		answer(proof, 0, 0);
	else if (error == -EACCES || error == -EMSGSIZE)
		answer(proof, error, 0);
	else if (error == -ESTALE)
		prove_again(proof);
	else if (error == -ENOENT)
		proof->list_wanted = lock_list_anew(lock); /* which fences whose claim is gone */
	else
		lock_retry_after(lock, "proof of a claim", error);
}

void proof_note_answer(struct proof *proof, int error, int64_t stamp)
{
	if (proof->error == 0)
		proof->error = error;
	if (stamp > 0) {
		struct claim *changed = find_changed(proof);
		proof->stamp = stamp;
		if (changed != NULL)
			overseer_note_change(changed, proof->version);
	}
	if (--proof->under_way == 0)
		conclude(proof);
}

void proofs_resume(struct lock *lock)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (lock->proofs, proof, next) {
		if (proof->under_way == 0 && proof->list_wanted <= lock->listing.done)
			send(proof);
	}
}

bool proofs_need_list(const struct lock *lock)
{
	const struct proof *proof;
	DL_FOREACH (lock->proofs, proof) {
		if (proof->list_wanted > lock->listing.done)
			return true;
	}
	return false;
}

void proofs_forget_sent(struct lock *lock)
{
	struct proof *proof, *next;
	DL_FOREACH_SAFE (lock->proofs, proof, next) {
		proof->under_way = 0;
		proof->list_wanted = 0;
		if (proof->file == NULL)
			end(proof);
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

/* What a heartbeat shows of the tenant's names. */
struct shown {
	const struct engine *engine;
	struct collection *collection;
};

static bool show_name(void *to, const char *path)
{
	const struct shown *shown = to;
	struct collection *collection = shown->collection;
	size_t bytes = bytes_of(path, 0);

	if (!has_room(shown->engine, collection, 1, bytes))
		return false;
	collection->proofs[collection->count++] = (struct store_proof){.path = path};
	collection->znodes++;
	collection->bytes += bytes;
	return true;
}

/* Claims that had no turn yet in this round. */
static void collect_next(struct engine *engine, struct collection *collection)
{
	for (struct lock *lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		struct claim *claim;
		CLAIMS_FOREACH (lock->queue.first, claim) {
			if (!may_be_proved(claim) ||
			    claim->proof_round == engine->session.beat_round)
				continue;
			if (!collect(collection, claim, NULL))
				return;
			claim->proof_round = engine->session.beat_round;
		}
	}
	struct shown shown = {engine, collection};
	if (engine->tenant.kind->show_names(engine->tenant.context, engine->session.beat_round,
					    show_name, &shown))
		engine->session.beat_round++; /* all have had their turn */
}

void proofs_send_beat(struct engine *engine)
{
	struct collection collection;

	collection.count = collection.znodes = collection.bytes = 0;
	collect_next(engine, &collection);
	outbox_send_proof(engine, NULL, collection.proofs, collection.count);
}
