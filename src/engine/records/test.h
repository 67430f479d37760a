/* SPDX-License-Identifier: Apache-2.0
 *
 * F_GETLK: what a wish would conflict with. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_RECORDS_TEST_H
#define DLOCKFS_ENGINE_RECORDS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/timers.h"
#include "claim/range_set.h"

struct engine_conflict;
struct lock;
struct owner;

/* A question what a wish for a record lock would conflict with. */
struct test {
	struct test *prev, *next; /* in lock->tests */
	struct timer timer;	  /* its limit, or the end of the grace of what is in the way */
	int64_t limit_ms;	  /* INT64_MAX: it has none */
	int64_t asked_ms;
	struct lock *lock;
	struct owner *file;
	uint64_t process;
	struct range range;
	uint64_t list_wanted; /* the list that will answer it */
	void *cookie;
};

/* Begins a test, as engine_test_range() says. */
int test_begin(struct owner *file, uint64_t process, struct range range, void *cookie,
	       struct test **ret_test);

/* Ends a test without an answer, or with one. */
void test_end(struct test *test);
void test_answer(struct test *test, int error, const struct engine_conflict *conflict);

/* The timer of the test is due. */
void test_expire(struct test *test);

/* Answers the tests that can be. */
void tests_settle(struct lock *lock);

/* A rival has gone, and its owner may have another one for the same range: looks again. */
void tests_look_anew(struct lock *lock);

/* What was listed was of the former session: the next list answers the tests. */
void tests_forget_lists(struct lock *lock);

/* Whether one of them waits for a list. */
bool tests_need_list(const struct lock *lock);

/* The open file is closed: its tests end without an answer. */
void tests_forget_file(const struct owner *file);

/* The open file, or the process, has lost a lock: answers the tests. */
void tests_lose(const struct owner *owner);

#endif
