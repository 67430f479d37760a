/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of ranges against a plain model: the mode of each of a few stretches of the file, which are
 * divided where it matters, at both ends of the offsets and in between. Four bytes are one step.
 */
#include "fuzz.h"

#include <stdbool.h>

#include "claim/range_set.h"

enum { STRETCHES = 12, NONE = 2 };

/* Where each begins; the last one ends at INT64_MAX. */
static const int64_t starts[STRETCHES] = {0,
					  1,
					  2,
					  100,
					  101,
					  4096,
					  INT64_C(1) << 32,
					  INT64_MAX - 100,
					  INT64_MAX - 3,
					  INT64_MAX - 2,
					  INT64_MAX - 1,
					  INT64_MAX};

struct pair {
	struct range_set set;
	int model[STRETCHES]; /* an enum claim_mode, or NONE */
};

static int64_t end_of(int stretch)
{
	return stretch + 1 < STRETCHES ? starts[stretch + 1] - 1 : INT64_MAX;
}

static int mode_at(const struct range_set *set, int stretch)
{
	struct claim_span span = {starts[stretch], end_of(stretch)};

	if (range_set_covers(set, span, CLAIM_EXCLUSIVE))
		return CLAIM_EXCLUSIVE;
	if (range_set_covers(set, span, CLAIM_SHARED))
		return CLAIM_SHARED;
	REQUIRE(!range_set_conflict(set, span, CLAIM_EXCLUSIVE));
	return NONE;
}

static void check(const struct range_set *set, const int *model)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct range *range = &set->ranges[i];

		REQUIRE(range->span.start >= 0 && range->span.start <= range->span.end);
		REQUIRE(i == 0 || range[-1].span.end < range->span.start);
		REQUIRE(i == 0 || range[-1].mode != range->mode ||
			range[-1].span.end < range->span.start - 1);
	}
	for (int i = 0; i < STRETCHES; i++)
		REQUIRE(mode_at(set, i) == model[i]);
}

static void check_both(const struct pair *a, const struct pair *b)
{
	struct range_set both = {0}, copy = {0};
	int model[STRETCHES];
	bool conflict = false, contains = true;

	for (int i = 0; i < STRETCHES; i++) {
		int x = a->model[i], y = b->model[i];

		model[i] = x == NONE || y == NONE			  ? NONE
			   : x == CLAIM_EXCLUSIVE && y == CLAIM_EXCLUSIVE ? CLAIM_EXCLUSIVE
									  : CLAIM_SHARED;
		conflict = conflict ||
			   (model[i] != NONE && (x == CLAIM_EXCLUSIVE || y == CLAIM_EXCLUSIVE));
		contains = contains && (y == NONE || x == y || x == CLAIM_EXCLUSIVE);
	}
	REQUIRE(range_set_intersect(&a->set, &b->set, &both) == 0);
	check(&both, model);
	REQUIRE(range_sets_conflict(&a->set, &b->set) == conflict);
	REQUIRE(range_set_contains(&a->set, &b->set) == contains);
	REQUIRE(range_set_copy(&a->set, &copy) == 0 && range_sets_equal(&a->set, &copy));
	range_set_finish(&both);
	range_set_finish(&copy);
}

static void add(struct pair *to, const struct pair *other)
{
	REQUIRE(range_set_add(&to->set, &other->set) == 0);
	for (int i = 0; i < STRETCHES; i++) {
		if (to->model[i] == NONE || other->model[i] == CLAIM_EXCLUSIVE)
			to->model[i] = other->model[i];
	}
}

static void set_mode(struct pair *pair, int first, int last, int mode)
{
	struct claim_span span = {starts[first], end_of(last)};

	if (mode == NONE)
		REQUIRE(range_set_unlock(&pair->set, span) == 0);
	else
		REQUIRE(range_set_lock(&pair->set, span, (enum claim_mode)mode) == 0);
	for (int i = first; i <= last; i++)
		pair->model[i] = mode;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct pair pairs[2];

	for (int i = 0; i < 2; i++) {
		pairs[i].set = (struct range_set){0};
		for (int j = 0; j < STRETCHES; j++)
			pairs[i].model[j] = NONE;
	}
	for (; bytes >= 4; data += 4, bytes -= 4) {
		struct pair *pair = &pairs[data[0] & 1], *other = &pairs[!(data[0] & 1)];
		int a = data[2] % STRETCHES, b = data[3] % STRETCHES;

		if (data[1] % 4 <= NONE)
			set_mode(pair, a < b ? a : b, a < b ? b : a, data[1] % 4);
		else
			add(pair, other);
		check(&pair->set, pair->model);
		check_both(pair, other);
		check_both(other, pair);
	}
	range_set_finish(&pairs[0].set);
	range_set_finish(&pairs[1].set);
	return 0;
}
