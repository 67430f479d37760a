/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of ranges: cases at the edges, and random sequences compared with a model that has one byte
 * for each of a few slots.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/range_set.h"
#include "failing_memory.h"

#define MAX	     INT64_MAX
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Cases. A step locks 'r' or 'w', or unlocks 'u'. */

struct step {
	char what;
	int64_t start, end;
};

static int apply(struct range_set *set, struct step step)
{
	struct claim_span span = {step.start, step.end};

	if (step.what == 'u')
		return range_set_unlock(set, span);
	return range_set_lock(set, span, step.what == 'w' ? CLAIM_EXCLUSIVE : CLAIM_SHARED);
}

static const struct {
	const char *what;
	struct step steps[6];	 /* up to one of zeros */
	struct step expected[6]; /* likewise, each 'r' or 'w' */
} cases[] = {
	{"one", {{'w', 5, 9}}, {{'w', 5, 9}}},
	{"one byte at the start", {{'r', 0, 0}}, {{'r', 0, 0}}},
	{"one byte at the end", {{'r', MAX, MAX}}, {{'r', MAX, MAX}}},
	{"everything", {{'w', 0, MAX}}, {{'w', 0, MAX}}},
	{"nothing to unlock", {{'u', 0, MAX}}, {{0}}},
	{"in order",
	 {{'w', 8, 9}, {'r', 2, 3}, {'w', 5, 5}},
	 {{'r', 2, 3}, {'w', 5, 5}, {'w', 8, 9}}},

	{"merge to the left", {{'w', 0, 4}, {'w', 5, 9}}, {{'w', 0, 9}}},
	{"merge to the right", {{'w', 5, 9}, {'w', 0, 4}}, {{'w', 0, 9}}},
	{"merge on both sides", {{'r', 0, 3}, {'r', 6, 9}, {'r', 4, 5}}, {{'r', 0, 9}}},
	{"merge with overlaps", {{'r', 0, 4}, {'r', 6, 9}, {'r', 3, 7}}, {{'r', 0, 9}}},
	{"merge with a larger one", {{'r', 0, 9}, {'r', 3, 4}}, {{'r', 0, 9}}},
	{"merge with many",
	 {{'r', 1, 1}, {'w', 3, 3}, {'r', 5, 5}, {'w', 7, 7}, {'r', 0, 9}},
	 {{'r', 0, 9}}},
	{"a gap of one byte", {{'w', 0, 4}, {'w', 6, 9}}, {{'w', 0, 4}, {'w', 6, 9}}},
	{"touching in two modes", {{'w', 0, 4}, {'r', 5, 9}}, {{'w', 0, 4}, {'r', 5, 9}}},
	{"merge at the end", {{'w', MAX, MAX}, {'w', MAX - 1, MAX - 1}}, {{'w', MAX - 1, MAX}}},
	{"merge at the start", {{'w', 0, 0}, {'w', 1, 1}}, {{'w', 0, 1}}},
	{"both ends do not meet", {{'w', MAX, MAX}, {'w', 0, 0}}, {{'w', 0, 0}, {'w', MAX, MAX}}},

	{"split", {{'w', 0, 9}, {'u', 4, 5}}, {{'w', 0, 3}, {'w', 6, 9}}},
	{"split everything", {{'r', 0, MAX}, {'u', 1, MAX - 1}}, {{'r', 0, 0}, {'r', MAX, MAX}}},
	{"unlock the start", {{'w', 0, MAX}, {'u', 0, 0}}, {{'w', 1, MAX}}},
	{"unlock the end", {{'w', 0, MAX}, {'u', MAX, MAX}}, {{'w', 0, MAX - 1}}},
	{"unlock more than there is", {{'w', 3, 4}, {'r', 6, 7}, {'u', 0, MAX}}, {{0}}},
	{"unlock parts of two",
	 {{'w', 1, 4}, {'r', 6, 9}, {'u', 3, 7}},
	 {{'w', 1, 2}, {'r', 8, 9}}},
	{"unlock a gap", {{'w', 1, 4}, {'w', 6, 9}, {'u', 5, 5}}, {{'w', 1, 4}, {'w', 6, 9}}},
	{"unlock behind", {{'w', 1, 4}, {'u', 5, MAX}}, {{'w', 1, 4}}},
	{"unlock before", {{'w', 1, 4}, {'u', 0, 0}}, {{'w', 1, 4}}},

	{"convert the middle", {{'w', 0, 9}, {'r', 4, 5}}, {{'w', 0, 3}, {'r', 4, 5}, {'w', 6, 9}}},
	{"convert the whole", {{'w', 2, 3}, {'r', 2, 3}}, {{'r', 2, 3}}},
	{"convert and back", {{'w', 0, 9}, {'r', 4, 5}, {'w', 4, 5}}, {{'w', 0, 9}}},
	{"convert the start", {{'r', 0, MAX}, {'w', 0, 0}}, {{'w', 0, 0}, {'r', 1, MAX}}},
	{"convert the end", {{'r', 0, MAX}, {'w', MAX, MAX}}, {{'r', 0, MAX - 1}, {'w', MAX, MAX}}},
	{"convert to both neighbours",
	 {{'w', 0, 3}, {'r', 4, 5}, {'w', 6, 9}, {'w', 4, 5}},
	 {{'w', 0, 9}}},
	{"convert over one's end",
	 {{'w', 0, 5}, {'w', 8, 9}, {'r', 3, 6}},
	 {{'w', 0, 2}, {'r', 3, 6}, {'w', 8, 9}}},
};

static void test_cases(void **state)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct range_set set = {0};
		size_t count = 0;

		print_message("%s\n", cases[i].what);
		for (size_t step = 0; cases[i].steps[step].what; step++)
			assert_int_equal(apply(&set, cases[i].steps[step]), 0);
		for (; cases[i].expected[count].what; count++) {
			const struct step *expected = &cases[i].expected[count];

			assert_true(count < set.count);
			assert_int_equal(set.ranges[count].mode,
					 expected->what == 'w' ? CLAIM_EXCLUSIVE : CLAIM_SHARED);
			assert_int_equal(set.ranges[count].span.start, expected->start);
			assert_int_equal(set.ranges[count].span.end, expected->end);
		}
		assert_int_equal(set.count, count);
		range_set_finish(&set);
	}
}

static void test_an_empty_set(void **state)
{
	const struct claim_span whole = CLAIM_SPAN_WHOLE;
	struct range_set set = {0}, other = {0}, result;

	assert_int_equal(range_set_unlock(&set, whole), 0);
	assert_int_equal(range_set_copy(&set, &result), 0);
	assert_int_equal(result.count, 0);
	assert_int_equal(range_set_intersect(&set, &other, &result), 0);
	assert_int_equal(result.count, 0);
	assert_int_equal(range_set_add(&set, &other), 0);
	assert_true(range_set_contains(&set, &other));
	assert_false(range_set_covers(&set, whole, CLAIM_SHARED));
	assert_null(range_set_conflict(&set, whole, CLAIM_EXCLUSIVE));
	assert_false(range_sets_conflict(&set, &other));
	assert_true(range_sets_equal(&set, &other));
	assert_int_equal(range_set_span(&set).start, 0);
	assert_int_equal(range_set_span(&set).end, -1);
	assert_int_equal(range_set_mode(&set), CLAIM_SHARED);
	range_set_finish(&set);
	range_set_finish(&set);
}

static void test_a_set_with_itself(void **state)
{
	struct range_set set = {0}, before;

	assert_int_equal(apply(&set, (struct step){'w', 0, 9}), 0);
	assert_int_equal(apply(&set, (struct step){'r', 10, MAX}), 0);
	assert_int_equal(range_set_copy(&set, &before), 0);
	assert_int_equal(range_set_add(&set, &set), 0);
	assert_true(range_sets_equal(&set, &before));
	assert_true(range_set_contains(&set, &set));
	assert_true(range_sets_conflict(&set, &set));
	range_set_finish(&set);
	range_set_finish(&before);
}

/* Many ranges, from both sides. */
static void test_grows(void **state)
{
	const int64_t count = 3000;
	struct range_set up = {0}, down = {0}, both;

	for (int64_t i = 0; i < count; i++) {
		int64_t j = count - 1 - i;

		assert_int_equal(apply(&up, (struct step){'w', 2 * i, 2 * i}), 0);
		assert_int_equal(apply(&down, (struct step){'w', 2 * j, 2 * j}), 0);
	}
	assert_int_equal(up.count, count);
	assert_true(range_sets_equal(&up, &down));
	assert_int_equal(range_set_intersect(&up, &down, &both), 0);
	assert_true(range_sets_equal(&up, &both));
	for (int64_t i = 0; i < count; i++)
		assert_ptr_equal(range_set_conflict(&up, (struct claim_span){2 * i, 2 * i + 1},
						    CLAIM_SHARED),
				 &up.ranges[i]);
	range_set_finish(&up);
	range_set_finish(&down);
	range_set_finish(&both);
}

/* The model: slot i has the offsets from starts[i] up to starts[i + 1], or to the end of the last
 * slot. A value is 1 more than the mode, or 0. */

#define SLOTS 24

struct slots {
	unsigned char values[SLOTS];
};

static struct world {
	unsigned seed, step;
	size_t slots;
	int64_t starts[SLOTS], last;
	struct range_set sets[2];
	struct slots models[2];
} world;

static void check(bool right, const char *what, int line)
{
	if (right)
		return;
	print_error("seed %u, step %u: line %d: %s\n", world.seed, world.step, line, what);
	for (int i = 0; i < 2; i++) {
		print_error("set %d is", i);
		for (size_t j = 0; j < world.sets[i].count; j++)
			print_error(" %c%lld-%lld",
				    world.sets[i].ranges[j].mode == CLAIM_SHARED ? 'r' : 'w',
				    (long long)world.sets[i].ranges[j].span.start,
				    (long long)world.sets[i].ranges[j].span.end);
		print_error(", its slots:");
		for (size_t j = 0; j < world.slots; j++)
			print_error(" %lld=%c", (long long)world.starts[j],
				    "-rw"[world.models[i].values[j]]);
		print_error("\n");
	}
	fail();
}

#define CHECK(condition) check(condition, #condition, __LINE__)

static size_t below(size_t bound)
{
	return (size_t)random() % bound;
}

static int64_t slot_end(size_t slot)
{
	return slot + 1 < world.slots ? world.starts[slot + 1] - 1 : world.last;
}

static struct claim_span span_of(size_t first, size_t last)
{
	return (struct claim_span){world.starts[first], slot_end(last)};
}

/* The first bytes, the last bytes, or all, in slots of one byte or of many. */
static void make_world(unsigned seed)
{
	world = (struct world){.seed = seed};
	srandom(seed);
	world.slots = 1 + below(SLOTS);
	switch (below(3)) {
	case 0:
		for (size_t i = 0; i < world.slots; i++)
			world.starts[i] = (int64_t)i;
		world.last = (int64_t)world.slots - 1;
		break;
	case 1:
		for (size_t i = 0; i < world.slots; i++)
			world.starts[i] = INT64_MAX - (int64_t)(world.slots - 1 - i);
		world.last = INT64_MAX;
		break;
	default:
		for (size_t i = 1; i < world.slots; i++)
			world.starts[i] =
				INT64_MAX / (int64_t)world.slots * (int64_t)i + (int64_t)below(99);
		world.last = INT64_MAX;
	}
}

static int value_at(const struct range_set *set, int64_t offset)
{
	for (size_t i = 0; i < set->count; i++) {
		if (set->ranges[i].span.start <= offset && offset <= set->ranges[i].span.end)
			return 1 + (int)set->ranges[i].mode;
	}
	return 0;
}

static void check_slots(const struct range_set *set, const struct slots *model)
{
	for (size_t i = 0; i < world.slots; i++) {
		CHECK(value_at(set, world.starts[i]) == model->values[i]);
		CHECK(value_at(set, slot_end(i)) == model->values[i]);
	}
	CHECK(set->count <= set->capacity);
	for (size_t i = 0; i < set->count; i++) {
		const struct range *range = &set->ranges[i], *next = range + 1;

		CHECK(0 <= range->span.start && range->span.start <= range->span.end);
		if (i + 1 == set->count)
			break;
		CHECK(range->span.end < next->span.start);
		CHECK(range->mode != next->mode || range->span.end + 1 < next->span.start);
	}
	if (set->count > 0) {
		CHECK(set->ranges[0].span.start >= world.starts[0]);
		CHECK(set->ranges[set->count - 1].span.end <= world.last);
	}
}

/* All that can be asked about one set and a span. */
static void check_span(const struct range_set *set, const struct slots *model, size_t first,
		       size_t last, enum claim_mode mode)
{
	struct claim_span span = span_of(first, last);
	const struct range *conflict = range_set_conflict(set, span, mode);
	size_t at = first;
	bool covers = true;

	for (size_t i = first; i <= last; i++)
		covers = covers && model->values[i] > (int)mode;
	CHECK(range_set_covers(set, span, mode) == covers);

	while (at <= last && model->values[at] + (int)mode < 2)
		at++;
	CHECK((conflict != NULL) == (at <= last));
	if (conflict) {
		CHECK(set->ranges <= conflict && conflict < set->ranges + set->count);
		CHECK(conflict->span.start <= world.starts[at] &&
		      slot_end(at) <= conflict->span.end);
	}
}

static void check_set(const struct range_set *set, const struct slots *model)
{
	struct claim_span span = {0, -1};
	enum claim_mode mode = CLAIM_SHARED;
	struct range_set copy;

	check_slots(set, model);
	for (size_t i = 0; i < world.slots; i++) {
		if (model->values[i] == 0)
			continue;
		if (span.end < 0)
			span.start = world.starts[i];
		span.end = slot_end(i);
		if (model->values[i] == 1 + CLAIM_EXCLUSIVE)
			mode = CLAIM_EXCLUSIVE;
	}
	CHECK(range_set_span(set).start == span.start && range_set_span(set).end == span.end);
	CHECK(range_set_mode(set) == mode);
	for (int i = 0; i < 6; i++) {
		size_t first = below(world.slots);

		check_span(set, model, first, first + below(world.slots - first), CLAIM_SHARED);
		check_span(set, model, first, first + below(world.slots - first), CLAIM_EXCLUSIVE);
	}

	CHECK(range_set_copy(set, &copy) == 0);
	check_slots(&copy, model);
	CHECK(range_sets_equal(set, &copy) && range_sets_equal(&copy, set));
	range_set_finish(&copy);
}

static void check_pair(const struct range_set *a, const struct slots *model_a,
		       const struct range_set *b, const struct slots *model_b)
{
	bool contains = true, conflict = false;
	struct slots weaker = {0}, stronger = {0};
	struct range_set both, sum;

	for (size_t i = 0; i < world.slots; i++) {
		unsigned char x = model_a->values[i], y = model_b->values[i];

		contains = contains && x >= y;
		conflict = conflict || (x > 0 && y > 0 && x + y > 2);
		weaker.values[i] = x < y ? x : y;
		stronger.values[i] = x < y ? y : x;
	}
	CHECK(range_set_contains(a, b) == contains);
	CHECK(range_sets_conflict(a, b) == conflict);
	CHECK(range_sets_equal(a, b) ==
	      (memcmp(model_a->values, model_b->values, world.slots) == 0));

	CHECK(range_set_intersect(a, b, &both) == 0);
	check_slots(&both, &weaker);
	range_set_finish(&both);

	CHECK(range_set_copy(a, &sum) == 0);
	CHECK(range_set_add(&sum, b) == 0);
	check_slots(&sum, &stronger);
	range_set_finish(&sum);
}

/* What would be done fails for want of memory, unless it needs none; then it must have done
 * nothing. Returns whether it is still to be done. */
static bool fails(int error, int which)
{
	allocations_to_failure = 0;
	if (error == 0)
		return false;
	CHECK(error == -ENOMEM);
	check_slots(&world.sets[which], &world.models[which]);
	return true;
}

static void do_step(void)
{
	int which = (int)below(2), value = (int)below(3);
	struct range_set *set = &world.sets[which], *other = &world.sets[!which], result;
	struct slots *model = &world.models[which], *other_model = &world.models[!which];
	size_t first = below(world.slots), last = first + below(world.slots - first);
	struct step step = {"urw"[value], world.starts[first], slot_end(last)};

	if (below(4) == 0)
		allocations_to_failure = 1 + (unsigned)below(2);
	switch (below(16)) {
	case 0: /* the one becomes as the other */
		if (fails(range_set_copy(other, &result), which))
			CHECK(range_set_copy(other, &result) == 0);
		range_set_finish(set);
		*set = result;
		*model = *other_model;
		break;
	case 1: /* the one becomes a part of the other */
		if (fails(range_set_intersect(set, other, &result), which))
			CHECK(range_set_intersect(set, other, &result) == 0);
		range_set_finish(set);
		*set = result;
		for (size_t i = 0; i < world.slots; i++) {
			if (other_model->values[i] < model->values[i])
				model->values[i] = other_model->values[i];
		}
		break;
	case 2:
		if (fails(range_set_add(set, other), which))
			CHECK(range_set_add(set, other) == 0);
		for (size_t i = 0; i < world.slots; i++) {
			if (other_model->values[i] > model->values[i])
				model->values[i] = other_model->values[i];
		}
		break;
	default:
		if (fails(apply(set, step), which))
			CHECK(apply(set, step) == 0);
		memset(model->values + first, value, last - first + 1);
	}
}

static void run_world(unsigned seed, unsigned steps)
{
	make_world(seed);
	for (world.step = 0; world.step < steps; world.step++) {
		do_step();
		for (int i = 0; i < 2; i++) {
			check_set(&world.sets[i], &world.models[i]);
			check_pair(&world.sets[i], &world.models[i], &world.sets[!i],
				   &world.models[!i]);
		}
	}
	for (int i = 0; i < 2; i++)
		range_set_finish(&world.sets[i]);
}

/* With a seed in the environment, as printed by a failure, only that one. */
static void test_model(void **state)
{
	const char *seed = getenv("RANGE_SET_SEED");

	if (seed) {
		run_world((unsigned)strtoul(seed, NULL, 10), 60);
		return;
	}
	for (unsigned i = 0; i < 700; i++)
		run_world(i, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_an_empty_set),
		cmocka_unit_test(test_a_set_with_itself),
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
