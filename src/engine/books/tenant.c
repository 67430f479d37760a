/* SPDX-License-Identifier: Apache-2.0
 *
 * The tenant that does nothing.
 */
#include "engine/books/tenant.h"

static void do_nothing(void *context)
{
}

static void do_nothing_const(const void *context)
{
}

static int64_t never(const void *context)
{
	return INT64_MAX;
}

static bool show_none(void *context, uint32_t round, tenant_show *show, void *to)
{
	return true;
}

static bool miss_none(void *context, const char *path)
{
	return false;
}

static void visit_nothing(void *context, const struct state_visit *visit)
{
}

static bool has_no_word(const char *word)
{
	return false;
}

/* There is no watcher, and no word, of it. */
const struct tenant_kind tenant_none = {
	.lose_session = do_nothing,
	.resume = do_nothing,
	.end_time = do_nothing,
	.deadline = never,
	.show_names = show_none,
	.missed = miss_none,
	.visit = visit_nothing,
	.has_word = has_no_word,
	.check_invariants = do_nothing_const,
	.destroy = do_nothing,
};
