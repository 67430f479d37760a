/* SPDX-License-Identifier: Apache-2.0
 *
 * What is read of the processes that ask for locks, here of this one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "files/claim_text.h"

static char name[16];

static void call_me(const char *other)
{
	assert_int_equal(prctl(PR_SET_NAME, other, 0, 0, 0), 0);
}

static int setup(void **state)
{
	(void)state;
	return prctl(PR_GET_NAME, name, 0, 0, 0);
}

static int teardown(void **state)
{
	(void)state;
	return prctl(PR_SET_NAME, name, 0, 0, 0);
}

static void a_name_is_read_again_when_its_time_is_over(void **state)
{
	struct claim_details details;

	(void)state;
	call_me("first");
	claim_text_of(gettid(), 1, &details);
	assert_int_equal(details.pid, getpid());
	assert_string_equal(details.command, "first");
	call_me("second");
	claim_text_of(gettid(), CLAIM_TEXT_KNOWN_MS, &details);
	assert_int_equal(details.pid, getpid());
	assert_string_equal(details.command, "first");
	claim_text_of(gettid(), 1 + CLAIM_TEXT_KNOWN_MS, &details);
	assert_string_equal(details.command, "second");
}

static void *ask(void *context)
{
	struct claim_details *details = context;

	call_me("a thread");
	claim_text_of(gettid(), 2 + CLAIM_TEXT_KNOWN_MS, details);
	return NULL;
}

static void a_thread_asks_for_its_process(void **state)
{
	struct claim_details details;
	pthread_t thread;

	(void)state;
	call_me("process");
	assert_int_equal(pthread_create(&thread, NULL, ask, &details), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(details.pid, getpid());
	assert_string_equal(details.command, "process");
}

static void who_has_ended_has_no_name(void **state)
{
	struct claim_details details;

	(void)state;
	claim_text_of(0, 1, &details); /* another namespace's */
	assert_int_equal(details.pid, 0);
	assert_string_equal(details.command, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_is_read_again_when_its_time_is_over, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_thread_asks_for_its_process, setup, teardown),
		cmocka_unit_test(who_has_ended_has_no_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
