/* SPDX-License-Identifier: Apache-2.0
 *
 * An engine whose process was killed, and the one that goes on with its books: what happened in
 * between, and the order of what it does first. That the books are whole the simulator shows.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "engine/transfer.h"
#include "fixture.h"

/* The only file of the host. */
static struct file *survivor;

static uint64_t number_of(const void *cookie)
{
	return 1;
}

static void save_details(FILE *out, const void *details)
{
}

static void restore_details(struct state_reader *in, void *details)
{
}

static struct lock_policy policy_of(void *context, const char *path)
{
	return ((struct host *)context)->world->policy;
}

static struct owner *find_owner(void *context, uint64_t number)
{
	return survivor->owner;
}

static void each_owner(void *context, void (*visit)(void *visitor, struct owner *owner),
		       void *visitor)
{
	visit(visitor, survivor->owner);
}

static void *adopt_wish(void *context, uint64_t number, const struct owner *file, struct wish *wish)
{
	survivor->wish = wish;
	return survivor;
}

static const struct engine_transfer transfer = {
	.number_owner = number_of,
	.number_wish = number_of,
	.save_details = save_details,
	.restore_details = restore_details,
	.policy = policy_of,
	.find_owner = find_owner,
	.each_owner = each_owner,
	.adopt_wish = adopt_wish,
};

/* The daemon on the host of the file dies. What it knew, to be freed by restore(). */
static char *kill_daemon(struct file *file)
{
	struct host *host = file->host;
	struct state_journal *journal;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	survivor = file;
	state_begin(out, "handle");
	engine_save_owner(file->owner, out);
	state_end(out);
	engine_save(host->engine, &transfer, out);
	assert_int_equal(fclose(out), 0);
	/* With a journal it sends nothing by itself, so nothing comes of its end. */
	assert_int_equal(state_journal_create(memfd_create("test", MFD_CLOEXEC), 4096, 0, &journal),
			 0);
	engine_set_journal(host->engine, journal, &transfer, STATE_PLACE_SHARD);
	engine_owner_close(file->owner);
	file->owner = NULL;
	engine_destroy(host->engine);
	state_journal_destroy(journal);
	store_faulty_succeed(host->store);
	host->engine = engine_create(fixture_events, host, 77);
	assert_non_null(host->engine);
	engine_set_store(host->engine, host->store);
	store_faulty_set_context(host->store, host->engine);
	return text;
}

/* The next one has its books, and is about to connect. */
static void restore(struct file *file, const char *path, char *text)
{
	struct host *host = file->host;
	FILE *in = fmemopen(text, strlen(text), "r");
	struct state_reader reader;

	assert_non_null(in);
	state_reader_init(&reader, in);
	assert_int_equal(state_next(&reader), 1);
	file->owner = engine_restore_owner(host->engine, path, &host->world->policy, file, &reader);
	assert_non_null(file->owner);
	assert_int_equal(engine_restore(host->engine, &transfer, &reader), 0);
	state_reader_finish(&reader);
	fclose(in);
	free(text);
	engine_advance(host->engine, host->world->now_ms);
	engine_check_invariants(host->engine);
	store_faulty_reconnect(host->store);
}

/* Who has told others that it waits, and was freed while nobody ran, takes that back before it
 * holds: somebody with an anchor would go before it. */
static void test_says_waits_until_it_was_taken_back(void **state)
{
	struct world *world = *state;
	struct file first, second, third;
	char *text;

	file_open(&first, &world->one, "a");
	file_open(&second, &world->two, "a");
	file_open(&third, &world->three, "a");
	record_lock(&first, SH, 0, 199, WAIT);
	settle(world);
	record_lock(&second, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&third, SH, 0, 9, WAIT);
	settle(world);
	assert_queue(world, "a", "r0-199 | w0-9? | r0-9?");

	text = kill_daemon(&third);
	file_cancel(&second);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "r0-199 | r0-9?");
	restore(&third, "a", text);
	while (file_waits(&third))
		assert_true(store_faulty_step(world->three.store));
	assert_granted(&third);
	assert_queue(world, "a", "r0-199 | r0-9");

	record_lock(&first, EX, 0, 199, WAIT);
	settle(world);
	assert_waits(&first);
	assert_ranges(&third, "r0-9");
	record_unlock(&third, 0, 9);
	settle(world);
	assert_granted(&first);
	file_close(&first);
	file_close(&second);
	file_close(&third);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

/* Claims that were held back are not placed before a list shows that they may be. */
static void test_held_back(void **state)
{
	struct world *world = *state;
	struct file holder, waiter;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open(&holder, &world->two, "a");
	file_lock(&holder, EX, WAIT);
	file_open(&waiter, &world->one, "a");
	settle(world);
	assert_holds(&holder);
	/* The list tells of the number first. */
	record_test(&waiter, EX, 0, 0);
	settle(world);
	file_lock(&waiter, EX, WAIT);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 1);
	restore(&waiter, "a", kill_daemon(&waiter));
	settle(world);
	assert_waits(&waiter);
	assert_int_equal(queue_length(world, "a"), 1);
	local_service_set_first_order(world->service, 0);
	file_close(&holder);
	settle(world);
	pass(world, 100);
	assert_holds(&waiter);
	assert_int_equal(queue_length(world, "a"), 1);
	assert_int_equal(world->claims[0].order, 0);
	file_close(&waiter);
}

/* Those that were on their way are placed, of a lock whose numbers last. */
static void test_not_held_back(void **state)
{
	struct world *world = *state;
	struct file holder, waiter;

	file_open_and_lock(&holder, &world->two, SH);
	file_open(&waiter, &world->one, "a");
	disconnect(&world->one);
	settle(world);
	file_lock(&waiter, SH, WAIT);
	settle(world);
	restore(&waiter, "a", kill_daemon(&waiter));
	settle(world);
	pass(world, 10);
	assert_holds(&waiter);
	assert_holds(&holder);
	file_close(&waiter);
	file_close(&holder);
}

/* What a process has heard of an end that nobody announced, the next one goes by. */
static void test_ended_unasked(void **state)
{
	enum { HEARD_MS = TIMEOUT_MS / 8 + TIMEOUT_MS / 40 };
	struct world *world = *state;
	struct file holder, waiter;
	char *text;

	file_open_and_lock(&holder, &world->two, EX);
	settle(world);
	file_open_and_lock(&waiter, &world->one, EX);
	settle(world);
	foreign_withdraw(world, "a", 0);
	settle(world);
	text = kill_daemon(&waiter);
	pass(world, HEARD_MS / 2);
	restore(&waiter, "a", text);
	pass(world, HEARD_MS - HEARD_MS / 2 - 1);
	assert_waits(&waiter);
	pass(world, 1);
	assert_holds(&waiter);
	file_close(&waiter);
	file_close(&holder);
}

/* The time for which a lock may be held goes on, and that for which it rests. */
static void test_terms_go_on(void **state)
{
	enum { HALF_MS = 700 };
	struct world *world = *state;
	struct file file, rival;
	char *text;

	world->policy.max_hold_ms = 2 * HALF_MS;
	file_take(&file, &world->one);
	pass(world, HALF_MS);
	text = kill_daemon(&file);
	restore(&file, "a", text);
	pass(world, HALF_MS - 1);
	assert_holds(&file);
	pass(world, 1);
	assert_int_equal(file.lost, 1);
	file_close(&file);
	settle(world);

	world->policy.max_hold_ms = 0;
	world->policy.min_hold_ms = 2 * HALF_MS;
	file_take(&file, &world->one);
	text = kill_daemon(&file);
	restore(&file, "a", text);
	settle(world);
	assert_holds(&file);
	file_unlock(&file);
	pass(world, HALF_MS);
	text = kill_daemon(&file);
	restore(&file, "a", text);
	file_open_and_lock(&rival, &world->two, EX);
	pass(world, HALF_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&file);
	file_close(&rival);
	pass(world, 2 * HALF_MS);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* What a caller has said of the times before it asks for the lock. */
static void test_own_terms_stay(void **state)
{
	enum { LEAST_MS = 700, MOST_MS = 300 };
	struct world *world = *state;
	struct file file, rival;
	char *text;

	file_open(&file, &world->one, "a");
	engine_set_term(file.owner, LEAST_MS, MOST_MS);
	text = kill_daemon(&file);
	restore(&file, "a", text);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_holds(&file);
	text = kill_daemon(&file);
	restore(&file, "a", text);
	pass(world, MOST_MS);
	assert_int_equal(file.lost, 1);
	file_open_and_lock(&rival, &world->two, EX);
	pass(world, LEAST_MS - MOST_MS - 1);
	assert_waits(&rival);
	pass(world, 1);
	assert_holds(&rival);
	file_close(&file);
	file_close(&rival);
	settle(world);
}

static void on_ask(void *context, const char *path, const char *rival, const char *peer,
		   const char *claim)
{
}

static void on_tell(void *context, const char *path, const struct engine_peer *asker,
		    const char *claim, const char *const *names, size_t count)
{
	++*(int *)((struct host *)context)->world->context;
}

/* What was told to be released leaves for the same heir, which somebody has taken away meanwhile,
 * and whose host may believe in it (books/bequest.h). */
static void test_leaves_for_the_same_heir(void **state)
{
	struct world *world = *state;
	struct engine_peer asker = {{0}};
	struct file holder, heir;
	int told = 0;

	world->context = &told;
	file_open_and_lock(&holder, &world->one, EX);
	file_open_and_lock(&heir, &world->two, EX);
	assert_int_equal(queue_length(world, "a"), 2);
	engine_peer_asked(world->one.engine, "a", world->names[0], world->names[1], &asker);
	file_unlock(&holder);
	assert_int_equal(told, 1);
	store_faulty_break(world->one.store, 0, 0, 0);
	char *text = kill_daemon(&holder);
	foreign_withdraw(world, "a", 1);
	restore(&holder, "a", text);
	settle_alone(&world->one);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&heir);
	pass(world, 2 * TIMEOUT_MS);
	assert_int_equal(queue_length(world, "a"), 0);
	file_close(&holder);
}

static struct engine_events peer_events;

static int setup_peers(void **state)
{
	peer_events = file_events;
	peer_events.on_ask = on_ask;
	peer_events.on_tell = on_tell;
	fixture_events = &peer_events;
	return world_setup(state);
}

static int teardown_peers(void **state)
{
	fixture_events = &file_events;
	return world_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ended_unasked, world_setup_etcd,
						world_teardown),
		TEST(says_waits_until_it_was_taken_back),
		TEST(held_back),
		TEST(not_held_back),
		TEST(terms_go_on),
		TEST(own_terms_stay),
		cmocka_unit_test_setup_teardown(test_leaves_for_the_same_heir, setup_peers,
						teardown_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
