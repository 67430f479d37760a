/* SPDX-License-Identifier: Apache-2.0
 *
 * F_GETLK: what a wish would conflict with. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_TEST_H
#define DLOCKFS_ENGINE_TEST_H

#include "engine/state.h"

/* Begins a test, as engine_test_range() says. */
int test_begin(struct owner *file, uint64_t process, struct range range, void *cookie,
	       struct claim **ret_claim);

/* Answers the tests that can be. */
void tests_settle(struct lock *lock);

/* A foreign claim has gone, and its owner may have another one for the same range: looks again. */
void tests_look_anew(struct lock *lock);

#endif
