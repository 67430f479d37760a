/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books as text, all of them or, for the journal, what of them has changed. Lines:
 *
 *   engine
 *   owner    what an open file has been granted, or lost
 *   lock     its path; what follows is of it
 *   process  with record locks, and `file`, for each other one through which it has locked
 *   claim    ours, those not placed in their order, each with its wish
 *   wish     of a claim that is handed on, one by one, behind all claims
 *
 * and those of the tenant.
 *
 * Loop thread only.
 */
#include "engine/books/save.h"

#include "engine/books/outbox.h"

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

const struct field engine_fields[] = {
	{"session_number", FIELD_UNSIGNED(struct engine, issued.session, UINT64_MAX)},
	{"claim_number", FIELD_UNSIGNED(struct engine, issued.claim, UINT32_MAX)},
	{"grants", FIELD_UNSIGNED(struct engine, issued.grants, UINT64_MAX)},
	{"connections", FIELD_UNSIGNED(struct engine, session.connections, UINT64_MAX)},
	{"sessions_lost", FIELD_UNSIGNED(struct engine, session.lost, UINT64_MAX)},
	{"timeout_ms", FIELD_NUMBER(struct engine, session.timeout_ms, 0, INT32_MAX)},
	{"draining", FIELD_FLAG(struct engine, grants.draining)},
	{"setbacks", FIELD_UNSIGNED(struct engine, moratorium.setbacks, UINT64_MAX), FIELD_OR(0)},
	{"moratorium_ms", FIELD_NUMBER(struct engine, moratorium.until_ms, 0, SAVE_TIME_MAX_MS),
	 FIELD_OR(INT64_MIN)},
	{0},
};

const struct field engine_lock_fields[] = {
	{"moratorium_ms", FIELD_NUMBER(struct lock, losses.moratorium_ms, 0, SAVE_TIME_MAX_MS),
	 FIELD_OR(0)},
	{0},
};

const struct field engine_owner_fields[] = {
	{"lost", FIELD_FLAG(struct owner, lost)},
	{"granted", FIELD_UNSIGNED(struct owner, granted, UINT64_MAX), FIELD_OR(0)},
	{"token_grant", FIELD_UNSIGNED(struct owner, token_grant, UINT64_MAX), FIELD_OR(0)},
	{"token", FIELD_UNSIGNED(struct owner, token, UINT64_MAX), FIELD_OR(0)},
	{"term_least_ms", FIELD_NUMBER(struct owner, term.least_ms, 0, CLAIM_LEAST_MAX_MS),
	 FIELD_OR(0)},
	{"term_most_ms", FIELD_UNSIGNED(struct owner, term.most_ms, UINT32_MAX), FIELD_OR(0)},
	{0},
};

const struct field engine_wish_fields[] = {
	{"pid", FIELD_NUMBER(struct wish, pid, 0, INT32_MAX)},
	{"uid", FIELD_UNSIGNED(struct wish, uid, UINT32_MAX)},
	{0},
};

const struct field engine_handoff_fields[] = {
	{"lead", FIELD_UNSIGNED(struct handoff, number, SAVE_HANDOFFS_MAX)},
	{"contended", FIELD_FLAG(struct handoff, contended)},
	{"passed", FIELD_NUMBER(struct handoff, passed, 0, INT64_MAX), FIELD_OR(0)},
	{0},
};

const struct field engine_place_fields[] = {
	{"slots", FIELD_UNSIGNED(struct place, slots, CLAIM_DATA_SLOTS_MAX), FIELD_OR(0)},
	{"slot", FIELD_UNSIGNED(struct place, slot, CLAIM_DATA_SLOTS_MAX), FIELD_OR(0)},
	{0},
};

/* What each line says */

#define WHOLE(type, part) STATE_WHOLE(part, type, item)

static const struct engine_transfer *transfer_of(const struct owner *owner)
{
	return owner->lock->engine->saving.transfer;
}

static void save_engine(const struct state_item *item, FILE *out)
{
	const struct engine *engine = WHOLE(const struct engine, item);
	const struct store_lease lease = outbox_lease(engine);

	state_begin(out, "engine");
	fields_save(engine_fields, engine, out);
	state_unsigned(out, "owner_number", engine->issued.owner);
	state_flag(out, "lost", engine->session.state == STORE_LOST);
	if (engine->session.state == STORE_SUSPENDED && engine->session.suspended_ms != INT64_MIN)
		state_number(out, "suspended_ms", engine->session.suspended_ms);
	state_number(out, "proven_ms", lease.saved_ms);
	state_flag(out, "doubtful", lease.doubtful);
	state_flag(out, "set_back", engine->moratorium.why == STORE_SET_BACK);
	state_end(out);
}

static void save_lock(const struct state_item *item, FILE *out)
{
	const struct lock *lock = WHOLE(const struct lock, item);

	state_begin(out, "lock");
	state_text(out, "path", lock->path);
	state_text(out, "recipe", claim_recipe_names[lock_recipe(lock)]);
	fields_save(engine_lock_fields, lock, out);
	state_end(out);
}

/* An open file that was granted nothing, and asked for no times, has none. */
static void save_owner(const struct state_item *item, FILE *out)
{
	const struct owner *owner = WHOLE(const struct owner, item);

	if (!owner->lost && owner->granted == 0 && owner->token_grant == 0 &&
	    owner->term.least_ms == 0 && owner->term.most_ms == 0)
		return;
	state_begin(out, "owner");
	state_unsigned(out, "file", transfer_of(owner)->number_owner(owner->cookie));
	fields_save(engine_owner_fields, owner, out);
	state_end(out);
}

static void save_process(const struct state_item *item, FILE *out)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	const struct records *records = owner_records(owner);

	if (records->files_count == 0)
		return; /* it was not let in */
	state_begin(out, "process");
	state_unsigned(out, "id", records->process_id);
	state_number(out, "pid", records->pid);
	state_ranges(out, "held", &records->held);
	state_unsigned(out, "owner", owner->number);
	fields_save(engine_owner_fields, owner, out);
	state_unsigned(out, "file", transfer_of(owner)->number_owner(records->files[0]->cookie));
	state_end(out);
	for (size_t i = 1; i < records->files_count; i++) {
		state_begin(out, "file");
		state_unsigned(out, "file",
			       transfer_of(owner)->number_owner(records->files[i]->cookie));
		state_end(out);
	}
}

/* Whose a wish is. */
static void save_whose(const struct owner *owner, FILE *out)
{
	if (owner == NULL)
		return;
	if (owner->is_process)
		state_unsigned(out, "process", owner_records(owner)->process_id);
	else
		state_unsigned(out, "file", transfer_of(owner)->number_owner(owner->cookie));
}

/* Whether the wish is saved in the line of its claim: the only one, or the holder's. */
static bool is_of_line(const struct wish *wish)
{
	return wish->claim->handoff == NULL || wish_is_held(wish);
}

static void write_wish(const struct wish *wish, FILE *out)
{
	const struct engine_transfer *transfer = wish_lock(wish)->engine->saving.transfer;

	state_text(out, "kind", engine_kind_words[wish->kind]);
	state_flag(out, "asked", wish->asked);
	state_flag(out, "waits", wish->waits);
	/* The grace of a call that does not wait begins anew. */
	if (wish_is_held(wish) || (wish->asked && wish->waits))
		state_number(out, "since_ms", wish->since_ms);
	if (timer_is_set(&wish->timer))
		state_number(out, "due_ms", wish->timer.due_ms);
	fields_save(engine_wish_fields, wish, out);
	if (wish->asked)
		state_unsigned(out, "wish", transfer->number_wish(wish->cookie));
	state_flag(out, "grace", wish->grace == GRACE_RUNS);
	if (wish->grace == GRACE_RUNS && wish->claim->limit_ms != INT64_MAX)
		state_number(out, "limit_ms", wish->claim->limit_ms);
	save_whose(wish->owner, out);
	transfer->save_details(out, wish_details(wish));
}

static void save_coverage(const struct claim *claim, FILE *out)
{
	const struct coverage *coverage = claim_coverage(claim);
	struct range asked = coverage->asked;
	const struct range_set set = {&asked, 1, 1};

	state_ranges(out, "covers", &coverage->ranges);
	state_ranges(out, "asked_for", &set);
	/* Through which file a range was asked for matters only while it is; that may be closed. */
	if (claim->wishes != NULL && claim->state != CLAIM_HELD)
		state_unsigned(out, "through",
			       transfer_of(coverage->file)->number_owner(coverage->file->cookie));
}

/* `lead`, `keeper` and `behind` are the words of the format. */
static void save_handoff(const struct claim *claim, FILE *out)
{
	fields_save(engine_handoff_fields, claim->handoff, out);
	state_flag(out, "keeper", claim->state != CLAIM_HELD || claim_is_kept(claim));
}

/* Whether its data in the store may not be what it should be. */
static bool is_to_be_amended(const struct claim *claim)
{
	bool stands = claim->state == CLAIM_QUEUED || claim->state == CLAIM_WAITING ||
		      claim->state == CLAIM_HELD;
	return stands && (claim->data.amended || claim->data.amending);
}

static void save_claim(const struct state_item *item, FILE *out)
{
	const struct claim *claim = WHOLE(const struct claim, item);
	char name[CLAIM_NAME_BYTES];
	const struct wish *wish = claim->wishes;

	/* Of one that stands nowhere and that nobody wants nothing follows. */
	if (claim->state == CLAIM_WANTED && wish == NULL)
		return;
	state_begin(out, "claim");
	state_text(out, "state", engine_state_words[claim->state]);
	state_text(out, "name", place_name(&claim->place, name));
	if (wish != NULL && is_of_line(wish))
		write_wish(wish, out);
	if (claim->state == CLAIM_HELD)
		state_number(out, "kept", claim->kept);
	if (claim->state == CLAIM_HELD && claim->least_ms != 0)
		state_number(out, "least_ms", claim->least_ms);
	state_flag(out, "rests", claim_rests(claim));
	state_flag(out, "says_waits", claim->place.says_waits);
	state_flag(out, "says_keep", claim->place.says_keep);
	state_number(out, "waits_for", claim_name_number(claim->place.waits_for));
	state_flag(out, "careful", claim->careful);
	state_flag(out, "revoked", claim->revoked);
	state_flag(out, "marked", claim->marker.asked);
	state_flag(out, "amend", is_to_be_amended(claim));
	if (lock_heir(claim->place.lock, claim) != NULL)
		state_text(out, "heir", lock_heir(claim->place.lock, claim));
	fields_save(engine_place_fields, &claim->place, out);
	if (claim->place.holds != NULL)
		state_ranges(out, "holds", claim->place.holds);
	if (claim_coverage(claim) != NULL)
		save_coverage(claim, out);
	if (claim->handoff != NULL)
		save_handoff(claim, out);
	state_end(out);
}

static void save_wish(const struct state_item *item, FILE *out)
{
	const struct wish *wish = WHOLE(const struct wish, item);

	state_begin(out, "wish");
	write_wish(wish, out);
	state_unsigned(out, "behind", wish->claim->handoff->number);
	state_end(out);
}

/* Items */

enum { PART_ENGINE = 4, PART_OWNERS, PART_LOCKS };

/* Of what is of a lock. */
enum { GROUP_LOCK, GROUP_PROCESS, GROUP_CLAIM, GROUP_WISH };

#define SERIAL_BITS 56

static struct state_place place_in(const struct lock *lock, uint64_t group, uint64_t serial)
{
	return (struct state_place){
		{lock->engine->saving.place, PART_LOCKS, lock->serial,
		 group << SERIAL_BITS | serial},
	};
}

static struct state_place engine_place_of(const struct state_item *item)
{
	return (struct state_place){{WHOLE(const struct engine, item)->saving.place, PART_ENGINE}};
}

static struct state_place lock_place_of(const struct state_item *item)
{
	return place_in(WHOLE(const struct lock, item), GROUP_LOCK, 0);
}

static struct state_place owner_place_of(const struct state_item *item)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	return (struct state_place){
		{owner->lock->engine->saving.place, PART_OWNERS, owner->number}};
}

static struct state_place process_place_of(const struct state_item *item)
{
	const struct owner *owner = WHOLE(const struct owner, item);
	return place_in(owner->lock, GROUP_PROCESS, owner->number);
}

static struct state_place claim_place_of(const struct state_item *item)
{
	const struct claim *claim = WHOLE(const struct claim, item);
	return place_in(claim->place.lock, GROUP_CLAIM, claim->serial);
}

static struct state_place wish_place_of(const struct state_item *item)
{
	const struct wish *wish = WHOLE(const struct wish, item);
	return place_in(wish_lock(wish), GROUP_WISH, wish->serial);
}

static const struct state_kind engine_kind = {engine_place_of, save_engine};
static const struct state_kind lock_kind = {lock_place_of, save_lock};
static const struct state_kind owner_kind = {owner_place_of, save_owner};
static const struct state_kind process_kind = {process_place_of, save_process};
static const struct state_kind claim_kind = {claim_place_of, save_claim};
static const struct state_kind wish_kind = {wish_place_of, save_wish};

static const struct state_kind *kind_of(const struct owner *owner)
{
	return owner->is_process ? &process_kind : &owner_kind;
}

void engine_mark(struct engine *engine)
{
	state_journal_mark(engine->saving.journal, &engine->item, &engine_kind);
}

void lock_mark(struct lock *lock)
{
	state_journal_mark(lock->engine->saving.journal, &lock->item, &lock_kind);
}

void owner_mark(struct owner *owner)
{
	state_journal_mark(owner->lock->engine->saving.journal, &owner->item, kind_of(owner));
}

void claim_mark(struct claim *claim)
{
	state_journal_mark(claim->place.lock->engine->saving.journal, &claim->item, &claim_kind);
}

void wish_mark(struct wish *wish)
{
	if (is_of_line(wish))
		claim_mark(wish->claim);
	else
		state_journal_mark(wish_lock(wish)->engine->saving.journal, &wish->item,
				   &wish_kind);
}

void engine_unmark(struct engine *engine, struct state_item *item)
{
	state_journal_remove(engine->saving.journal, item);
}

/* All of them */

static void visit_owner(void *visitor, struct owner *owner)
{
	state_journal_visit(visitor, &owner->item, kind_of(owner));
}

static void visit_list(const struct state_visit *each, struct place *list)
{
	struct claim *claim;

	CLAIMS_FOREACH (list, claim) {
		state_journal_visit(each, &claim->item, &claim_kind);
	}
}

static void visit_wishes(const struct state_visit *each, struct handoff *list)
{
	struct handoff *handoff;
	struct wish *wish;

	DL_FOREACH (list, handoff) {
		DL_FOREACH (handoff->claim->wishes, wish) {
			if (!is_of_line(wish))
				state_journal_visit(each, &wish->item, &wish_kind);
		}
	}
}

void save_visit(struct engine *engine, struct state_visit each)
{
	struct lock *lock;
	struct records *records;

	state_journal_visit(&each, &engine->item, &engine_kind);
	engine->saving.transfer->each_owner(engine->context, visit_owner, &each);
	for (lock = engine->locks; lock != NULL; lock = lock->hh.next) {
		state_journal_visit(&each, &lock->item, &lock_kind);
		for (records = lock->records; records != NULL; records = records->hh.next)
			visit_owner(&each, &records->owner);
		visit_list(&each, lock->queue.first);
		visit_list(&each, lock->unplaced);
		visit_list(&each, lock->leaving);
		visit_wishes(&each, lock->handoffs.waiting);
		visit_wishes(&each, lock->handoffs.held);
	}
	engine->tenant.kind->visit(engine->tenant.context, &each);
}
