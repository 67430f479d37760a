/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers, against a model: a list of times, of which the least is due first.
 */
#include "base/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
/* last */
#include <cmocka.h>

enum { TIMERS = 40, STEPS = 20000, TIMES = 60 };

static struct timers timers;
static struct timer list[TIMERS];
static int64_t model_ms[TIMERS]; /* INT64_MAX: not set */
static int64_t now_ms;
static int called;

static int64_t least(void)
{
	int64_t least_ms = INT64_MAX;

	for (int i = 0; i < TIMERS; i++)
		least_ms = model_ms[i] < least_ms ? model_ms[i] : least_ms;
	return least_ms;
}

/* Is called for the earliest, and once; sets one timer anew, and clears another one. */
static void on_due(struct timer *timer)
{
	int i = (int)(timer - list), other = (i * 7 + called) % TIMERS;

	assert_false(timer_is_set(timer));
	assert_int_equal(model_ms[i], least());
	assert_true(model_ms[i] <= now_ms);
	model_ms[i] = INT64_MAX;
	called++;
	if (called % 3 == 0) {
		timers_set(&timers, timer, now_ms + 5);
		model_ms[i] = now_ms + 5;
	} else if (called % 3 == 1) {
		timers_clear(&timers, &list[other]);
		model_ms[other] = INT64_MAX;
	}
}

static void check(void)
{
	assert_int_equal(timers_due(&timers), least());
	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(timer_is_set(&list[i]), model_ms[i] != INT64_MAX);
}

static void test_order(void **state)
{
	(void)state;
	srandom(1);
	for (int i = 0; i < TIMERS; i++) {
		list[i] = (struct timer){.on_due = on_due};
		model_ms[i] = INT64_MAX;
	}
	for (int step = 0; step < STEPS; step++) {
		int i = (int)(random() % TIMERS);
		int64_t due_ms = now_ms + random() % TIMES;

		if (step % 4 == 0) {
			timers_clear(&timers, &list[i]);
			model_ms[i] = INT64_MAX;
		} else if (step % 4 == 1) {
			timers_advance(&timers, &list[i], due_ms);
			model_ms[i] = due_ms < model_ms[i] ? due_ms : model_ms[i];
		} else {
			timers_set(&timers, &list[i], due_ms);
			model_ms[i] = due_ms;
		}
		check();
		now_ms += random() % 3;
		timers_run(&timers, now_ms);
		assert_true(least() > now_ms);
		check();
	}
	assert_true(called > STEPS / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
