/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises about the lease on its session (stores/zookeeper/lease.h): when it
 * proves that the session lives, what it gives up when it cannot, and what it does not grant until
 * it can again.
 */
#include "../../told.h"
#include "fixture.h"

enum { BEAT_MS = TIMEOUT_MS / 8, LEASE_MS = TIMEOUT_MS * 6 / 10 };
enum { WINDOW_MS = TIMEOUT_MS * 3 / 10, TOUCH_MS = (TIMEOUT_MS + 5) / 6 };
/* The first request after a quarter of the timeout comes so much later. */
enum { ECHO_MS = (TIMEOUT_MS + 23) / 24 };

static void test_beats_while_something_is_held(void **state)
{
	struct world *world = *state;
	struct file file;
	long operations;

	pass(world, 6 * TOUCH_MS);
	assert_int_equal(world->one.operations, 0);
	/* But for a touch from time to time, which is not counted here. */
	assert_int_equal(engine_deadline(world->one.engine), world->now_ms + TOUCH_MS);
	file_open(&file, &world->one, "a");
	pass(world, TIMEOUT_MS);
	assert_int_equal(world->one.operations, 0); /* an open file is no lock */
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_holds(&file);
	assert_int_equal(world->one.operations, 1); /* the place, which is as good as a beat */
	pass(world, BEAT_MS - 1);
	assert_int_equal(world->one.operations, 1);
	pass(world, 1);
	assert_int_equal(world->one.operations, 3); /* and it watches its own claim */
	pass(world, 10 * TIMEOUT_MS);
	assert_int_equal(world->one.operations, 3 + 80);
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	file_unlock(&file);
	settle(world);
	operations = world->one.operations;
	pass(world, TIMEOUT_MS);
	assert_int_equal(world->one.operations, operations);
	file_close(&file);
}

static void test_beats_while_somebody_waits(void **state)
{
	struct world *world = *state;
	struct file file;
	long operations;

	foreign_place(world, "a", EX);
	file_open_and_lock(&file, &world->one, EX);
	operations = world->one.operations;
	pass(world, TIMEOUT_MS);
	assert_int_equal(world->one.operations, operations + 8);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&file); /* at once, nothing has to be proven first */
	assert_int_equal(world->one.operations, operations + 8);
	file_close(&file);
}

/* Whoever locks all the time sends heartbeats, too: they show that the other claims stand. */
static void test_beats_among_writes(void **state)
{
	struct world *world = *state;
	struct file held, busy;
	int64_t start_ms;
	long writes = 0, beats;

	file_open(&held, &world->one, "b");
	file_lock(&held, EX, WAIT);
	settle(world);
	world->one.operations = 0;
	start_ms = world->now_ms;
	file_open(&busy, &world->one, "a");
	for (int i = 0; i < 50; i++) {
		file_lock(&busy, EX, WAIT);
		pass(world, BEAT_MS / 2);
		assert_holds(&busy);
		file_unlock(&busy);
		pass(world, BEAT_MS - 1);
		writes += 2;
	}
	beats = (long)((world->now_ms - start_ms) / BEAT_MS);
	assert_true(world->one.operations >= writes + beats);
	/* Claims that are held just then are watched, too. */
	assert_true(world->one.operations <= writes + 2 * beats + 1);
	assert_holds(&held);
	file_close(&busy);
	file_close(&held);
}

/* The lease ends without an answer: holders are fenced then, not when the store tells. */
static void test_fenced_at_the_end_of_the_lease(void **state)
{
	struct world *world = *state;
	const struct engine_caller nobody = {0};
	struct file holder, twin, other;
	struct wish *wish;

	for (int cut_off = 0; cut_off < 2; cut_off++) {
		file_open(&holder, &world->one, "a");
		file_open(&twin, &world->one, "b");
		file_open(&other, &world->two, "a");
		file_lock(&holder, EX, WAIT);
		file_lock_by_open(&twin, WAIT);
		settle(world);
		file_lock(&other, EX, WAIT);
		if (cut_off == 1)
			store_faulty_cut_off(world->one.store);
		else
			disconnect(&world->one);
		pass(world, lease_ms(&world->one) - 1);
		assert_holds(&holder);
		assert_holds(&twin);
		assert_waits(&other);
		pass(world, 1);
		assert_int_equal(holder.lost, 1);
		assert_int_equal(twin.lost, 1);
		assert_idle(&holder);
		assert_waits(&other); /* nobody may have it sooner */
		assert_int_equal(engine_lock(holder.owner, LOCK_KIND_FLOCK, EX, WAIT, &nobody,
					     &holder, &wish),
				 -EIO);
		assert_int_equal(engine_unlock(holder.owner), -EIO);
		pass(world, TIMEOUT_MS);
		assert_holds(&other);
		reconnect(&world->one);
		assert_int_equal(holder.lost + twin.lost, 2);
		file_close(&holder);
		file_close(&twin);
		file_close(&other);
		pass(world, TIMEOUT_MS);
	}
}

/* The answer is long on its way: what counts is when the question was sent. */
static void test_lease_counts_from_the_sending(void **state)
{
	struct world *world = *state;
	struct file holder;

	file_open(&holder, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	pass(world, 2 * TIMEOUT_MS);
	/* From the heartbeat of just now, and the touches before it. */
	assert_in_range(lease_ms(&world->one), LEASE_MS, LEASE_MS + BEAT_MS);
	/* The next ones are answered, but that is not read, */
	store_faulty_pause(world->one.store, true);
	pass(world, BEAT_MS + 1000);
	store_faulty_pause(world->one.store, false);
	while (store_faulty_step(world->one.store)) /* is now */
		;
	assert_int_equal(lease_ms(&world->one), LEASE_MS - 1000);
	disconnect(&world->one);
	pass(world, LEASE_MS - 1000 - 1);
	assert_holds(&holder);
	pass(world, 1);
	assert_int_equal(holder.lost, 1);
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	file_close(&holder);
}

/* A server that is cut off tells that a claim in front is gone: a grant while the lease holds, but
 * no proof that the session lives. */
static void test_reads_prove_nothing(void **state)
{
	struct world *world = *state;
	struct file holder, waiter;
	int64_t left_ms;

	foreign_place(world, "a", EX);
	file_open(&holder, &world->one, "b");
	file_open(&waiter, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	file_lock(&waiter, EX, WAIT);
	settle(world);
	store_faulty_cut_off(world->one.store);
	left_ms = lease_ms(&world->one);
	pass(world, 1000);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&waiter);
	assert_int_equal(lease_ms(&world->one), left_ms - 1000);
	pass(world, left_ms - 1000 - 1);
	assert_int_equal(holder.lost + waiter.lost, 0);
	pass(world, 1);
	assert_int_equal(holder.lost + waiter.lost, 2);
	reconnect(&world->one);
	file_close(&holder);
	file_close(&waiter);
}

/* Who waited when the lease ended waits again, in the same order. */
static void test_waiters_queue_anew_in_order(void **state)
{
	struct world *world = *state;
	struct file holder, waiters[4];

	file_open_and_lock(&holder, &world->one, EX);
	for (int i = 0; i < 4; i++) {
		file_open(&waiters[i], &world->one, "a");
		file_lock(&waiters[i], EX, WAIT);
		if (i < 3) /* the last one is asked for, but not placed */
			settle(world);
	}
	disconnect(&world->one);
	pass(world, lease_ms(&world->one));
	assert_int_equal(holder.lost, 1);
	for (int i = 0; i < 4; i++)
		assert_waits(&waiters[i]);
	reconnect(&world->one);
	/* What the old session placed is somebody else's now, until the service ends it. */
	for (int i = 0; i < 4; i++)
		assert_waits(&waiters[i]);
	file_close(&holder);
	pass(world, TIMEOUT_MS);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waiters[i].lost, 0);
		assert_holds(&waiters[i]);
		assert_int_equal(queue_length(world, "a"), 4 - i);
		file_close(&waiters[i]);
		settle(world);
	}
}

static void test_back_before_the_end_changes_nothing(void **state)
{
	struct world *world = *state;
	struct file holder, waiter;

	file_open(&holder, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	file_lock(&waiter, EX, WAIT);
	settle(world);
	pass(world, 2 * TIMEOUT_MS);
	for (int i = 0; i < 10; i++) {
		disconnect(&world->one);
		pass(world, lease_ms(&world->one) - 1);
		assert_holds(&holder);
		reconnect(&world->one); /* and proves at once that it lives */
		assert_int_equal(queue_length(world, "a"), 2);
	}
	pass(world, TIMEOUT_MS);
	for (int i = 0; i < 10; i++) {
		store_faulty_cut_off(world->one.store);
		pass(world, lease_ms(&world->one) - TIMEOUT_MS / 20 - 1);
		assert_holds(&holder);
		store_faulty_heal(world->one.store); /* and a twentieth later it is proven, */
		pass(world, TIMEOUT_MS); /* and that the leader has heard of later signs */
	}
	assert_holds(&holder);
	assert_waits(&waiter);
	assert_int_equal(holder.lost, 0);
	file_close(&holder);
	settle(world); /* the first list of this connection shows that its claim stands */
	assert_holds(&waiter);
	file_close(&waiter);
}

/* The connection looks well and tells that the claim in front is gone, but the lease has ended. */
static void test_nothing_is_granted_unproven(void **state)
{
	struct world *world = *state;
	struct file waiter;

	foreign_place(world, "a", EX);
	file_open_and_lock(&waiter, &world->one, EX);
	store_faulty_pause(world->one.store, true); /* the service hears nothing */
	world->now_ms += lease_ms(&world->one);
	store_faulty_pause(world->one.store, false); /* in time */
	store_faulty_cut_off(world->one.store);
	foreign_withdraw(world, "a", 0);
	settle(world);
	pass(world, 10);
	assert_waits(&waiter);
	assert_int_equal(queue_length(world, "a"), 1);
	store_faulty_heal(world->one.store);
	settle(world);
	assert_waits(&waiter); /* one answer is a sign that no other has proven yet */
	pass(world, WINDOW_MS + ECHO_MS);
	assert_holds(&waiter);
	file_close(&waiter);
}

/* The same for a host that only reconnects: the heartbeat comes before the grant. */
static void test_nothing_is_granted_on_a_connection_alone(void **state)
{
	struct world *world = *state;
	struct file waiter;

	foreign_place(world, "a", EX);
	file_open_and_lock(&waiter, &world->one, EX);
	world->now_ms += lease_ms(&world->one);
	foreign_withdraw(world, "a", 0);
	engine_advance(world->one.engine, world->now_ms);
	assert_int_equal(store_faulty_under_way(world->one.store), 1);
	store_faulty_due(world->one.store);
	while (store_faulty_under_way(world->one.store) > 0) {
		assert_waits(&waiter);
		store_faulty_step(world->one.store);
	}
	settle(world);
	assert_waits(&waiter);
	pass(world, WINDOW_MS - 1);
	assert_waits(&waiter);
	pass(world, 1 + ECHO_MS);
	assert_holds(&waiter);
	file_close(&waiter);
}

/* The host was stopped for long. What was true then is not any more, and the first thing that it
 * does is to see that. */
static void test_wakes_up_too_late(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, other;

	file_open(&holder, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_lock(&holder, EX, WAIT);
	file_lock(&waiter, EX, WAIT);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	store_faulty_pause(world->one.store, true);
	world->now_ms += 10 * TIMEOUT_MS;
	engine_advance(world->one.engine, world->now_ms);
	assert_int_equal(holder.lost, 1);
	assert_idle(&holder);
	assert_waits(&waiter);
	store_faulty_pause(world->one.store, false);
	settle(world);
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_holds(&other);
	assert_waits(&waiter);
	file_close(&holder);
	file_close(&other);
	settle(world);
	assert_holds(&waiter);
	file_close(&waiter);
}

/* The server does not answer, but another one does: in time for the lease. */
static void test_turns_to_another_server(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_open_and_lock(&file, &world->one, EX);
	file_open(&rival, &world->two, "a");
	file_lock(&rival, EX, WAIT);
	pass(world, TIMEOUT_MS);
	for (int i = 0; i < 20; i++) {
		store_faulty_cut_off(world->one.store);
		pass(world, i * BEAT_MS / 4);
	}
	pass(world, TIMEOUT_MS);
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	assert_waits(&rival);
	file_close(&file);
	settle(world);
	assert_holds(&rival);
	file_close(&rival);
}

static struct store_ops bent_ops;
static int nudges;

static void count_nudge(struct store *store)
{
	nudges++;
}

/* Lets time pass until the store is nudged; returns how much. */
static int64_t until_nudged(struct world *world)
{
	int64_t begin_ms = world->now_ms;
	int before = nudges;

	while (nudges == before && world->now_ms < begin_ms + TIMEOUT_MS)
		pass(world, 1);
	return world->now_ms - begin_ms;
}

/* The way that it turns to may be as bad: it turns to the next one soon, and later in no hurry. */
static void test_turns_again_soon(void **state)
{
	enum { QUARTER_MS = TIMEOUT_MS / 4 + TIMEOUT_MS / 40 };
	enum { SOON_MS = TIMEOUT_MS / 16 + TIMEOUT_MS / 40 };
	struct world *world = *state;
	const struct store_ops *ops = world->one.store->ops;
	struct file file;

	foreign_place(world, "a", EX);
	file_open_and_lock(&file, &world->one, EX);
	bent_ops = *ops;
	bent_ops.nudge = count_nudge;
	world->one.store->ops = &bent_ops;
	for (int round = 0; round < 2; round++) {
		pass(world, BEAT_MS - 1);
		store_faulty_cut_off(world->one.store);
		pass(world, 1);
		until_nudged(world);
		disconnect(&world->one); /* as the nudge would */
		/* Later the heartbeat that waited for the connection counts as a round trip. */
		assert_in_range(until_nudged(world), SOON_MS, round == 0 ? SOON_MS : QUARTER_MS);
		assert_int_equal(until_nudged(world), QUARTER_MS);
		reconnect(&world->one);
		assert_waits(&file);
		/* A connection that breaks by itself is waited for longer. */
		disconnect(&world->one);
		assert_int_equal(until_nudged(world), QUARTER_MS);
		assert_int_equal(until_nudged(world), QUARTER_MS);
		reconnect(&world->one);
	}
	world->one.store->ops = ops;
	foreign_withdraw(world, "a", 0);
	pass(world, WINDOW_MS);
	assert_holds(&file);
	file_close(&file);
}

/* Each answer takes as long as a lease allows; to turn to anybody else would lose it. */
static void test_slow_answers_are_waited_for(void **state)
{
	enum { TRIP_MS = TIMEOUT_MS * 17 / 100 };
	struct world *world = *state;
	const struct store_ops *ops = world->one.store->ops;
	struct file file;

	file_open_and_lock(&file, &world->one, EX);
	bent_ops = *ops;
	bent_ops.nudge = count_nudge;
	world->one.store->ops = &bent_ops;
	nudges = 0;
	for (int i = 0; i < 100; i++) {
		store_faulty_cut_off(world->one.store);
		pass(world, TRIP_MS);
		assert_holds(&file);
		store_faulty_heal(world->one.store);
		while (store_faulty_step(world->one.store))
			;
		if (i == 2) /* so long it takes until that is known */
			nudges = 0;
	}
	assert_int_equal(nudges, 0);
	world->one.store->ops = ops;
	file_close(&file);
}

/* Who was stopped looks for the answers of that time before it turns to anybody else. */
static void test_stopped_is_not_silent(void **state)
{
	struct world *world = *state;
	struct file file;

	file_open(&file, &world->one, "a");
	file_lock(&file, EX, WAIT);
	pass(world, 3 * BEAT_MS);
	world->one.operations = 0;
	for (int i = 0; i < 10; i++) {
		world->now_ms += TIMEOUT_MS * 5 / 16;
		settle(world);
		assert_int_equal(world->one.operations, i + 1); /* the heartbeat, and none again */
	}
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	file_close(&file);
}

/* A session without a connection is the store's to judge: it may outlive an election. */
static void test_keeps_a_session(void **state)
{
	struct world *world = *state;
	struct file holder, waiter;

	file_open_and_lock(&holder, &world->two, EX);
	file_open_and_lock(&waiter, &world->one, EX);
	disconnect(&world->one);
	pass(world, 5 * TIMEOUT_MS);
	assert_int_equal(engine_status(world->one.engine).sessions_lost, 0);
	assert_int_equal(queue_length(world, "a"), 1); /* the service has ended it long ago */
	reconnect(&world->one);
	assert_int_equal(engine_status(world->one.engine).sessions_lost, 1);
	assert_int_equal(queue_length(world, "a"), 2);
	file_unlock(&holder);
	settle(world);
	assert_holds(&waiter);
	file_close(&waiter);
	file_close(&holder);
}

/* After any time without a lock the first one is granted at once, and its lease is long enough for
 * heartbeats to renew it. */
static void test_first_lock_after_idle_time(void **state)
{
	struct world *world = *state;
	struct file file;

	for (int i = 0; i < 50; i++) {
		pass(world, 10 * TIMEOUT_MS + i * 37);
		file_take(&file, &world->one);
		assert_true(lease_ms(&world->one) >= TIMEOUT_MS * 4 / 10);
		pass(world, i % 2 == 0 ? 0 : 2 * TIMEOUT_MS);
		assert_int_equal(file.lost, 0);
		file_close(&file);
	}
}

/* The host stood still, for less than the session lives. What it knows of its session is older than
 * that: the first lock waits until more is proven, and is not lost then. */
static void test_first_lock_after_a_stop(void **state)
{
	struct world *world = *state;
	struct file file;

	for (int64_t stop_ms = 0; stop_ms < 3 * TIMEOUT_MS; stop_ms += 97) {
		int64_t begin_ms;

		pass(world, 2 * TIMEOUT_MS + 3);
		store_faulty_pause(world->one.store, true);
		world->now_ms += stop_ms;
		store_faulty_pause(world->one.store, false);
		file_open(&file, &world->one, "a");
		file_lock(&file, EX, WAIT);
		begin_ms = world->now_ms;
		settle(world);
		while (!file_holds(&file) && world->now_ms < begin_ms + TIMEOUT_MS) {
			if (!store_faulty_is_connected(world->one.store))
				reconnect(&world->one);
			pass(world, 1);
		}
		assert_holds(&file);
		assert_true(world->now_ms - begin_ms <= WINDOW_MS + ECHO_MS + 1);
		if (stop_ms < TIMEOUT_MS / 8)
			assert_int_equal(world->now_ms, begin_ms);
		pass(world, 2 * TIMEOUT_MS);
		assert_int_equal(file.lost, 0);
		file_close(&file);
	}
}

/* A store whose sessions do not end by themselves has no use for heartbeats. */
static void test_store_without_timeout(void **state)
{
	struct world *world = *state;
	struct lock_policy policy = world->policy;
	struct host local = {.world = world};
	struct file file;

	local.engine = engine_create(&file_events, &local, 3003);
	assert_non_null(local.engine);
	assert_int_equal(
		store_local_open(world->service, &engine_store_events, local.engine, &local.store),
		0);
	engine_set_store(local.engine, local.store);
	local.store->ops->dispatch(local.store);
	memset(&file, 0, sizeof(file));
	file.host = &local;
	file.owner = engine_owner_open(local.engine, "a", &policy, &file);
	file_lock(&file, EX, WAIT);
	local.store->ops->dispatch(local.store);
	assert_holds(&file);
	assert_int_equal(engine_deadline(local.engine), INT64_MAX);
	engine_advance(local.engine, INT64_MAX / 2);
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	engine_owner_close(file.owner);
	local.store->ops->dispatch(local.store);
	engine_destroy(local.engine);
	local.store->ops->close(local.store, nobody_is_told());
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(beats_while_something_is_held),
		TEST(beats_while_somebody_waits),
		TEST(beats_among_writes),
		TEST(fenced_at_the_end_of_the_lease),
		TEST(lease_counts_from_the_sending),
		TEST(reads_prove_nothing),
		TEST(waiters_queue_anew_in_order),
		TEST(back_before_the_end_changes_nothing),
		TEST(nothing_is_granted_unproven),
		TEST(nothing_is_granted_on_a_connection_alone),
		TEST(wakes_up_too_late),
		TEST(keeps_a_session),
		TEST(first_lock_after_idle_time),
		TEST(first_lock_after_a_stop),
		TEST(store_without_timeout),
		TEST(turns_again_soon),
		TEST(slow_answers_are_waited_for),
		cmocka_unit_test_setup_teardown(test_turns_to_another_server,
						world_setup_with_servers, world_teardown),
		cmocka_unit_test_setup_teardown(test_stopped_is_not_silent,
						world_setup_with_servers, world_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
