/* SPDX-License-Identifier: Apache-2.0
 *
 * What votes of servers come to: every combination of up to five, and everything that each may
 * still become.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stores/redis/tally.h"

static const struct tally_vote kinds[] = {
	{TALLY_OPEN, 0},     {TALLY_YES, 0},  {TALLY_NO, -ENOENT}, {TALLY_NO, -EEXIST},
	{TALLY_NO, -EAGAIN}, {TALLY_LOST, 0}, {TALLY_ABSENT, 0},
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds), SERVERS_MAX = 5 };

static size_t count_of(const struct tally_vote *votes, size_t count, enum tally_state state)
{
	size_t result = 0;

	for (size_t i = 0; i < count; i++)
		result += votes[i].state == state;
	return result;
}

/* Checks what the votes come to, and that it stays so whatever the open ones become. */
static void check_rest(enum redis_verb verb, int decided, struct tally_vote *votes, size_t count,
		       size_t from)
{
	int result;

	while (from < count && votes[from].state != TALLY_OPEN)
		from++;
	if (from < count) {
		for (size_t kind = 1; kind < KINDS; kind++) {
			votes[from] = kinds[kind];
			check_rest(verb, decided, votes, count, from + 1);
		}
		votes[from] = kinds[0];
		return;
	}
	result = tally_count(verb, votes, count);
	assert_int_not_equal(result, TALLY_UNDECIDED);
	if (decided == TALLY_UNDECIDED || verb == REDIS_READ)
		return;
	if (verb == REDIS_GIVE && (decided == 0 || decided == -ENOENT))
		assert_true(result == 0 || result == -ENOENT);
	else
		assert_int_equal(result == 0, decided == 0);
}

static void check(enum redis_verb verb, struct tally_vote *votes, size_t count)
{
	int decided = tally_count(verb, votes, count);
	size_t yes = count_of(votes, count, TALLY_YES);

	assert_int_equal(tally_open(votes, count), count_of(votes, count, TALLY_OPEN));
	if (verb == REDIS_TAKE || verb == REDIS_RENEW)
		assert_int_equal(decided == 0, yes > count / 2);
	check_rest(verb, decided, votes, count, 0);
}

static void test_all(void **state)
{
	static const enum redis_verb verbs[] = {REDIS_TAKE, REDIS_RENEW, REDIS_GIVE, REDIS_READ};
	struct tally_vote votes[SERVERS_MAX];

	for (size_t count = 1; count <= SERVERS_MAX; count++) {
		size_t combinations = 1;

		for (size_t i = 0; i < count; i++)
			combinations *= KINDS;
		for (size_t number = 0; number < combinations; number++) {
			size_t rest = number;

			for (size_t i = 0; i < count; i++, rest /= KINDS)
				votes[i] = kinds[rest % KINDS];
			/* What is open of many has been checked with fewer. */
			if (count > 3 && count_of(votes, count, TALLY_OPEN) > 2)
				continue;
			for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
				check(verbs[i], votes, count);
		}
	}
}

/* Who has said nothing may have it: that is no loss, and no grant. */
static void test_doubt(void **state)
{
	struct tally_vote votes[] = {{TALLY_YES, 0}, {TALLY_LOST, 0}, {TALLY_NO, -ENOENT}};

	assert_int_equal(tally_count(REDIS_RENEW, votes, 3), -ECONNRESET);
	assert_int_equal(tally_count(REDIS_TAKE, votes, 3), -ECONNRESET);
	votes[0] = votes[2];
	assert_int_equal(tally_count(REDIS_RENEW, votes, 3), -ENOENT);
	votes[1] = (struct tally_vote){TALLY_NO, -EEXIST};
	assert_int_equal(tally_count(REDIS_TAKE, votes, 3), -EEXIST);
	votes[0] = votes[1] = votes[2] = (struct tally_vote){TALLY_NO, -EAGAIN};
	assert_int_equal(tally_count(REDIS_RENEW, votes, 3), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
