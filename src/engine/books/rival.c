/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of others: as a list shows them, what their data say, and watches. The watch of a claim of
 * ours is an entry of the same kind (overseer.c). Loop thread only.
 */
#include "engine/books/rival.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim/data.h"
#include "engine/books/outbox.h"
#include "engine/books/state.h"

struct rival *rival_create(struct lock *lock, const char *name, const struct claim_name *parts)
{
	struct rival *rival = calloc(1, sizeof(*rival));
	if (rival == NULL)
		return NULL;
	rival->name = strdup(name);
	if (rival->name == NULL) {
		free(rival);
		return NULL;
	}
	rival->place.lock = lock;
	rival->place.foreign = true;
	rival->place.parts = *parts;
	return rival;
}

struct rival *rival_find(const struct place *list, const char *name)
{
	struct rival *rival;
	RIVALS_FOREACH (list, rival) {
		if (strcmp(rival->name, name) == 0)
			return rival;
	}
	return NULL;
}

void rival_free(struct rival *rival)
{
	place_finish(&rival->place);
	free(rival->text);
	free(rival->peer);
	free(rival->name);
	free(rival);
}

bool rival_may_be_none(const struct rival *rival)
{
	return rival->place.parts.id.session == 0 && rival->known == KNOWN_NOT;
}

void rival_forget_data(struct rival *rival)
{
	if (rival->known > KNOWN_ONCE)
		rival->known = KNOWN_ONCE;
}

void rival_watch(struct rival *rival)
{
	if (rival->sent || rival->orphan ||
	    rival->place.lock->engine->session.state != STORE_CONNECTED)
		return;
	rival->sent = true;
	outbox_watch(rival);
}

/* What a rival covers is known to be less than its name says. Returns 0 or -ENOMEM. */
static int note_ranges(struct place *place, const struct range_set *told)
{
	struct range_set name = {0}, ranges = {0};
	int error = range_set_lock(&name, place->parts.span, place->parts.mode);

	if (error == 0)
		error = range_set_intersect(&name, told, &ranges);
	range_set_finish(&name);
	/* No claim covers nothing: whoever wrote that does not keep to the rules. */
	if (error != 0 || ranges.count == 0) {
		range_set_finish(&ranges);
		return error;
	}
	if (place->ranges == NULL)
		place->ranges = calloc(1, sizeof(*place->ranges));
	if (place->ranges == NULL) {
		range_set_finish(&ranges);
		return -ENOMEM;
	}
	range_set_finish(place->ranges);
	*place->ranges = ranges;
	return 0;
}

static void note_slots(struct place *place, const struct claim_data *data)
{
	if (data->slots > 0)
		place->slots = data->slots;
	if (data->slot >= 0)
		place->slot = (uint32_t)data->slot + 1;
}

int rival_note_slot(struct rival *orphan, const char *text)
{
	struct claim_data data;
	int error = claim_data_parse(text, &data);

	if (error != 0)
		return error;
	note_slots(&orphan->place, &data);
	claim_data_finish(&data);
	return 0;
}

int rival_note_data(struct rival *rival, const char *text, uint32_t version)
{
	struct place *place = &rival->place;
	struct claim_data data;
	int error = claim_data_parse(text, &data);
	if (error != 0)
		return error;
	place->says_waits = data.waits;
	place->says_keep = data.keeps;
	place->waits_for = data.waits_for;
	place->requeue = data.requeue;
	rival->told |= data.valid;
	note_slots(place, &data); /* what was said of them once stays true */
	rival->trip_ms = data.trip_ms;
	free(rival->peer);
	rival->peer =
		place->lock->engine->has_peers && *data.peer != '\0' ? strdup(data.peer) : NULL;
	if (data.has_ranges && place->parts.record)
		error = note_ranges(place, &data.ranges);
	free(rival->text);
	rival->text = data.waits && data.valid ? strdup(text) : NULL;
	if (error == 0 && data.has_holds && place->holds == NULL) {
		error = place_set_holds(place, data.holds);
		data.holds = (struct range_set){0};
	}
	if (error == 0) {
		place->version = version;
		rival->known = data.valid ? KNOWN_OURS : KNOWN;
	}
	claim_data_finish(&data);
	return error;
}

bool rival_send_back(struct rival *rival, int64_t behind)
{
	char *text = claim_data_add_requeue(rival->text, behind);
	if (text == NULL)
		return false;
	rival->amending = true;
	outbox_amend(&rival->place, text);
	free(text);
	return true;
}

bool rivals_same_process(const struct rival *a, const struct rival *b)
{
	return a->place.parts.record && b->place.parts.record &&
	       a->place.parts.id.session == b->place.parts.id.session &&
	       a->place.parts.id.owner == b->place.parts.id.owner;
}
