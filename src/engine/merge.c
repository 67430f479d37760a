/* SPDX-License-Identifier: Apache-2.0
 *
 * Brings the known queue of a lock in line with a list from the store: claims that have gone, that
 * have come, and those of ours that were looked for. Loop thread only.
 */
#include "engine/merge.h"

#include <string.h>

#include "base/log.h"
#include "engine/books/claim.h"
#include "engine/books/delay.h"
#include "engine/books/lock.h"
#include "engine/books/numbers.h"
#include "engine/books/queue.h"
#include "engine/books/rival.h"
#include "engine/books/save.h"
#include "engine/decide.h"
#include "engine/hold.h"

/* What stands in the queue is not in the store's list. A claim of ours is put into *gone, for
 * account_for_gone(): what follows from its end may reach into the queue. */
static void vanish(struct place *place, struct place **gone)
{
	struct rival *rival = rival_of(place);
	queue_remove(place);
	if (rival == NULL)
		DL_APPEND(*gone, place);
	else if (rival->sent || rival->amending) /* which will tell so too, and end it */
		DL_APPEND(place->lock->watched, place);
	else
		rival_free(rival);
}

static void log_taken_away(const struct claim *claim)
{
	const char *path = claim->place.lock->path;
	char name[CLAIM_NAME_BYTES], words[CLAIM_DATA_WHO_BYTES];

	place_name(&claim->place, name);
	if (claim_is_kept(claim))
		log_lock_error(path, "claim %s was taken away while nobody used it", name);
	else
		log_lock_error(path, "claim %s was taken away, its holder has lost the lock: %s",
			       name, wish_words(claim->wishes, words));
}

static void lose_taken_away(struct claim *claim)
{
	if (claim_may_log(claim))
		log_taken_away(claim);
	decide_lose(claim, ENGINE_LOSS_TAKEN);
}

void merge_lose(struct claim *claim)
{
	/* With it, claims of ours that wait for it may have gone. */
	claim->place.lock->listing.wanted = lock_list_anew(claim->place.lock);
	delay_look(&claim->place);
	queue_remove(&claim->place);
	lose_taken_away(claim);
}

/* Somebody took claims of ours away: wishes start over, holders have lost. Or a claim has become a
 * hold. */
static void account_for_gone(struct lock *lock, struct place *gone)
{
	struct claim *claim, *next;
	char name[CLAIM_NAME_BYTES];
	CLAIMS_FOREACH_SAFE (gone, claim, next) {
		if (claim->state == CLAIM_HELD)
			continue;
		if (lock_may_log(lock, "taken claim", 0) && claim_may_log(claim))
			log_lock_warning(lock->path, "claim %s was taken away while it waited",
					 place_name(&claim->place, name));
		DL_DELETE(gone, &claim->place);
		if (claim_first_asked(claim) != NULL) {
			claim_start_over(claim);
			claim_append_unplaced(claim);
			claim_place(claim);
		} else {
			claim_end(claim);
		}
	}
	/* First, because one that is lost must not be given up by what follows from another. */
	CLAIMS_FOREACH (gone, claim) {
		claim_disband(claim);
	}
	CLAIMS_FOREACH_SAFE (gone, claim, next) {
		DL_DELETE(gone, &claim->place);
		if (!hold_explains(claim))
			lose_taken_away(claim);
	}
}

static struct claim *find_by_id(struct place *list, struct claim_id id)
{
	struct claim *claim;
	CLAIMS_FOREACH (list, claim) {
		if (claim->place.parts.id.number == id.number &&
		    claim->place.parts.id.session == id.session)
			return claim;
	}
	return NULL;
}

/* The rival that the store lists, in no list of ours. NULL: out of memory. */
static struct rival *find_or_create_rival(struct lock *lock, const struct store_entry *entry)
{
	struct rival *rival = rival_find(lock->watched, entry->name);

	if (rival == NULL)
		return rival_create(lock, entry->name, &entry->claim);
	DL_DELETE(lock->watched, &rival->place);
	return rival;
}

/* An orphan that nobody here waits for. Out of memory it is left to a later list. */
static void set_aside(struct lock *lock, const struct store_entry *entry)
{
	struct rival *rival = find_or_create_rival(lock, entry);

	if (rival == NULL)
		return;
	DL_APPEND(lock->watched, &rival->place);
	delay_note_orphan(rival);
}

/* A claim in the name of this very session that nobody here knows: a place() that was answered
 * ambiguously, was not found, and happened after all. It would block the lock for ever. */
static void withdraw_ghost(struct lock *lock, const struct store_entry *entry)
{
	struct claim *claim = claim_create_leaving(lock, &entry->claim);
	if (claim == NULL)
		return;
	if (lock_may_log(lock, "late claim", 0))
		log_lock_warning(lock->path, "withdrawing the claim %s that was placed late",
				 entry->name);
	claim_leave(claim);
}

static bool is_of_this_session(const struct lock *lock, const struct store_entry *entry)
{
	return entry->claim.id.session == claim_id_session(lock->engine->issued.session);
}

/* Somebody has taken a claim away that is released, and its marker is about to go, too: nobody was
 * lost. */
static bool is_released(const struct lock *lock, const struct store_entry *entry)
{
	const struct claim *claim = NULL;
	if (entry->orphan && is_of_this_session(lock, entry))
		claim = find_by_id(lock->leaving, entry->claim.id);
	return claim != NULL && claim->marker.asked;
}

/* As place_compare(). */
static int compare(const struct place *place, const struct store_entry *entry)
{
	char name[CLAIM_NAME_BYTES];
	if (place->parts.order != entry->claim.order)
		return claim_name_compare(place->parts.order, "", entry->claim.order, "");
	return strcmp(place_name(place, name), entry->name);
}

/* Another host of dlockfs is configured otherwise. The two exclude each other all the same, but the
 * clients that one of them is to exclude do not see the other's claims. Told once for a lock that
 * stays in use. */
static void warn_of_mixture(struct lock *lock, const struct store_entry *entry)
{
	if (entry->claim.id.session == 0 || entry->claim.recipe == lock_recipe(lock) ||
	    !lock_note_mixture(lock) || !lock_may_log(lock, "recipe", 0))
		return;
	log_lock_warning(lock->path,
			 "claim %s of another host is of recipe %s, here it is %s: other clients "
			 "may see only one of them; set recipe alike on all hosts",
			 entry->name, claim_recipe_names[entry->claim.recipe],
			 claim_recipe_names[lock_recipe(lock)]);
}

/* What belongs into the queue for an entry that is not there yet; NULL for nothing. */
static struct place *admit(struct lock *lock, const struct store_entry *entry)
{
	if (is_of_this_session(lock, entry) && !entry->orphan) {
		struct claim *claim = find_by_id(lock->unplaced, entry->claim.id);
		if (claim != NULL && !entry->half) {
			if (claim->state != CLAIM_UNCERTAIN)
				return NULL;
			claim_take_place(claim, entry->claim.order, entry->claim.slot);
			return &claim->place;
		}
		if (find_by_id(lock->leaving, entry->claim.id) == NULL)
			withdraw_ghost(lock, entry);
		return NULL;
	}
	warn_of_mixture(lock, entry);
	struct rival *rival = find_or_create_rival(lock, entry);
	return rival != NULL ? &rival->place : NULL;
}

static void confirm_rival(struct rival *rival)
{
	if (rival->looked_ahead && rival->place.blocked != NULL)
		queue_judge(claim_blocked(&rival->place));
	rival->looked_ahead = false;
}

/* The claim stands, and its place is known. */
static void confirm(struct claim *claim)
{
	if (claim->state != CLAIM_QUEUED)
		return;
	claim_set_state(claim, CLAIM_WAITING);
	/* The list was made after the claim was placed; what another process had still to write may
	 * not be there, and that it waits is still to be taken back. */
	claim->fresh = !claim->place.says_waits && !claim->data.amended && !claim->data.amending;
	queue_judge(claim);
}

/* Claims that were abandoned while they were looked for, and found. */
static void withdraw_abandoned(struct lock *lock)
{
	struct claim *claim, *next;
	CLAIMS_FOREACH_SAFE (lock->queue.first, claim, next) {
		if (claim->wishes == NULL)
			claim_withdraw(claim);
	}
}

/* No other host has record locks: nobody can come who has precedence (settle.c). */
static void end_care(const struct lock *lock)
{
	struct claim *claim;
	CLAIMS_FOREACH (lock->queue.first, claim) {
		if (!claim->careful || claim->place.says_waits || claim->data.amended ||
		    claim->data.amending)
			continue;
		claim->careful = false;
		claim_mark(claim);
		queue_judge(claim);
	}
}

/* The walk along the queue and a list of it. */
struct merge {
	struct lock *lock;
	struct place *at;   /* what stands in the queue behind what was compared; NULL: nothing */
	struct place *gone; /* claims of ours that are not in the list */
	const struct place *last_own;
	bool complete; /* else there was no memory, and what stands behind stays QUEUED */
};

static void pass_missing(struct merge *merge)
{
	struct place *missing = merge->at;
	merge->at = missing->next;
	vanish(missing, &merge->gone);
}

/* The entry's place in the queue; NULL: it has none. */
static struct place *find_or_admit(struct merge *merge, const struct store_entry *entry)
{
	struct place *place;
	int order = 1;

	while (merge->at != NULL && (order = compare(merge->at, entry)) < 0)
		pass_missing(merge);
	if (order == 0 && !merge->at->foreign &&
	    (entry->half || entry->orphan || !is_of_this_session(merge->lock, entry))) {
		/* Nobody is excluded by what is left of it, which goes as a ghost does; or only its
		 * marker is left; or it is a hold. */
		pass_missing(merge);
		order = 1;
	}
	if (order == 0) {
		place = merge->at;
		merge->at = place->next;
		return place;
	}
	place = admit(merge->lock, entry);
	if (place != NULL)
		queue_insert_before(merge->at, place);
	else if (entry->orphan || !is_of_this_session(merge->lock, entry))
		merge->complete = false;
	return place;
}

static void merge_entry(struct merge *merge, const struct store_entry *entry)
{
	struct place *place;

	if (is_released(merge->lock, entry))
		return;
	/* Whoever sets no delay waits for none. */
	if (entry->orphan && !lock_heeds_orphan(merge->lock, &entry->claim)) {
		set_aside(merge->lock, entry);
		return;
	}
	place = find_or_admit(merge, entry);
	if (place == NULL)
		return;
	/* A store may leave it the claim's name. */
	if (place->foreign && entry->claim.id.session == CLAIM_HOLD_SESSION)
		place->parts.id = entry->claim.id;
	if (entry->orphan)
		delay_note_orphan(rival_of(place));
	if (!place->foreign)
		merge->last_own = place;
	if (!merge->complete)
		return;
	if (place->foreign) {
		confirm_rival(rival_of(place));
		hold_note_listed(rival_of(place));
	} else
		confirm(claim_of(place));
}

void merge_queue(struct lock *lock, const struct store_entry *entries, size_t count)
{
	struct merge merge = {.lock = lock, .at = lock->queue.first, .complete = true};
	bool careful = lock->in_queue.foreign_records > 0;

	numbers_note_queue(lock, entries, count);
	lock->in_queue.own++; /* so that nothing is forgotten half-way */
	for (size_t i = 0; i < count; i++)
		merge_entry(&merge, &entries[i]);
	while (merge.at != NULL)
		pass_missing(&merge);
	/* What others have put there under the name of a claim may have any number. */
	if (merge.last_own != NULL && merge.complete) {
		lock->listing.known = true;
		lock->listing.known_to = merge.last_own->parts.order;
	}
	/* Another host has record locks: those that wait are to say so. */
	if (lock->in_queue.foreign_records > 0 && !careful)
		queue_judge_all(lock);
	if (merge.complete && lock->in_queue.foreign_records == 0)
		end_care(lock);
	withdraw_abandoned(lock);
	if (lock->numbers.worn)
		numbers_read_names(lock);
	lock->doubts.unseen = false;
	if (!merge.complete)
		lock->listing.wanted = lock_list_anew(lock); /* nothing is granted before */
	lock->in_queue.own--;
	queue_release(lock);
	if (merge.gone != NULL)
		account_for_gone(lock, merge.gone);
}
