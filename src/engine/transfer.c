/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine's books for another process: save.c writes them, and what follows reads them.
 *
 * Loop thread only.
 */
#include "engine/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/books/bequest.h"
#include "engine/books/claim.h"
#include "engine/books/lock.h"
#include "engine/books/numbers.h"
#include "engine/books/outbox.h"
#include "engine/books/owner.h"
#include "engine/books/queue.h"
#include "engine/books/save.h"
#include "engine/books/wish.h"
#include "engine/records/coverage.h"
#include "engine/records/record.h"

/* Owners */

void engine_save_owner(const struct owner *owner, FILE *out)
{
	state_unsigned(out, "owner", owner->number);
}

static void read_number(struct owner *owner, struct state_reader *in)
{
	owner->number = (uint32_t)state_get_unsigned(in, "owner", CLAIM_OWNERS - 1);
}

struct owner *engine_restore_owner(struct engine *engine, const char *path,
				   const struct lock_policy *policy, void *cookie,
				   struct state_reader *in)
{
	struct owner *owner = engine_owner_open(engine, path, policy, cookie);

	if (owner == NULL) {
		state_starve(in);
		return NULL;
	}
	read_number(owner, in);
	if (!state_failed(in))
		return owner;
	engine_owner_close(owner);
	return NULL;
}

struct restoring {
	struct engine *engine;
	const struct engine_transfer *transfer;
	struct state_reader *in;
	struct lock *lock;	  /* NULL: there was none yet */
	struct records *records;  /* whose files come next; NULL: nobody's */
	enum claim_recipe recipe; /* of the lock's claims */
	struct handoff *handoff;  /* whose wish came last; NULL: there was none yet */
	uint32_t owner_number;	  /* to be the engine's in the end: to restore owners takes some */
};

static int result_of(const struct restoring *restoring)
{
	return state_failed(restoring->in) ? -EINVAL : 0;
}

static int restore_engine(struct restoring *restoring)
{
	struct engine *engine = restoring->engine;
	struct state_reader *in = restoring->in;

	fields_restore(engine_fields, engine, in);
	restoring->owner_number = (uint32_t)state_get_unsigned(in, "owner_number", UINT32_MAX);
	engine->session.state = state_find_flag(in, "lost") ? STORE_LOST : STORE_SUSPENDED;
	engine->session.suspended_ms = INT64_MIN;
	if (state_has(in, "suspended_ms"))
		engine->session.suspended_ms =
			state_get_number(in, "suspended_ms", 0, SAVE_TIME_MAX_MS);
	outbox_resume_lease(engine, state_get_number(in, "proven_ms", INT64_MIN, SAVE_TIME_MAX_MS),
			    state_find_flag(in, "doubtful"));
	engine->moratorium.why = state_find_flag(in, "set_back") ? STORE_SET_BACK : STORE_NEW_ROOT;
	engine_mark(engine);
	return result_of(restoring);
}

/* The open file that the line names; NULL: the lock has none of that number. */
static struct owner *find_file(struct restoring *restoring)
{
	uint64_t number = state_get_unsigned(restoring->in, "file", UINT64_MAX);
	struct owner *file = restoring->transfer->find_owner(restoring->engine->context, number);

	if (file != NULL && file->lock == restoring->lock)
		return file;
	state_refuse(restoring->in, "file", "an open file of the lock");
	return NULL;
}

static int restore_lock(struct restoring *restoring)
{
	struct engine *engine = restoring->engine;
	const char *path = state_get_text(restoring->in, "path");
	struct lock_policy policy = restoring->transfer->policy(engine->context, path);

	restoring->records = NULL;
	restoring->handoff = NULL;
	restoring->lock = lock_open(engine, path, &policy);
	if (restoring->lock == NULL)
		return state_starve(restoring->in);
	restoring->recipe = (enum claim_recipe)state_get_word(restoring->in, "recipe",
							      claim_recipe_names, CLAIM_RECIPES);
	fields_restore(engine_lock_fields, restoring->lock, restoring->in);
	return result_of(restoring);
}

static int restore_owner(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	uint64_t number = state_get_unsigned(in, "file", UINT64_MAX);
	struct owner *owner = restoring->transfer->find_owner(restoring->engine->context, number);

	if (owner == NULL || owner->lock->engine != restoring->engine)
		return state_refuse(in, "file", "an open file of the store");
	fields_restore(engine_owner_fields, owner, in);
	owner_mark(owner);
	return result_of(restoring);
}

/* The process of the latest line has locked through the file that this one names. */
static int restore_file(struct restoring *restoring)
{
	struct owner *file;

	if (restoring->records == NULL)
		return state_refuse(restoring->in, NULL, "a process before");
	file = find_file(restoring);
	if (file == NULL)
		return -EINVAL;
	return records_add_file(restoring->records, file) == 0 ? 0 : state_starve(restoring->in);
}

static int restore_process(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	uint64_t id = state_get_unsigned(in, "id", UINT64_MAX);
	struct range_set held;

	if (records_find(restoring->lock, id) != NULL)
		return state_refuse(in, "id", "another process");
	restoring->records = records_open(restoring->lock, id);
	if (restoring->records == NULL)
		return state_starve(in);
	struct records *records = restoring->records;
	int error = restore_file(restoring);
	read_number(&records->owner, in);
	fields_restore(engine_owner_fields, &records->owner, in);
	owner_mark(&records->owner);
	records->process->number = records->owner.number;
	records->pid = (int)state_get_number(in, "pid", 0, INT32_MAX);
	if (error == 0)
		error = state_get_ranges(in, "held", &held);
	if (error == 0)
		coverage_set_held(records, held);
	else if (records->files_count == 0)
		records_free(records);
	return error;
}

/* Whose the wish is; NULL: nobody's. */
static struct owner *read_whose(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;

	if (state_has(in, "process")) {
		uint64_t id = state_get_unsigned(in, "process", UINT64_MAX);
		struct records *records = records_find(restoring->lock, id);
		if (records == NULL)
			state_refuse(in, "process", "a process of the lock");
		return records != NULL ? &records->owner : NULL;
	}
	return state_has(in, "file") ? find_file(restoring) : NULL;
}

static void restore_coverage(struct restoring *restoring, struct claim *claim,
			     const struct owner *owner)
{
	struct state_reader *in = restoring->in;
	struct coverage *coverage = calloc(1, sizeof(*coverage));
	struct range_set asked;

	if (coverage == NULL) {
		state_starve(in);
		return;
	}
	claim->place.ranges = &coverage->ranges;
	if (state_get_ranges(in, "covers", &coverage->ranges) < 0 ||
	    state_get_ranges(in, "asked_for", &asked) < 0)
		return;
	if (asked.count == 1)
		coverage->asked = asked.ranges[0];
	else
		state_refuse(in, "asked_for", "one range");
	range_set_finish(&asked);
	if (owner == NULL || claim->state == CLAIM_HELD)
		return;
	uint64_t through = state_get_unsigned(in, "through", UINT64_MAX);
	coverage->file = restoring->transfer->find_owner(restoring->engine->context, through);
	if (coverage->file == NULL || !owners_same_side(owner, coverage->file))
		state_refuse(in, "through", "an open file of the process");
}

/* Without a limit the timer is set for nothing else. */
static void restore_grace(struct wish *wish, struct state_reader *in)
{
	struct claim *claim = wish->claim;

	if (!state_find_flag(in, "grace") || claim->state == CLAIM_HELD)
		return;
	wish->grace = GRACE_RUNS;
	claim->limit_ms = INT64_MAX;
	if (state_has(in, "limit_ms"))
		claim->limit_ms = state_get_number(in, "limit_ms", INT64_MIN, SAVE_TIME_MAX_MS);
}

static void restore_precedence(struct restoring *restoring, struct claim *claim)
{
	struct range_set holds;

	if (state_get_ranges(restoring->in, "holds", &holds) < 0)
		return;
	if (!claim->place.parts.anchored || holds.count == 0) {
		range_set_finish(&holds);
		state_refuse(restoring->in, "holds", "ranges, of a claim with an anchor");
	} else if (place_set_holds(&claim->place, holds) < 0) {
		state_starve(restoring->in);
	}
}

static enum lock_kind read_kind(struct state_reader *in)
{
	return (enum lock_kind)state_get_word(in, "kind", engine_kind_words,
					      sizeof(engine_kind_words) /
						      sizeof(*engine_kind_words));
}

/* The call whose wish this was: it waits in this process, too. */
static void restore_asked(struct restoring *restoring, struct wish *wish, const struct owner *file)
{
	struct engine *engine = restoring->engine;
	uint64_t number = state_get_unsigned(restoring->in, "wish", UINT64_MAX);

	wish->cookie = restoring->transfer->adopt_wish(engine->context, number, file, wish);
	if (wish->cookie == NULL) {
		state_refuse(restoring->in, "wish", "a call that waits");
		return;
	}
	wish->asked = true;
	engine->count.waiters++;
	DL_APPEND2(engine->ages.waiting, wish, age_prev, age_next);
}

/* The wish that the line tells of. Returns 0; or -EINVAL, -ENOMEM. */
static int restore_wish(struct restoring *restoring, struct claim *claim, struct owner *owner)
{
	struct state_reader *in = restoring->in;
	struct coverage *coverage = claim_coverage(claim);
	struct wish *wish = wish_create(claim, owner, read_kind(in), NULL);

	if (wish == NULL)
		return state_starve(in);
	wish->waits = state_find_flag(in, "waits");
	wish->since_ms = state_has(in, "since_ms")
				 ? state_get_number(in, "since_ms", INT64_MIN, SAVE_TIME_MAX_MS)
				 : restoring->engine->now_ms;
	fields_restore(engine_wish_fields, wish, in);
	restoring->transfer->restore_details(in, wish_details(wish));
	restore_grace(wish, in);
	if (state_has(in, "due_ms"))
		timers_set(&restoring->engine->agenda.timers, &wish->timer,
			   state_get_number(in, "due_ms", INT64_MIN, SAVE_TIME_MAX_MS));
	/* Last: the call knows its wish from then on, which must not fail any more. */
	if (!state_failed(in) && state_find_flag(in, "asked"))
		restore_asked(restoring, wish, coverage != NULL ? coverage->file : owner);
	wish_mark(wish);
	return state_failed(in) ? -EINVAL : 0;
}

/* What of a claim is no more than what the line says. */
static void read_claim(struct restoring *restoring, struct claim *claim)
{
	struct state_reader *in = restoring->in;
	const struct engine *engine = restoring->engine;

	claim->place.lock = restoring->lock;
	claim->state =
		(uint8_t)state_get_word(in, "state", engine_state_words,
					sizeof(engine_state_words) / sizeof(*engine_state_words));
	if (claim->state == CLAIM_PLACING)
		claim->state = CLAIM_UNCERTAIN;
	if (!claim_name_parse(state_get_text(in, "name"), &claim->place.parts) ||
	    claim->place.parts.id.session == 0)
		state_refuse(in, "name", "that of a claim");
	claim->place.says_waits = state_find_flag(in, "says_waits");
	claim->place.says_keep = state_find_flag(in, "says_keep");
	claim->place.waits_for =
		claim_name_order(state_find_number(in, "waits_for", INT32_MIN, INT64_MAX));
	fields_restore(engine_place_fields, &claim->place, in);
	claim->careful = state_find_flag(in, "careful");
	claim->revoked = state_find_flag(in, "revoked");
	if (state_find_flag(in, "marked"))
		claim->marker.asked = true; /* a claim that is held asks no more */
	claim->data.amended = (claim->state == CLAIM_QUEUED || claim->state == CLAIM_HELD) &&
			      state_find_flag(in, "amend");
	if (claim->state == CLAIM_HELD)
		claim->kept = state_get_number(in, "kept", INT64_MIN, INT64_MAX);
	if (claim->state == CLAIM_HELD && state_has(in, "least_ms"))
		claim->least_ms = state_get_number(in, "least_ms", 0, SAVE_TIME_MAX_MS);
	claim->rests = claim->state == CLAIM_HELD && state_find_flag(in, "rests");
	claim->inherits = claim->state == CLAIM_HELD && engine->events->on_ask != NULL;
}

/* To whom a claim that leaves is bequeathed. */
static void restore_heir(struct restoring *restoring, struct claim *claim)
{
	int error = bequest_restore(claim, state_get_text(restoring->in, "heir"));

	if (error == -ENOMEM)
		state_starve(restoring->in);
	else if (error != 0 || claim->state != CLAIM_LEAVING)
		state_refuse(restoring->in, "heir", "the name of a claim, of one that leaves");
}

static struct handoff *search(struct handoff *list, uint64_t number)
{
	struct handoff *handoff;
	DL_FOREACH (list, handoff) {
		if (handoff->number == number)
			return handoff;
	}
	return NULL;
}

/* What the wish waits for: mostly the same as the wish before, or the next one. */
static void find_handoff(struct restoring *restoring)
{
	uint64_t number = state_get_unsigned(restoring->in, "behind", SAVE_HANDOFFS_MAX);
	struct handoff *handoff = restoring->handoff;

	if (handoff != NULL && handoff->number != number)
		handoff = handoff->next;
	if (handoff == NULL || handoff->number != number)
		handoff = search(restoring->lock->handoffs.waiting, number);
	if (handoff == NULL)
		handoff = search(restoring->lock->handoffs.held, number);
	if (handoff == NULL)
		state_refuse(restoring->in, "behind", "the number of a lead before");
	restoring->handoff = handoff;
}

/* Whether the parts of a claim go together. */
static void check_claim(struct restoring *restoring, const struct claim *claim,
			const struct owner *owner)
{
	struct state_reader *in = restoring->in;
	bool handed_on = state_has(in, "lead");
	bool keeper = state_find_flag(in, "keeper");
	bool asked = state_find_flag(in, "asked");
	bool record = claim_coverage(claim) != NULL;
	bool leaves = claim->state == CLAIM_LEAVING;
	bool owned = owner != NULL || keeper || claim->rests;

	if (leaves == owned && claim->state != CLAIM_UNCERTAIN)
		state_refuse(in, NULL, leaves ? "no owner" : "an owner");
	else if (state_has(in, "kind") && record != (read_kind(in) == LOCK_KIND_RECORD))
		state_refuse(in, "kind", "record for what covers ranges, and only that");
	else if (record && owned && (owner == NULL || !owner->is_process))
		state_refuse(in, "process", "that of a record lock");
	else if (asked && (claim->state == CLAIM_HELD || !owned))
		state_refuse(in, "asked", "a claim that waits");
	else if (handed_on &&
		 (record || !owned || leaves || (claim->state != CLAIM_HELD && !keeper)))
		state_refuse(in, "lead", "a claim that may be one");
	else if (!handed_on && keeper)
		state_refuse(in, "keeper", "a lead");
	else if (claim->rests && (owner != NULL || record || handed_on))
		state_refuse(in, "rests", "what nobody holds any more");
}

/* Who holds knows of it. */
static void restore_held(struct restoring *restoring, struct claim *claim)
{
	struct wish *wish = claim->wishes;

	if (wish->owner == NULL) {
		restoring->engine->count.kept++;
		return;
	}
	restoring->engine->count.holders++;
	DL_APPEND2(restoring->engine->ages.held, wish, age_prev, age_next);
	if (wish->kind == LOCK_KIND_RECORD)
		return;
	claim->place.lock->in_queue.held_flocks++;
	if (wish->owner->is_process)
		return;
	if (owner_held_but(wish->owner, claim) != NULL)
		state_refuse(restoring->in, "file", "one that holds nothing yet");
}

static int restore_handoff(struct restoring *restoring, struct claim *claim)
{
	if (!claim_hand_on(claim))
		return state_starve(restoring->in);
	struct handoff *handoff = claim->handoff;
	struct engine *engine = restoring->engine;
	fields_restore(engine_handoff_fields, handoff, restoring->in);
	if (handoff->number > engine->issued.serials)
		engine->issued.serials = handoff->number;
	return 0;
}

static void put_into_list(struct restoring *restoring, struct claim *claim)
{
	struct lock *lock = restoring->lock;

	switch (claim->state) {
	case CLAIM_WANTED:
		DL_APPEND(lock->unplaced, &claim->place);
		numbers_restored(lock);
		break;
	case CLAIM_UNCERTAIN:
		DL_APPEND(lock->unplaced, &claim->place);
		break;
	case CLAIM_QUEUED:
	case CLAIM_HELD:
		queue_insert(&claim->place);
		lock->doubts.missing = true; /* what others have is to be listed */
		break;
	default:
		DL_APPEND(lock->leaving, &claim->place);
	}
	lock->doubts.taken_over = true;
}

/* A claim that is handed on and waits has its wishes in lines of their own. */
static int restore_claim(struct restoring *restoring)
{
	struct engine *engine = restoring->engine;
	struct state_reader *in = restoring->in;
	struct claim *claim = calloc(1, sizeof(*claim));
	bool handed_on = state_has(in, "lead");
	int error = 0;

	if (claim == NULL)
		return state_starve(in);
	read_claim(restoring, claim);
	engine->count.claims++;
	struct owner *owner = read_whose(restoring);
	if (state_has(in, "covers"))
		restore_coverage(restoring, claim, owner);
	if (state_has(in, "holds"))
		restore_precedence(restoring, claim);
	if (state_has(in, "heir"))
		restore_heir(restoring, claim);
	check_claim(restoring, claim, owner);
	if (!state_failed(in) && handed_on)
		error = restore_handoff(restoring, claim);
	if (!state_failed(in) &&
	    (handed_on ? claim->state == CLAIM_HELD : owner != NULL || claim->rests))
		error = restore_wish(restoring, claim, owner);
	if (error != 0 || state_failed(in)) {
		claim_free(claim);
		return error != 0 ? error : -EINVAL;
	}
	claim->serial = ++engine->issued.serials;
	claim->place.lock->policy.recipe = (int64_t)restoring->recipe; /* as it is named */
	put_into_list(restoring, claim);
	if (claim->state == CLAIM_HELD)
		restore_held(restoring, claim);
	claim_mark(claim);
	return result_of(restoring);
}

/* A wish of a claim that is handed on. */
static int restore_waiting(struct restoring *restoring)
{
	struct state_reader *in = restoring->in;
	struct owner *owner = read_whose(restoring);

	find_handoff(restoring);
	if (owner == NULL || owner->is_process)
		state_refuse(in, "file", "an open file");
	if (read_kind(in) == LOCK_KIND_RECORD)
		state_refuse(in, "kind", "open or flock");
	if (state_failed(in))
		return -EINVAL;
	owner->lock->doubts.taken_over = true;
	return restore_wish(restoring, restoring->handoff->claim, owner);
}

/* By the first word of a line; those behind `lock` are of one. */
static const struct {
	const char *word;
	int (*restore)(struct restoring *restoring);
	bool of_lock;
} lines[] = {
	{"engine", restore_engine, false}, {"lock", restore_lock, false},
	{"owner", restore_owner, false},   {"process", restore_process, true},
	{"file", restore_file, true},	   {"claim", restore_claim, true},
	{"wish", restore_waiting, true},
};

/* Reads the present line. Returns 1 if that is not of an engine; else 0, -EINVAL or -ENOMEM. */
static int restore_line(struct restoring *restoring)
{
	const char *word = restoring->in->word;
	const struct tenant *tenant = &restoring->engine->tenant;

	if (tenant->kind->has_word(word))
		return tenant->kind->restore(tenant->context, restoring->in);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		if (strcmp(word, lines[i].word) != 0)
			continue;
		if (lines[i].of_lock && restoring->lock == NULL)
			return state_refuse(restoring->in, NULL, "a lock before");
		return lines[i].restore(restoring);
	}
	return 1;
}

static int compare_ages(const struct wish *one, const struct wish *other)
{
	return (one->since_ms > other->since_ms) - (one->since_ms < other->since_ms);
}

int engine_restore(struct engine *engine, const struct engine_transfer *transfer,
		   struct state_reader *in)
{
	struct restoring restoring = {.engine = engine, .transfer = transfer, .in = in};
	struct lock *lock, *next;
	int more, error = 0;

	while (error == 0 && (more = state_next(in)) != 0) {
		if (more < 0)
			return more;
		error = restore_line(&restoring);
	}
	if (error > 0) {
		state_again(in);
		error = 0;
	}
	HASH_ITER (hh, engine->locks, lock, next) {
		lock_free_if_unused(lock);
	}
	DL_SORT2(engine->ages.waiting, compare_ages, age_prev, age_next);
	DL_SORT2(engine->ages.held, compare_ages, age_prev, age_next);
	engine->issued.owner = restoring.owner_number;
	engine->agenda.stirs++;
	return error;
}

void engine_save(struct engine *engine, const struct engine_transfer *transfer, FILE *out)
{
	engine->saving.transfer = transfer;
	save_visit(engine, (struct state_visit){.out = out});
}

void engine_set_journal(struct engine *engine, struct state_journal *journal,
			const struct engine_transfer *transfer, uint64_t place)
{
	engine->saving.journal = journal;
	engine->saving.transfer = transfer;
	engine->saving.place = place;
	if (journal != NULL)
		save_visit(engine, (struct state_visit){.journal = journal});
}

void engine_send(struct engine *engine)
{
	outbox_send(engine);
}
