/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine with a journal sends: after the commit, or, without the memory to keep it until
 * then, at once, and nobody is to go on with those books.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "engine/transfer.h"
#include "fixture.h"
#include "kept.h"

/* Stands in for libc's malloc(3), in what is linked statically. */
static bool has_no_memory;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return has_no_memory ? NULL : __real_malloc(bytes);
}

static uint64_t number_of(const void *cookie)
{
	return 1;
}

static void save_details(FILE *out, const void *details)
{
}

static void each_owner(void *context, void (*visit)(void *visitor, struct owner *owner),
		       void *visitor)
{
}

static const struct engine_transfer transfer = {
	.number_owner = number_of,
	.number_wish = number_of,
	.save_details = save_details,
	.each_owner = each_owner,
};

static struct state_journal *begin_journal(struct host *host)
{
	struct state_journal *journal;

	assert_int_equal(state_journal_create(memfd_create("test", MFD_CLOEXEC), 4096, 0, &journal),
			 0);
	engine_set_journal(host->engine, journal, &transfer, STATE_PLACE_SHARD);
	state_journal_commit(journal, 0, NULL, 0);
	return journal;
}

static void end_journal(struct host *host, struct state_journal *journal)
{
	engine_set_journal(host->engine, NULL, NULL, 0);
	state_journal_destroy(journal);
}

static bool is_usable(const struct state_journal *journal)
{
	char why[256];
	char *kept = kept_read(state_journal_descriptor(journal), why, sizeof(why));

	free(kept);
	return kept != NULL;
}

static void test_sends_after_the_commit(void **state)
{
	struct world *world = *state;
	struct state_journal *journal = begin_journal(&world->one);
	struct file file;

	file_open_and_lock(&file, &world->one, EX);
	assert_waits(&file);
	assert_int_equal(queue_length(world, "a"), 0);
	state_journal_commit(journal, 0, NULL, 0);
	engine_send(world->one.engine);
	settle(world);
	assert_granted(&file);
	assert_true(is_usable(journal));
	file_close(&file);
	engine_send(world->one.engine);
	end_journal(&world->one, journal);
}

static int renewals;

static void count_renewal(struct store *store, const struct store_told *told)
{
	assert_non_null(told);
	renewals++;
}

/* The store has given its session up by itself: the service hears of that when the next process
 * would know of it. */
static void test_session_ends_after_the_commit(void **state)
{
	struct world *world = *state;
	const struct store_ops *ops = world->one.store->ops;
	struct store_ops counting = *ops;
	struct state_journal *journal = begin_journal(&world->one);

	counting.renew = count_renewal;
	world->one.store->ops = &counting;
	renewals = 0;
	engine_store_events.on_session(world->one.engine, STORE_LOST, TIMEOUT_MS);
	assert_int_equal(renewals, 0);
	state_journal_commit(journal, 0, NULL, 0);
	engine_send(world->one.engine);
	assert_int_equal(renewals, 1);
	end_journal(&world->one, journal);
	engine_store_events.on_session(world->one.engine, STORE_LOST, TIMEOUT_MS);
	assert_int_equal(renewals, 2);
	world->one.store->ops = ops;
	engine_store_events.on_session(world->one.engine, STORE_CONNECTED, TIMEOUT_MS);
}

static void test_without_memory_nothing_is_kept(void **state)
{
	struct world *world = *state;
	struct state_journal *journal = begin_journal(&world->one);
	struct file file, other;

	assert_true(is_usable(journal));
	file_open(&file, &world->one, "a");
	file_open(&other, &world->one, "b");
	file_lock(&other, EX, WAIT);
	has_no_memory = true;
	file_lock(&file, EX, WAIT);
	has_no_memory = false;
	assert_true(state_journal_has_failed(journal));
	assert_false(is_usable(journal));
	settle(world);
	assert_granted(&other); /* which was to wait, and comes first */
	assert_granted(&file);
	state_journal_commit(journal, 0, NULL, 0);
	assert_false(is_usable(journal));
	file_close(&file);
	file_close(&other);
	end_journal(&world->one, journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sends_after_the_commit),
		TEST(session_ends_after_the_commit),
		TEST(without_memory_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
