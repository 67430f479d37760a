/* SPDX-License-Identifier: Apache-2.0
 *
 * See place.h.
 */
#include "engine/books/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

const char *place_name(const struct place *place, char text[CLAIM_NAME_BYTES])
{
	if (place->foreign)
		return ((const struct named_place *)place)->name;
	claim_name_format_placed(text, &place->parts);
	return text;
}

int place_compare(const struct place *a, const struct place *b)
{
	char name_a[CLAIM_NAME_BYTES], name_b[CLAIM_NAME_BYTES];
	if (a->parts.order != b->parts.order)
		return claim_name_compare(a->parts.order, "", b->parts.order, "");
	return strcmp(place_name(a, name_a), place_name(b, name_b));
}

bool place_conflicts(const struct place *place, const struct range_set *set)
{
	if (place->ranges != NULL)
		return range_sets_conflict(place->ranges, set);
	return range_set_conflict(set, place->parts.span, place->parts.mode) != NULL;
}

bool places_cross(const struct place *a, const struct place *b)
{
	if (!claim_span_overlaps(a->parts.span, b->parts.span))
		return false;
	if (b->ranges != NULL)
		return place_conflicts(a, b->ranges);
	if (a->ranges != NULL)
		return place_conflicts(b, a->ranges);
	return a->parts.mode == CLAIM_EXCLUSIVE || b->parts.mode == CLAIM_EXCLUSIVE;
}

struct place *place_in_front(const struct place_queue *queue, const struct place *place)
{
	return place == queue->first ? NULL : place->prev;
}

void place_insert(struct place_queue *queue, struct place *place)
{
	struct place *front = queue->first == NULL ? NULL : queue->first->prev;
	while (front != NULL && place_compare(front, place) > 0)
		front = place_in_front(queue, front);
	if (front == NULL)
		DL_PREPEND(queue->first, place);
	else
		DL_APPEND_ELEM(queue->first, front, place);
}

void place_insert_before(struct place_queue *queue, struct place *at, struct place *place)
{
	if (at == NULL)
		DL_APPEND(queue->first, place);
	else
		DL_PREPEND_ELEM(queue->first, at, place);
}

void place_remove(struct place_queue *queue, struct place *place)
{
	if (queue->found == place)
		queue->found = place->next != NULL ? place->next : place_in_front(queue, place);
	DL_DELETE(queue->first, place);
}

static bool is_before(const struct place *place, int64_t order)
{
	return claim_name_compare(place->parts.order, "", order, "") < 0;
}

struct place *place_seek(struct place_queue *queue, int64_t order)
{
	struct place *place = queue->found != NULL ? queue->found : queue->first;
	if (place == NULL)
		return NULL;
	while (!is_before(place, order) && place != queue->first)
		place = place->prev;
	while (place->next != NULL && is_before(place, order))
		place = place->next;
	queue->found = place;
	return is_before(place, order) ? NULL : place;
}

void place_set_blocker(struct place *place, struct place *blocker)
{
	if (place->blocker == blocker)
		return;
	if (place->blocker != NULL)
		DL_DELETE2(place->blocker->blocked, place, blocked_prev, blocked_next);
	place->blocker = blocker;
	if (blocker != NULL)
		DL_APPEND2(blocker->blocked, place, blocked_prev, blocked_next);
}

void place_forget_holds(struct place *place)
{
	if (place->holds != NULL)
		range_set_finish(place->holds);
	free(place->holds);
	place->holds = NULL;
}

int place_set_holds(struct place *place, struct range_set holds)
{
	struct range_set *set = malloc(sizeof(*set));

	place_forget_holds(place);
	if (set == NULL) {
		range_set_finish(&holds);
		return -ENOMEM;
	}
	*set = holds;
	place->holds = set;
	return 0;
}

void place_finish(struct place *place)
{
	place_forget_holds(place);
	if (place->ranges != NULL)
		range_set_finish(place->ranges);
	free(place->ranges);
}
