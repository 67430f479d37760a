/* SPDX-License-Identifier: Apache-2.0
 *
 * Random queues of places, against an array that is compared byte by byte: the order, the
 * neighbours, each place's blocker, and whom it blocks.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/books/place.h"

#define RUNS	   200
#define STEPS	   300
#define PLACES_MAX 24
#define BYTES	   16

enum cover { COVER_NONE, COVER_SHARED, COVER_EXCLUSIVE };

/* What the model knows of a place. */
struct stand {
	struct place place;
	char *listed_name; /* next, as struct named_place has it */
	enum cover covers[BYTES];
	char name[CLAIM_NAME_BYTES];
};

static struct stand *stands[PLACES_MAX]; /* in the order of the queue */
static size_t count;
static struct place_queue queue;
static uint64_t random_state;

/* xorshift64 (Marsaglia). From 0 to below - 1. */
static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

/* Few numbers, so that some are equal, of which the negative ones are the last. */
static int64_t draw_order(void)
{
	int32_t number = (int32_t)draw(40);
	return claim_name_order(draw(8) == 0 ? INT32_MIN + number : number);
}

static struct claim_span draw_span(void)
{
	uint32_t start = draw(BYTES), end = start + draw(BYTES - start);
	return (struct claim_span){start, end};
}

/* The simple rules. */

static int model_compare(const struct stand *a, const struct stand *b)
{
	uint32_t number_a = (uint32_t)claim_name_number(a->place.parts.order);
	uint32_t number_b = (uint32_t)claim_name_number(b->place.parts.order);
	if (number_a != number_b)
		return number_a < number_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

static bool model_conflict(const struct stand *a, const struct stand *b)
{
	for (size_t i = 0; i < BYTES; i++) {
		if (a->covers[i] != COVER_NONE && b->covers[i] != COVER_NONE &&
		    (a->covers[i] == COVER_EXCLUSIVE || b->covers[i] == COVER_EXCLUSIVE))
			return true;
	}
	return false;
}

static struct stand *model_blocker(size_t index)
{
	for (size_t front = index; front-- > 0;) {
		if (model_conflict(stands[front], stands[index]))
			return stands[front];
	}
	return NULL;
}

static struct place *model_seek(int64_t order)
{
	for (size_t i = 0; i < count; i++) {
		if (stands[i]->place.parts.order >= order)
			return &stands[i]->place;
	}
	return NULL;
}

/* The steps. */

static void note_covers(struct stand *stand)
{
	const struct range whole = {stand->place.parts.span, stand->place.parts.mode};
	const struct range_set *set = stand->place.ranges;
	size_t ranges = set != NULL ? set->count : 1;

	memset(stand->covers, 0, sizeof(stand->covers));
	for (size_t i = 0; i < ranges; i++) {
		const struct range *range = set != NULL ? &set->ranges[i] : &whole;
		for (int64_t at = range->span.start; at <= range->span.end; at++)
			stand->covers[at] =
				range->mode == CLAIM_SHARED ? COVER_SHARED : COVER_EXCLUSIVE;
	}
}

static void draw_ranges(struct place *place)
{
	place->ranges = calloc(1, sizeof(*place->ranges));
	assert_non_null(place->ranges);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(
			range_set_lock(place->ranges, draw_span(), (enum claim_mode)draw(2)), 0);
	place->parts.span = range_set_span(place->ranges);
	place->parts.mode = range_set_mode(place->ranges);
	place->parts.record = place->parts.sparse = true;
}

static struct stand *create_stand(uint32_t id)
{
	struct stand *stand = calloc(1, sizeof(*stand));
	struct place *place = &stand->place;

	assert_non_null(stand);
	place->parts.id = (struct claim_id){1 + draw(2), 1 + draw(3), id};
	place->parts.order = draw_order();
	place->parts.mode = (enum claim_mode)draw(2);
	place->parts.span = draw_span();
	if (draw(2) == 0)
		draw_ranges(place);
	claim_name_format_placed(stand->name, &place->parts);
	if (draw(3) == 0) {
		snprintf(stand->name, sizeof(stand->name), "%u-lock-%" PRId64,
			 draw(10) * 100000 + id, claim_name_number(place->parts.order));
		place->foreign = true;
		stand->listed_name = stand->name;
	}
	note_covers(stand);
	return stand;
}

static void insert(uint32_t id)
{
	struct stand *stand = create_stand(id);
	size_t at = 0;

	while (at < count && model_compare(stands[at], stand) < 0)
		at++;
	if (draw(2) == 0)
		place_insert(&queue, &stand->place);
	else
		place_insert_before(&queue, at < count ? &stands[at]->place : NULL, &stand->place);
	memmove(&stands[at + 1], &stands[at], (count - at) * sizeof(*stands));
	stands[at] = stand;
	count++;
}

static void take_out(size_t at)
{
	struct stand *stand = stands[at];

	place_set_blocker(&stand->place, NULL);
	while (stand->place.blocked != NULL)
		place_set_blocker(stand->place.blocked, NULL);
	place_remove(&queue, &stand->place);
	count--;
	memmove(&stands[at], &stands[at + 1], (count - at) * sizeof(*stands));
	if (stand->place.ranges != NULL)
		range_set_finish(stand->place.ranges);
	free(stand->place.ranges);
	free(stand);
}

/* A place covers less; never nothing. */
static void shrink(struct stand *stand)
{
	struct range_set less;

	if (stand->place.ranges == NULL)
		return;
	assert_int_equal(range_set_copy(stand->place.ranges, &less), 0);
	assert_int_equal(range_set_unlock(&less, draw_span()), 0);
	if (less.count == 0) {
		range_set_finish(&less);
		return;
	}
	range_set_finish(stand->place.ranges);
	*stand->place.ranges = less;
	note_covers(stand);
}

static struct place *find_blocker(const struct place *place)
{
	struct place *front = place_in_front(&queue, place);
	while (front != NULL && !places_cross(front, place))
		front = place_in_front(&queue, front);
	return front;
}

static void check_blocked(const struct stand *blocker)
{
	size_t blocked = 0, listed = 0;
	const struct place *place;

	for (size_t i = 0; i < count; i++)
		blocked += model_blocker(i) == blocker;
	for (place = blocker->place.blocked; place != NULL; place = place->blocked_next) {
		assert_ptr_equal(place->blocker, &blocker->place);
		listed++;
	}
	assert_int_equal(listed, blocked);
}

static void check(void)
{
	const struct place *place = queue.first;
	char text[CLAIM_NAME_BYTES];

	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(place, &stands[i]->place);
		assert_ptr_equal(place_in_front(&queue, place),
				 i > 0 ? &stands[i - 1]->place : NULL);
		assert_string_equal(place_name(place, text), stands[i]->name);
		place = place->next;
	}
	assert_null(place);
	for (size_t i = 0; i < count; i++) {
		struct stand *blocker = model_blocker(i);
		struct place *found = find_blocker(&stands[i]->place);
		assert_ptr_equal(found, blocker != NULL ? &blocker->place : NULL);
		place_set_blocker(&stands[i]->place, found);
	}
	for (size_t i = 0; i < count; i++)
		check_blocked(stands[i]);
	int64_t order = draw_order();
	assert_ptr_equal(place_seek(&queue, order), model_seek(order));
}

static void test_random_queues(void **state)
{
	(void)state;
	for (uint32_t run = 1; run <= RUNS; run++) {
		random_state = run * UINT64_C(0x9e3779b97f4a7c15);
		for (uint32_t step = 0; step < STEPS; step++) {
			uint32_t action = draw(5);
			if (count == 0 || (action < 2 && count < PLACES_MAX))
				insert(step);
			else if (action < 4)
				take_out(draw((uint32_t)count));
			else
				shrink(stands[draw((uint32_t)count)]);
			check();
		}
		while (count > 0)
			take_out(count - 1);
		assert_null(queue.first);
		assert_null(queue.found);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_queues),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
