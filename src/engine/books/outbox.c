/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine sends to its store. What claims go by, and whatever is sent behind that, waits
 * until callers have been told what was decided: whoever has lost something hears of it before
 * anybody else can get it.
 *
 * With a journal everything waits until that has been committed, too: so the books that another
 * process finds there know of everything that was sent, and what was not heard of is what a lost
 * connection leaves.
 *
 * A store that has lost track of its session, having no memory, gives it up while the lease lasts.
 * The service is told of that behind the commit, too: so the claims of a session stand as long as
 * another process may find it in the books. What the engine itself gives up does not wait. It does
 * so only when the lease has ended, which the next process knows as well.
 *
 * Loop thread only.
 */
#include "engine/books/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/books/decisions.h"
#include "engine/books/lock.h"

enum operation {
	OPERATION_PLACE,
	OPERATION_LIST,
	OPERATION_AMEND,
	OPERATION_WATCH,
	OPERATION_MARK,
	OPERATION_AGE,
	OPERATION_WITHDRAW,
	OPERATION_BEQUEATH,
	OPERATION_HOLD,
	OPERATION_OUTLAST,
	OPERATION_ASK,
	OPERATION_TELL,
	OPERATION_PROVE,
	OPERATION_RENEW,
	OPERATION_ERRAND,
};

struct outgoing {
	struct outgoing *prev, *next;
	enum operation operation;
	bool flag;   /* PLACE: with a list; LIST: synced; WITHDRAW, HOLD: with the marker */
	bool attend; /* PLACE, LIST */
	void *tag;   /* ERRAND: that, which has everything */
	struct claim_name parts; /* PLACE, HOLD */
	union {
		int64_t order;			/* WITHDRAW, BEQUEATH */
		const struct engine_peer *peer; /* TELL: who is */
	};
	int64_t age_ms; /* MARK */
	/* What it is about, which is one thing unless PROVE; ASK, TELL: the claim in question, with
	 * the peer or the claim that asks as its text, and other names. */
	const struct store_proof *targets;
	size_t count;
};

/* Without memory it is asked for again soon. */
static void run(struct engine *engine, struct errand *errand)
{
	struct store *store = engine->store;
	const struct store_ops *ops = store->ops;
	int error = 0;

	switch (errand->kind) {
	case ERRAND_WATCH:
		ops->watch(store, &errand->watcher, errand->steps[0].path, NULL);
		break;
	case ERRAND_ALTER:
		error = ops->alter(store, &errand->change, errand->steps, errand->count);
		break;
	case ERRAND_LIST:
		error = ops->files(store, &errand->files, errand->steps[0].path);
		break;
	case ERRAND_READ:
		error = ops->read(store, &errand->read, errand->steps[0].path, NULL);
		break;
	}
	errand->sent = error == 0;
	errand->failed = error != 0;
	if (errand->failed && engine->now_ms + RETRY_MEMORY_MS < engine->retry_ms)
		engine->retry_ms = engine->now_ms + RETRY_MEMORY_MS;
}

/* Whether claims of the session go by it. */
static bool frees(const struct outgoing *outgoing)
{
	return outgoing->operation == OPERATION_WITHDRAW ||
	       outgoing->operation == OPERATION_BEQUEATH ||
	       outgoing->operation == OPERATION_OUTLAST || outgoing->operation == OPERATION_TELL ||
	       outgoing->operation == OPERATION_RENEW;
}

static void pass_on(const struct engine *engine, const struct outgoing *tell)
{
	const char *names[ENGINE_TOLD_MAX];

	for (size_t i = 0; i < tell->count; i++)
		names[i] = tell->targets[i].name;
	engine->events->on_tell(engine->context, tell->targets->path, tell->peer,
				tell->targets->text, names, tell->count);
}

static void transmit(struct engine *engine, const struct outgoing *outgoing)
{
	struct store *store = engine->store;
	const struct store_ops *ops = store->ops;
	const struct store_proof *target = outgoing->targets;
	void *tag = outgoing->tag;

	switch (outgoing->operation) {
	case OPERATION_PLACE:
		ops->place(store, tag, target->path, &outgoing->parts, target->text, outgoing->flag,
			   outgoing->attend ? ((struct claim *)tag)->place.lock : NULL);
		break;
	case OPERATION_LIST:
		ops->list(store, tag, target->path, outgoing->flag, outgoing->attend);
		break;
	case OPERATION_AMEND:
		ops->amend(store, tag, target->path, target->name, target->text, target->version);
		break;
	case OPERATION_WATCH:
		ops->watch(store, tag, target->path, target->name);
		break;
	case OPERATION_MARK:
		ops->mark(store, tag, target->path, target->name, target->text, outgoing->age_ms);
		break;
	case OPERATION_AGE:
		ops->age(store, tag, target->path, target->name);
		break;
	case OPERATION_WITHDRAW:
		ops->withdraw(store, decisions_told(engine), tag, target->path, target->name,
			      outgoing->order, outgoing->flag);
		break;
	case OPERATION_BEQUEATH:
		ops->bequeath(store, decisions_told(engine), tag, target->path, target->name,
			      outgoing->order, target->text);
		break;
	case OPERATION_HOLD:
		ops->hold(store, tag, target->path, target->name, &outgoing->parts, target->text,
			  outgoing->flag);
		break;
	case OPERATION_OUTLAST:
		ops->outlast(store, decisions_told(engine), tag, target->path, target->name,
			     target->version);
		break;
	case OPERATION_ASK:
		engine->events->on_ask(engine->context, target->path, target->name, target->text,
				       target[1].name);
		break;
	case OPERATION_TELL:
		pass_on(engine, outgoing);
		break;
	case OPERATION_PROVE:
		ops->prove(store, tag, target, outgoing->count);
		break;
	case OPERATION_RENEW:
		ops->renew(store, decisions_told_all(engine));
		break;
	case OPERATION_ERRAND:
		run(engine, tag);
		break;
	}
}

static size_t bytes_of(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies the text to a place in a block, and moves that on. */
static const char *put_text(char **at, const char *text)
{
	const char *copy = *at;
	if (text == NULL)
		return NULL;
	*at = stpcpy(*at, text) + 1;
	return copy;
}

/* In one block. NULL: out of memory. */
static struct outgoing *copy(const struct outgoing *outgoing)
{
	size_t bytes = sizeof(*outgoing) + outgoing->count * sizeof(*outgoing->targets);
	for (size_t i = 0; i < outgoing->count; i++) {
		const struct store_proof *target = &outgoing->targets[i];
		bytes += bytes_of(target->path) + bytes_of(target->name) + bytes_of(target->text);
	}
	if (outgoing->operation == OPERATION_TELL)
		bytes += sizeof(*outgoing->peer);
	struct outgoing *kept = malloc(bytes);
	if (kept == NULL)
		return NULL;
	*kept = *outgoing;
	struct store_proof *targets = (struct store_proof *)(kept + 1);
	char *at = (char *)(targets + outgoing->count);
	for (size_t i = 0; i < outgoing->count; i++) {
		const struct store_proof *target = &outgoing->targets[i];
		targets[i].path = put_text(&at, target->path);
		targets[i].name = put_text(&at, target->name);
		targets[i].text = put_text(&at, target->text);
		targets[i].version = target->version;
	}
	kept->targets = targets;
	if (outgoing->operation == OPERATION_TELL)
		kept->peer = memcpy(at, outgoing->peer, sizeof(*outgoing->peer));
	return kept;
}

static bool is_kept(const struct engine *engine)
{
	return engine->saving.journal != NULL && !state_journal_has_failed(engine->saving.journal);
}

/* What is sent cannot wait for the books, so these must not be used any more. */
static void end_keeping(struct engine *engine)
{
	state_journal_end(engine->saving.journal);
	log_error("the state is not kept any more: %s; a kill of this daemon would lose what is "
		  "locked",
		  strerror(ENOMEM));
}

static void send(struct engine *engine, const struct outgoing *outgoing)
{
	/* In the order of the calls. */
	bool waits = is_kept(engine) || engine->outgoing != NULL || frees(outgoing);
	struct outgoing *kept = waits ? copy(outgoing) : NULL;

	if (kept != NULL) {
		DL_APPEND(engine->outgoing, kept);
		return;
	}
	if (is_kept(engine))
		end_keeping(engine);
	if (waits) {
		decisions_tell(engine);
		outbox_send(engine);
	}
	transmit(engine, outgoing);
}

void outbox_conclude(struct engine *engine)
{
	engine->agenda.stirs++;
	decisions_tell(engine);
	if (engine->outgoing != NULL && !is_kept(engine))
		outbox_send(engine);
}

void outbox_send(struct engine *engine)
{
	struct outgoing *outgoing;

	if (decisions_told(engine) == NULL)
		return;
	while ((outgoing = engine->outgoing) != NULL) {
		DL_DELETE(engine->outgoing, outgoing);
		transmit(engine, outgoing);
		free(outgoing);
	}
}

void outbox_forget(struct engine *engine)
{
	struct outgoing *outgoing, *next;
	DL_FOREACH_SAFE (engine->outgoing, outgoing, next) {
		DL_DELETE(engine->outgoing, outgoing);
		free(outgoing);
	}
}

/* The operations */

void outbox_place(struct claim *claim, const char *data, bool list, bool attend)
{
	const struct store_proof target = {.path = claim->place.lock->path, .text = data};
	send(claim->place.lock->engine, &(struct outgoing){
						.operation = OPERATION_PLACE,
						.tag = claim,
						.flag = list,
						.attend = attend,
						.parts = claim->place.parts,
						.targets = &target,
						.count = 1,
					});
}

void outbox_list(struct lock *lock, bool sync, bool attend)
{
	const struct store_proof target = {.path = lock->path};
	send(lock->engine, &(struct outgoing){
				   .operation = OPERATION_LIST,
				   .tag = lock,
				   .flag = sync,
				   .attend = attend,
				   .targets = &target,
				   .count = 1,
			   });
}

/* About a place that has a name. `marked`: it may have a marker. */
static void send_about(struct place *place, void *tag, enum operation operation, bool marked,
		       const char *data)
{
	char name[CLAIM_NAME_BYTES];
	const struct store_proof target = {
		.path = place->lock->path,
		.name = place_name(place, name),
		.text = data,
		.version = place->version,
	};
	send(place->lock->engine, &(struct outgoing){
					  .operation = operation,
					  .tag = tag,
					  .flag = marked,
					  .order = place->parts.order,
					  .age_ms = term_least_ms(place),
					  .targets = &target,
					  .count = 1,
				  });
}

void outbox_amend(struct place *place, const char *data)
{
	send_about(place, place, OPERATION_AMEND, false, data);
}

void outbox_watch(struct rival *rival)
{
	send_about(&rival->place, &rival->watcher, OPERATION_WATCH, false, NULL);
}

void outbox_mark_holder(struct claim *claim, const char *data)
{
	send_about(&claim->place, claim, OPERATION_MARK, false, data);
}

void outbox_age(struct rival *orphan)
{
	send_about(&orphan->place, orphan, OPERATION_AGE, false, NULL);
}

void outbox_withdraw(struct place *place, bool marked)
{
	send_about(place, place, OPERATION_WITHDRAW, marked, NULL);
}

void outbox_hold(struct claim *claim, const struct claim_id *id, const char *data)
{
	char name[CLAIM_NAME_BYTES];
	const struct store_proof target = {
		.path = claim->place.lock->path,
		.name = place_name(&claim->place, name),
		.text = data,
	};
	struct outgoing outgoing = {
		.operation = OPERATION_HOLD,
		.tag = claim,
		.flag = claim->marker.asked,
		.parts = claim->place.parts,
		.targets = &target,
		.count = 1,
	};

	outgoing.parts.id = *id;
	send(claim->place.lock->engine, &outgoing);
}

void outbox_outlast(struct rival *hold)
{
	send_about(&hold->place, &hold->place, OPERATION_OUTLAST, false, NULL);
}

void outbox_bequeath(struct place *place, const char *heir)
{
	send_about(place, place, OPERATION_BEQUEATH, false, heir);
}

void outbox_ask(struct rival *rival, const char *claim)
{
	const struct store_proof targets[] = {
		{.path = rival->place.lock->path, .name = rival->name, .text = rival->peer},
		{.name = claim},
	};
	send(rival->place.lock->engine,
	     &(struct outgoing){.operation = OPERATION_ASK, .targets = targets, .count = 2});
}

void outbox_tell(struct engine *engine, const char *path, const struct engine_peer *asker,
		 const char *claim, const char *const *names, size_t count)
{
	struct store_proof targets[ENGINE_TOLD_MAX] = {{.path = path, .text = claim}};

	for (size_t i = 0; i < count; i++)
		targets[i].name = names[i];
	send(engine, &(struct outgoing){
			     .operation = OPERATION_TELL,
			     .peer = asker,
			     .targets = targets,
			     .count = count,
		     });
}

void outbox_send_proof(struct engine *engine, struct proof *proof, const struct store_proof *proofs,
		       size_t count)
{
	send(engine, &(struct outgoing){
			     .operation = OPERATION_PROVE,
			     .tag = proof,
			     .targets = proofs,
			     .count = count,
		     });
}

void outbox_run(struct engine *engine, struct errand *errand)
{
	errand->watcher.of_tenant = true;
	send(engine, &(struct outgoing){.operation = OPERATION_ERRAND, .tag = errand});
}

bool outbox_is_of_session(const struct engine *engine, const struct store_claim *claim)
{
	const struct store_ops *ops = engine->store->ops;

	if (ops->session == NULL)
		return claim->session != 0;
	return claim->session != 0 && claim->session == (uint64_t)ops->session(engine->store);
}

void outbox_renew(struct engine *engine)
{
	send(engine, &(struct outgoing){.operation = OPERATION_RENEW});
}

void outbox_renew_now(struct engine *engine)
{
	decisions_tell(engine);
	engine->store->ops->renew(engine->store, decisions_told_all(engine));
}

void outbox_nudge(struct engine *engine)
{
	engine->store->ops->nudge(engine->store);
}

void outbox_settle_root(struct engine *engine)
{
	if (engine->store->ops->settle != NULL)
		engine->store->ops->settle(engine->store);
}

void outbox_send_touch(struct engine *engine)
{
	engine->store->ops->touch(engine->store);
}

/* The lease */

static bool has_lease(const struct engine *engine)
{
	return engine->store != NULL && engine->store->ops->lease != NULL;
}

struct store_lease outbox_lease(const struct engine *engine)
{
	struct store_lease lease = {
		.end_ms = INT64_MAX,
		.proven_ms = INT64_MIN,
		.saved_ms = INT64_MIN,
		.grants = true,
		.beat_ms = INT64_MAX,
		.touch_ms = INT64_MAX,
	};

	if (has_lease(engine))
		engine->store->ops->lease(engine->store, engine->now_ms, &lease);
	return lease;
}

void outbox_defer_beat(struct engine *engine)
{
	engine->session.beat_wanted = false;
	if (has_lease(engine))
		engine->store->ops->defer_beat(engine->store);
}

void outbox_doubt_lease(struct engine *engine, int64_t now_ms)
{
	if (has_lease(engine))
		engine->store->ops->doubt(engine->store, now_ms);
}

void outbox_resume_lease(struct engine *engine, int64_t saved_ms, bool doubtful)
{
	if (has_lease(engine))
		engine->store->ops->resume(engine->store, engine->session.timeout_ms, saved_ms,
					   doubtful);
}
