/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books as text, all of them or, for the journal, what of them has changed. Lines:
 *
 *   engine
 *   owner    what an open file has been granted, or lost
 *   lock     its path; what follows is of it
 *   process  with record locks, and `file`, for each other one through which it has locked
 *   claim    ours, those not placed in their order, each with its wish; behind all others, one by
 *            one, the wishes of those that are handed on
 *
 * and those of the tenant.
 *
 * Loop thread only.
 */
#include "engine/save.h"

#include "engine/conflict.h"
#include "engine/outbox.h"

const char *const engine_state_words[] = {
	[CLAIM_WANTED] = "wanted",   [CLAIM_PLACING] = "uncertain", [CLAIM_UNCERTAIN] = "uncertain",
	[CLAIM_QUEUED] = "queued",   [CLAIM_WAITING] = "queued",    [CLAIM_HELD] = "held",
	[CLAIM_LEAVING] = "leaving",
};

const char *const engine_kind_words[] = {
	[LOCK_KIND_OPEN] = "open",
	[LOCK_KIND_FLOCK] = "flock",
	[LOCK_KIND_RECORD] = "record",
};

/* What each line says */

void engine_save_owner(const struct owner *owner, FILE *out)
{
	state_unsigned(out, "owner", owner->number);
}

static void save_engine(const struct engine *engine, FILE *out)
{
	const struct store_lease lease = engine_lease(engine);

	state_begin(out, "engine");
	state_unsigned(out, "session_number", engine->session_number);
	state_unsigned(out, "claim_number", engine->claim_number);
	state_unsigned(out, "owner_number", engine->owner_number);
	state_unsigned(out, "grants", engine->grants);
	state_unsigned(out, "connections", engine->connections);
	state_unsigned(out, "sessions_lost", engine->sessions_lost);
	state_flag(out, "lost", engine->session == STORE_LOST);
	if (engine->session == STORE_SUSPENDED && engine->suspended_ms != INT64_MIN)
		state_number(out, "suspended_ms", engine->suspended_ms);
	state_number(out, "timeout_ms", engine->timeout_ms);
	state_number(out, "proven_ms", lease.saved_ms);
	state_flag(out, "doubtful", lease.doubtful);
	state_unsigned(out, "setbacks", engine->setbacks);
	if (engine->moratorium_ms != INT64_MIN)
		state_number(out, "moratorium_ms", engine->moratorium_ms);
	state_flag(out, "set_back", engine->moratorium == STORE_SET_BACK);
	state_end(out);
}

static void save_lock(const struct lock *lock, FILE *out)
{
	state_begin(out, "lock");
	state_text(out, "path", lock->path);
	state_text(out, "recipe", claim_recipe_names[lock_recipe(lock)]);
	if (lock->moratorium_ms != 0)
		state_number(out, "moratorium_ms", lock->moratorium_ms);
	state_end(out);
}

static void save_grants(const struct owner *owner, FILE *out)
{
	state_flag(out, "lost", owner->lost);
	state_unsigned(out, "granted", owner->granted);
	state_unsigned(out, "token_grant", owner->token_grant);
	state_unsigned(out, "token", owner->token);
}

/* An open file that was granted nothing has none. */
static void save_owner(const struct owner *owner, const struct engine_transfer *transfer, FILE *out)
{
	if (!owner->lost && owner->granted == 0 && owner->token_grant == 0)
		return;
	state_begin(out, "owner");
	state_unsigned(out, "file", transfer->number_owner(owner->cookie));
	save_grants(owner, out);
	state_end(out);
}

static void save_process(const struct records *records, const struct engine_transfer *transfer,
			 FILE *out)
{
	if (records->files_count == 0)
		return; /* it was not let in */
	state_begin(out, "process");
	state_unsigned(out, "id", records->process_id);
	state_number(out, "pid", records->pid);
	state_ranges(out, "held", &records->held);
	engine_save_owner(&records->owner, out);
	save_grants(&records->owner, out);
	state_unsigned(out, "file", transfer->number_owner(records->files[0]->cookie));
	state_end(out);
	for (size_t i = 1; i < records->files_count; i++) {
		state_begin(out, "file");
		state_unsigned(out, "file", transfer->number_owner(records->files[i]->cookie));
		state_end(out);
	}
}

/* Whose a wish is. */
static void save_whose(const struct owner *owner, const struct engine_transfer *transfer, FILE *out)
{
	if (owner == NULL)
		return;
	if (owner->records != NULL)
		state_unsigned(out, "process", owner->records->process_id);
	else
		state_unsigned(out, "file", transfer->number_owner(owner->cookie));
}

/* Whether the wish is saved in the line of its claim: the only one, or the holder's. */
static bool is_of_line(const struct wish *wish)
{
	return wish->claim->handoff == NULL || wish_is_held(wish);
}

static void save_wish(const struct wish *wish, const struct engine_transfer *transfer, FILE *out)
{
	const struct engine_caller caller = wish_caller(wish);

	state_text(out, "kind", engine_kind_words[wish->kind]);
	state_flag(out, "asked", wish->asked);
	state_flag(out, "waits", wish->waits);
	if (wish->timer.place != 0)
		state_number(out, "due_ms", wish->timer.due_ms);
	state_number(out, "pid", wish->pid);
	state_unsigned(out, "uid", wish->uid);
	if (wish->asked)
		state_unsigned(out, "wish", transfer->number_wish(wish->cookie));
	state_flag(out, "grace", wish->grace == GRACE_RUNS);
	if (wish->grace == GRACE_RUNS && wish->claim->limit_ms != INT64_MAX)
		state_number(out, "limit_ms", wish->claim->limit_ms);
	save_whose(wish->owner, transfer, out);
	transfer->save_caller(out, &caller);
}

/* What versions of dlockfs before this one expect of a claim whose wishes are in lines of their
 * own, all of one user, or that nobody wants. */
static void save_no_wish(const struct claim *claim, const struct engine_transfer *transfer,
			 FILE *out)
{
	const struct wish *any = claim->wishes;
	enum lock_kind kind = claim->place.parts.record ? LOCK_KIND_RECORD : LOCK_KIND_FLOCK;

	state_text(out, "kind", engine_kind_words[kind]);
	state_flag(out, "asked", any != NULL);
	state_flag(out, "waits", any != NULL && any->waits);
	state_number(out, "pid", 0);
	state_unsigned(out, "uid", any != NULL ? any->uid : 0);
	if (claim->state != CLAIM_LEAVING)
		transfer->save_caller(out, &(struct engine_caller){0});
}

static void save_coverage(const struct claim *claim, const struct engine_transfer *transfer,
			  FILE *out)
{
	const struct coverage *coverage = claim_coverage(claim);
	struct range asked = coverage->asked;
	const struct range_set set = {&asked, 1, 1};

	state_ranges(out, "covers", &coverage->ranges);
	state_ranges(out, "asked_for", &set);
	/* Through which file a range was asked for matters only while it is; that may be closed. */
	if (claim->wishes != NULL && claim->state != CLAIM_HELD)
		state_unsigned(out, "through", transfer->number_owner(coverage->file->cookie));
}

/* `lead`, `keeper`, `behind`, `following` and `used` are the words of the format. */
static void save_handoff(const struct claim *claim, FILE *out)
{
	bool held = claim->state == CLAIM_HELD;

	state_unsigned(out, "lead", claim->handoff->number);
	state_flag(out, "keeper", !held || claim_is_kept(claim));
	state_flag(out, "used", held);
	state_flag(out, "contended", claim->handoff->contended);
	state_number(out, "passed", claim->handoff->passed);
}

/* Whether its data in the store may not be what it should be. */
static bool is_to_be_amended(const struct claim *claim)
{
	bool stands = claim->state == CLAIM_QUEUED || claim->state == CLAIM_WAITING ||
		      claim->state == CLAIM_HELD;
	return stands && (claim->data.amended || claim->data.amending);
}

static void save_claim(const struct claim *claim, const struct engine_transfer *transfer, FILE *out)
{
	char name[CLAIM_NAME_BYTES];
	const struct wish *wish = claim->wishes;

	/* Of one that stands nowhere and that nobody wants nothing follows. */
	if (claim->state == CLAIM_WANTED && wish == NULL)
		return;
	state_begin(out, "claim");
	state_text(out, "state", engine_state_words[claim->state]);
	state_text(out, "name", place_name(&claim->place, name));
	if (wish != NULL && is_of_line(wish))
		save_wish(wish, transfer, out);
	else
		save_no_wish(claim, transfer, out);
	if (claim->state == CLAIM_HELD)
		state_number(out, "kept", claim->kept);
	state_flag(out, "says_waits", claim->place.says_waits);
	state_flag(out, "says_keep", claim->place.says_keep);
	state_number(out, "waits_for", claim_name_number(claim->place.waits_for));
	state_flag(out, "careful", claim->careful);
	state_flag(out, "revoked", claim->revoked);
	state_flag(out, "marked", claim->marker.asked);
	state_flag(out, "amend", is_to_be_amended(claim));
	state_flag(out, "exact", claim->place.exact);
	if (claim->place.holds != NULL)
		state_ranges(out, "holds", claim->place.holds);
	if (claim_coverage(claim) != NULL)
		save_coverage(claim, transfer, out);
	if (claim->handoff != NULL)
		save_handoff(claim, out);
	state_end(out);
}

/* As a claim, with a name, which other versions of this program read: that of no claim, but of its
 * mode. */
static void save_waiting(const struct wish *wish, const struct engine_transfer *transfer, FILE *out)
{
	const struct claim_name name = {
		.id = {.session = claim_id_session(0)},
		.span = CLAIM_SPAN_WHOLE,
		.mode = wish->claim->place.parts.mode,
	};
	char text[CLAIM_NAME_BYTES];

	claim_name_format_placed(text, &name);
	state_begin(out, "claim");
	state_text(out, "state", "following");
	state_text(out, "name", text);
	save_wish(wish, transfer, out);
	state_unsigned(out, "behind", wish->claim->handoff->number);
	state_end(out);
}

/* All of them */

static void save_list(const struct place *list, const struct engine_transfer *transfer, FILE *out)
{
	const struct claim *claim;

	CLAIMS_FOREACH (list, claim) {
		save_claim(claim, transfer, out);
	}
}

static void save_wishes(const struct handoff *list, const struct engine_transfer *transfer,
			FILE *out)
{
	const struct handoff *handoff;
	const struct wish *wish;

	DL_FOREACH (list, handoff) {
		DL_FOREACH (handoff->claim->wishes, wish) {
			if (!is_of_line(wish))
				save_waiting(wish, transfer, out);
		}
	}
}

struct saving {
	const struct engine_transfer *transfer;
	FILE *out;
};

static void save_visited(void *visitor, struct owner *owner)
{
	const struct saving *saving = visitor;
	save_owner(owner, saving->transfer, saving->out);
}

void engine_save(const struct engine *engine, const struct engine_transfer *transfer, FILE *out)
{
	struct saving saving = {transfer, out};
	const struct lock *lock;
	const struct records *records;

	save_engine(engine, out);
	transfer->each_owner(engine->context, save_visited, &saving);
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		save_lock(lock, out);
		for (records = lock->records; records != NULL; records = records->hh.next)
			save_process(records, transfer, out);
		save_list(lock->queue.first, transfer, out);
		save_list(lock->unplaced, transfer, out);
		save_list(lock->leaving, transfer, out);
		save_wishes(lock->handoffs, transfer, out);
		save_wishes(lock->held_handoffs, transfer, out);
	}
	engine->tenant.kind->save(engine->tenant.context, out);
}

/* For the journal */

enum { PART_ENGINE = 4, PART_OWNERS, PART_LOCKS };

/* Of what is of a lock. */
enum { GROUP_LOCK, GROUP_PROCESS, GROUP_CLAIM, GROUP_WISH };

#define SERIAL_BITS 56

static struct state_place place_in(const struct lock *lock, uint64_t group, uint64_t serial)
{
	return (struct state_place){
		{lock->engine->place, PART_LOCKS, lock->serial, group << SERIAL_BITS | serial},
	};
}

/* What the item is a part of. */
#define WHOLE(type, part) ((type *)((char *)(part)-offsetof(type, item)))

static struct state_place engine_place_of(const struct state_item *item)
{
	return (struct state_place){{WHOLE(const struct engine, item)->place, PART_ENGINE}};
}

static void engine_save_item(const struct state_item *item, FILE *out)
{
	save_engine(WHOLE(const struct engine, item), out);
}

static struct state_place lock_place_of(const struct state_item *item)
{
	return place_in(WHOLE(const struct lock, item), GROUP_LOCK, 0);
}

static void lock_save_item(const struct state_item *item, FILE *out)
{
	save_lock(WHOLE(const struct lock, item), out);
}

static struct state_place owner_place_of(const struct state_item *item)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	return (struct state_place){{owner->lock->engine->place, PART_OWNERS, owner->number}};
}

static void owner_save_item(const struct state_item *item, FILE *out)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	save_owner(owner, owner->lock->engine->transfer, out);
}

static struct state_place process_place_of(const struct state_item *item)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	return place_in(owner->lock, GROUP_PROCESS, owner->number);
}

static void process_save_item(const struct state_item *item, FILE *out)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	save_process(owner->records, owner->lock->engine->transfer, out);
}

static struct state_place claim_place_of(const struct state_item *item)
{
	const struct claim *claim = WHOLE(const struct claim, item);
	return place_in(claim->place.lock, GROUP_CLAIM, claim->serial);
}

static void claim_save_item(const struct state_item *item, FILE *out)
{
	const struct claim *claim = WHOLE(const struct claim, item);
	save_claim(claim, claim->place.lock->engine->transfer, out);
}

static struct state_place wish_place_of(const struct state_item *item)
{
	const struct wish *wish = WHOLE(const struct wish, item);
	return place_in(wish_lock(wish), GROUP_WISH, wish->serial);
}

static void wish_save_item(const struct state_item *item, FILE *out)
{
	const struct wish *wish = WHOLE(const struct wish, item);
	save_waiting(wish, wish_lock(wish)->engine->transfer, out);
}

static const struct state_kind engine_kind = {engine_place_of, engine_save_item};
static const struct state_kind lock_kind = {lock_place_of, lock_save_item};
static const struct state_kind owner_kind = {owner_place_of, owner_save_item};
static const struct state_kind process_kind = {process_place_of, process_save_item};
static const struct state_kind claim_kind = {claim_place_of, claim_save_item};
static const struct state_kind wish_kind = {wish_place_of, wish_save_item};

void engine_mark(struct engine *engine)
{
	state_journal_mark(engine->journal, &engine->item, &engine_kind);
}

void lock_mark(struct lock *lock)
{
	state_journal_mark(lock->engine->journal, &lock->item, &lock_kind);
}

void owner_mark(struct owner *owner)
{
	const struct lock *lock = owner->lock;
	state_journal_mark(lock->engine->journal, &owner->item,
			   owner->records != NULL ? &process_kind : &owner_kind);
}

void claim_mark(struct claim *claim)
{
	state_journal_mark(claim->place.lock->engine->journal, &claim->item, &claim_kind);
}

void wish_mark(struct wish *wish)
{
	if (is_of_line(wish))
		claim_mark(wish->claim);
	else
		state_journal_mark(wish_lock(wish)->engine->journal, &wish->item, &wish_kind);
}

void engine_unmark(struct engine *engine, struct state_item *item)
{
	state_journal_remove(engine->journal, item);
}

static void mark_list(struct place *list)
{
	struct claim *claim;
	struct wish *wish;
	CLAIMS_FOREACH (list, claim) {
		claim_mark(claim);
		DL_FOREACH (claim->wishes, wish) {
			wish_mark(wish);
		}
	}
}

static void mark_visited(void *visitor, struct owner *owner)
{
	owner_mark(owner);
}

static void mark_all(struct lock *lock)
{
	struct records *records;

	lock_mark(lock);
	for (records = lock->records; records != NULL; records = records->hh.next)
		owner_mark(&records->owner);
	mark_list(lock->queue.first);
	mark_list(lock->unplaced);
	mark_list(lock->leaving);
}

void engine_set_journal(struct engine *engine, struct state_journal *journal,
			const struct engine_transfer *transfer, uint64_t place)
{
	struct lock *lock;

	engine->journal = journal;
	engine->transfer = transfer;
	engine->place = place;
	if (journal == NULL)
		return;
	engine_mark(engine);
	transfer->each_owner(engine->context, mark_visited, NULL);
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next)
		mark_all(lock);
	engine->tenant.kind->mark_all(engine->tenant.context);
}
