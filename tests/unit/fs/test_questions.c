/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of users in turns: their order, how many are under way, and how they leave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "files/questions.h"

enum { ALICE = 1, BOB, CAROL };

static struct questions queue;
static struct question questions[4 * QUESTIONS_AT_ONCE];

static int begin(void **state)
{
	queue = (struct questions){0};
	for (size_t i = 0; i < 4 * QUESTIONS_AT_ONCE; i++)
		questions[i] = (struct question){0};
	return 0;
}

static void join(size_t number, uid_t uid)
{
	assert_int_equal(questions_join(&queue, &questions[number], uid), 0);
}

/* The number of the question whose turn it is; -1: none. */
static int next(void)
{
	struct question *question = questions_next(&queue);
	return question != NULL ? (int)(question - questions) : -1;
}

static void test_order(void **state)
{
	assert_int_equal(next(), -1);
	join(0, ALICE);
	join(1, ALICE);
	join(2, ALICE);
	join(3, BOB);
	assert_int_equal(next(), 0);
	join(4, CAROL);
	assert_int_equal(next(), 3);
	assert_int_equal(next(), 1);
	join(5, BOB);
	assert_int_equal(next(), 4);
	assert_int_equal(next(), 2);
	assert_int_equal(next(), 5);
	assert_int_equal(next(), -1);
	assert_int_equal(queue.under_way, 6);
	assert_null(queue.by_uid);
	for (size_t i = 0; i < 6; i++)
		questions_leave(&queue, &questions[i]);
	assert_int_equal(queue.under_way, 0);
}

/* Another user's question waits for one answer, however many one user has asked. */
static void test_at_once(void **state)
{
	size_t count = 3 * QUESTIONS_AT_ONCE;

	for (size_t i = 0; i < count; i++)
		join(i, ALICE);
	for (int i = 0; i < QUESTIONS_AT_ONCE; i++)
		assert_int_equal(next(), i);
	assert_int_equal(next(), -1);
	join(count, BOB);
	assert_int_equal(next(), -1);
	questions_leave(&queue, &questions[5]);
	assert_int_equal(next(), QUESTIONS_AT_ONCE);
	questions_leave(&queue, &questions[6]);
	assert_int_equal(next(), (int)count);
	assert_int_equal(next(), -1);
	for (size_t i = 0; i <= count; i++)
		questions_leave(&queue, &questions[i]);
	assert_int_equal(queue.under_way, 0);
	assert_null(queue.by_uid);
}

/* In any state, more than once. */
static void test_leave(void **state)
{
	questions_leave(&queue, &questions[0]);
	join(1, ALICE);
	join(2, ALICE);
	join(3, BOB);
	questions_leave(&queue, &questions[1]);
	questions_leave(&queue, &questions[3]);
	assert_int_equal(next(), 2);
	questions_leave(&queue, &questions[2]);
	questions_leave(&queue, &questions[2]);
	assert_int_equal(queue.under_way, 0);
	assert_int_equal(next(), -1);
}

#define QUESTIONS_TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		QUESTIONS_TEST(test_order),
		QUESTIONS_TEST(test_at_once),
		QUESTIONS_TEST(test_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
