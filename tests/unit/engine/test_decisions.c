/* SPDX-License-Identifier: Apache-2.0
 *
 * What callers are to be told is told in the order in which it was noted, once, and not before it
 * is asked for; unless there is no memory to note it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../failing_memory.h"
#include "engine/books/decisions.h"
#include "engine/books/state.h"

enum { MANY = 100 };

static char told[16 * MANY];

static void note(const char *word, const void *cookie, long long number)
{
	size_t length = strlen(told);
	snprintf(told + length, sizeof(told) - length, "%s %s %lld\n", word, (const char *)cookie,
		 number);
}

static void on_decided(void *context, void *cookie, int result)
{
	note("decided", cookie, result);
}

static void on_tested(void *context, void *cookie, int error,
		      const struct engine_conflict *conflict)
{
	note("tested", cookie, conflict != NULL ? conflict->pid : error);
}

static void on_proved(void *context, void *cookie, int error, uint64_t token)
{
	note("proved", cookie, error != 0 ? error : (long long)token);
}

static void on_lost(void *context, void *owner_cookie)
{
	note("lost", owner_cookie, 0);
}

static void on_revoked(void *context, void *owner_cookie)
{
	note("revoked", owner_cookie, 0);
}

static const struct engine_events events = {
	.on_decided = on_decided,
	.on_tested = on_tested,
	.on_proved = on_proved,
	.on_lost = on_lost,
	.on_revoked = on_revoked,
};

static int begin(void **state)
{
	static struct engine engine;

	engine = (struct engine){.events = &events};
	told[0] = '\0';
	allocations_to_failure = 0;
	*state = &engine;
	return 0;
}

static int end(void **state)
{
	struct engine *engine = *state;
	free(engine->decisions.list);
	return 0;
}

static void test_in_order(void **state)
{
	struct engine *engine = *state;
	const struct engine_conflict conflict = {.pid = 7};

	decisions_add(engine, DECIDED, "a", -5);
	decisions_add_test(engine, "b", 0, &conflict);
	decisions_add_test(engine, "c", -3, NULL);
	decisions_add_proof(engine, "d", 0, 9);
	decisions_add(engine, LOST, "e", 0);
	decisions_add(engine, REVOKED, "f", 0);
	assert_string_equal(told, "");
	decisions_tell(engine);
	assert_string_equal(told, "decided a -5\ntested b 7\ntested c -3\nproved d 9\nlost e 0\n"
				  "revoked f 0\n");
	decisions_tell(engine);
	assert_int_equal(strlen(told), strlen("decided a -5\ntested b 7\ntested c -3\nproved d 9\n"
					      "lost e 0\nrevoked f 0\n"));
}

/* The list grows three times for so many, and each of these times may fail. */
static void test_without_memory(void **state)
{
	struct engine *engine = *state;
	char expected[sizeof(told)] = "";

	for (unsigned failure = 1; failure <= 3; failure++) {
		allocations_to_failure = failure;
		for (int i = 0; i < MANY; i++) {
			size_t length = strlen(expected);
			decisions_add(engine, DECIDED, "a", i);
			snprintf(expected + length, sizeof(expected) - length, "decided a %d\n", i);
		}
		assert_int_equal(allocations_to_failure, 0);
		assert_string_not_equal(told, "");
		decisions_tell(engine);
		assert_string_equal(told, expected);
		end(state);
		begin(state);
		expected[0] = '\0';
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, begin, end),
		cmocka_unit_test_setup_teardown(test_without_memory, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
