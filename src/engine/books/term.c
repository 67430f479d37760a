/* SPDX-License-Identifier: Apache-2.0
 *
 * See term.h. Loop thread only.
 */
#include "engine/books/term.h"

#include "engine/books/state.h"

int64_t term_least_ms(const struct lock *lock, bool record)
{
	int64_t least_ms = record ? 0 : lock->policy.min_hold_ms;

	return least_ms > 0 ? lock->engine->now_ms + least_ms : 0;
}
