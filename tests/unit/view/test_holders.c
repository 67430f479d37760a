/* SPDX-License-Identifier: Apache-2.0
 *
 * Who holds in random queues: what the tree says is what comes of comparing each claim with all in
 * front of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "view/holders.h"

#define CLAIMS_MAX 300

static struct view_claim claims[CLAIMS_MAX];
static size_t count;
static uint64_t random_state;

/* xorshift64 (Marsaglia). From 0 to below - 1. */
static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

static bool one_in(uint32_t chances)
{
	return draw(chances) == 0;
}

/* The simple rules. */

static bool cover_each_other(const struct view_claim *a, const struct view_claim *b)
{
	struct range whole_a = {a->parts.span, a->parts.mode};
	struct range whole_b = {b->parts.span, b->parts.mode};
	struct range_set set_a = {&whole_a, 1, 1}, set_b = {&whole_b, 1, 1};

	return range_sets_conflict(a->has_ranges ? &a->ranges : &set_a,
				   b->has_ranges ? &b->ranges : &set_b);
}

static bool are_of_one(const struct view_claim *a, const struct view_claim *b)
{
	if (a->orphan || b->orphan || a->parts.id.session == 0 ||
	    a->parts.id.session != b->parts.id.session)
		return false;
	if (a->parts.record != b->parts.record)
		return a->asker.pid >= 0 && a->asker.pid == b->asker.pid;
	return a->parts.id.owner == b->parts.id.owner && a->parts.id.owner != CLAIM_OWNER_NONE;
}

static bool conflicts_with_holds(const struct view_claim *view, const struct view_claim *front,
				 enum claim_mode mode, bool exact)
{
	struct range whole = {front->parts.span, mode};
	struct range_set set = {&whole, 1, 1};

	return range_sets_conflict(&view->holds, exact ? &front->ranges : &set);
}

static bool has_precedence(const struct view_claim *view, const struct view_claim *front)
{
	if (!view->parts.anchored || front->orphan || front->parts.id.session == 0 ||
	    view->parts.anchor - front->parts.order >= 0)
		return false;
	if (!view->has_holds)
		return claim_span_overlaps(view->parts.anchor_span, front->parts.span);
	return conflicts_with_holds(view, front,
				    front->parts.sparse ? front->parts.mode : CLAIM_EXCLUSIVE,
				    front->parts.sparse && front->has_ranges);
}

/* Finds the holders claim by claim, each compared with all in front of it. */
static void find_holders(bool *held)
{
	for (size_t i = 0; i < count; i++) {
		const struct view_claim *view = &claims[i];
		held[i] = !view->gone && !view->passed && !view->waits && !view->orphan;
		for (size_t j = 0; j < i && !view->gone && !view->passed; j++) {
			const struct view_claim *front = &claims[j];
			if (front->gone || front->passed || !cover_each_other(front, view) ||
			    are_of_one(front, view))
				continue;
			if (!has_precedence(view, front)) {
				held[i] = false;
				continue;
			}
			if (view->has_holds &&
			    conflicts_with_holds(view, front, front->parts.mode, front->has_ranges))
				held[j] = false;
			held[i] = held[i] && !held[j];
		}
	}
}

/* Queues */

static struct claim_span draw_span(uint32_t bytes)
{
	int64_t start = draw(bytes), end = start + draw(one_in(4) ? bytes : 3);

	if (one_in(20))
		end = INT64_MAX;
	return one_in(20) ? CLAIM_SPAN_WHOLE : (struct claim_span){start, end};
}

static enum claim_mode draw_mode(uint32_t readers)
{
	return one_in(readers) ? CLAIM_EXCLUSIVE : CLAIM_SHARED;
}

static void draw_claim(struct view_claim *view, uint32_t bytes, uint32_t owners, uint32_t readers)
{
	view->parts = (struct claim_name){.span = CLAIM_SPAN_WHOLE,
					  .mode = draw_mode(readers),
					  .order = (int32_t)(view - claims)};
	view->asker.pid = (int64_t)draw(owners) - 1;
	view->gone = one_in(20);
	view->orphan = one_in(15);
	view->passed = view->orphan && one_in(3);
	view->waits = !view->orphan && one_in(10);
	if (one_in(20))
		return; /* another client's */
	view->parts.id = (struct claim_id){1 + draw(2), draw(owners), 0};
	if (one_in(8))
		return;
	view->parts.record = true;
	view->parts.span = draw_span(bytes);
	view->parts.anchored = one_in(4);
	view->parts.anchor = (int32_t)draw((uint32_t)(view - claims) + 1);
	view->parts.anchor_span = draw_span(bytes);
	view->has_holds = view->parts.anchored && !one_in(3);
	for (uint32_t i = view->has_holds ? draw(3) + 1 : 0; i > 0; i--)
		assert_int_equal(range_set_lock(&view->holds, draw_span(bytes), draw_mode(readers)),
				 0);
	if (one_in(2))
		return;
	view->has_ranges = true;
	view->parts.sparse = one_in(2);
	for (uint32_t i = draw(4) + 1; i > 0; i--)
		assert_int_equal(
			range_set_lock(&view->ranges, draw_span(bytes), draw_mode(readers)), 0);
	view->parts.span = range_set_span(&view->ranges);
	view->parts.mode = range_set_mode(&view->ranges);
}

static void compare(void)
{
	bool held[CLAIMS_MAX];

	assert_int_equal(view_holders_find(claims, count), 0);
	find_holders(held);
	for (size_t i = 0; i < count; i++) {
		if (!claims[i].gone && !claims[i].passed)
			assert_int_equal(claims[i].held, held[i]);
	}
	for (size_t i = 0; i < count; i++) {
		range_set_finish(&claims[i].ranges);
		range_set_finish(&claims[i].holds);
	}
	memset(claims, 0, sizeof(claims));
}

static void test_random_queues(void **state)
{
	random_state = 88172645463325252u;
	for (int round = 0; round < 20000; round++) {
		uint32_t bytes = 1 + draw(40), owners = 1 + draw(5), readers = 1 + draw(8);
		count = draw(one_in(100) ? CLAIMS_MAX : 16);
		for (size_t i = 0; i < count; i++)
			draw_claim(&claims[i], bytes, owners, readers);
		compare();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
