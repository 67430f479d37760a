/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises where the clock may have stood still (engine_doubt()): nothing new is
 * told before the session is proved anew, and nothing is lost by the doubt alone.
 */
#include "fixture.h"

enum { WINDOW_MS = TIMEOUT_MS * 3 / 10, BEAT_MS = TIMEOUT_MS / 8 };

static void doubt(struct host *host)
{
	assert_true(engine_doubt(host->engine, host_clock(host)));
}

/* One holds, the other waits behind a client that goes when it is told to. */
struct scene {
	struct file holder, waiter;
};

static void begin(struct world *world, struct scene *scene)
{
	foreign_place(world, "a", EX);
	file_open(&scene->holder, &world->one, "b");
	file_open(&scene->waiter, &world->one, "a");
	file_lock(&scene->holder, EX, WAIT);
	file_lock(&scene->waiter, EX, WAIT);
	pass(world, 2 * TIMEOUT_MS);
	assert_holds(&scene->holder);
	assert_waits(&scene->waiter);
}

static void end(struct scene *scene)
{
	file_close(&scene->waiter);
	file_close(&scene->holder);
}

/* A clock that was set, and nothing else: a delay, at the end of which it is told. */
static void test_granted_when_proved(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	doubt(&world->one);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_waits(&scene.waiter);
	pass(world, WINDOW_MS);
	assert_waits(&scene.waiter);
	pass(world, 1);
	assert_holds(&scene.waiter);
	assert_int_equal(scene.holder.lost, 0);
	end(&scene);
}

/* The store is asked at once, whenever the last heartbeat was. */
static void test_asks_at_once(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	for (int i = 0; i < BEAT_MS; i += 50) {
		pass(world, 2 * WINDOW_MS + i);
		world->one.operations = 0;
		doubt(&world->one);
		settle(world);
		assert_int_equal(world->one.operations,
				 0); /* it could not be told from earlier ones */
		pass(world, 1);
		assert_int_equal(world->one.operations, 1);
	}
	foreign_withdraw(world, "a", 0);
	pass(world, WINDOW_MS);
	end(&scene);
}

/* What was sent before the doubt is answered after it. */
static void test_earlier_proof_does_not_count(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	foreign_withdraw(world, "a", 0);
	store_faulty_pause(world->one.store, true); /* it does not hear of that yet */
	pass(world, BEAT_MS);
	assert_waits(&scene.waiter);
	doubt(&world->one);
	store_faulty_pause(world->one.store, false);
	settle(world);
	assert_waits(&scene.waiter);
	pass(world, WINDOW_MS);
	assert_waits(&scene.waiter);
	pass(world, BEAT_MS);
	assert_holds(&scene.waiter);
	end(&scene);
}

static void test_doubt_in_doubt(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	foreign_withdraw(world, "a", 0);
	for (int i = 0; i < 5; i++) {
		doubt(&world->one);
		pass(world, WINDOW_MS);
		assert_waits(&scene.waiter);
	}
	pass(world, 1);
	assert_holds(&scene.waiter);
	assert_int_equal(scene.holder.lost, 0);
	end(&scene);
}

/* However often the clock is set, and whenever: nobody loses what is held. */
static void test_nothing_is_lost_by_it(void **state)
{
	for (int64_t every_ms = 1; every_ms < TIMEOUT_MS; every_ms = every_ms * 5 / 4 + 1) {
		struct world *world = *state;
		struct file file;

		file_open(&file, &world->one, "a");
		pass(world, every_ms);
		file_lock(&file, EX, WAIT);
		pass(world, TIMEOUT_MS / 2); /* the lease of a first lock is short */
		assert_holds(&file);
		for (int i = 0; i * every_ms < 2 * TIMEOUT_MS; i++) {
			doubt(&world->one);
			pass(world, every_ms);
			assert_holds(&file);
		}
		assert_int_equal(file.lost, 0);
		file_close(&file);
		pass(world, 2 * WINDOW_MS);
	}
}

/* Syncs in idle time dispel it, so that a first lock later on is granted at once; one before that
 * waits for the rest. */
static void test_idle(void **state)
{
	enum { TOUCH_MS = (TIMEOUT_MS + 5) / 6, LATEST_MS = 2 * TOUCH_MS + TIMEOUT_MS / 20 + 1 };
	struct world *world = *state;
	struct file file;

	for (int64_t ms = 0; ms < 2 * LATEST_MS; ms += WINDOW_MS / 4) {
		int64_t begin_ms;

		doubt(&world->one);
		begin_ms = world->now_ms;
		pass(world, ms);
		file_open_and_lock(&file, &world->one, EX);
		if (ms < WINDOW_MS) {
			pass(world, begin_ms + WINDOW_MS - world->now_ms);
			assert_waits(&file);
		}
		if (begin_ms + LATEST_MS > world->now_ms)
			pass(world, begin_ms + LATEST_MS - world->now_ms);
		assert_holds(&file);
		file_close(&file);
		pass(world, TIMEOUT_MS);
	}
}

static void test_without_connection(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	foreign_withdraw(world, "a", 0);
	disconnect(&world->one);
	doubt(&world->one);
	pass(world, BEAT_MS);
	assert_holds(&scene.holder);
	assert_waits(&scene.waiter);
	reconnect(&world->one); /* which is a sign, and the first write proves it */
	assert_holds(&scene.waiter);
	assert_int_equal(scene.holder.lost, 0);
	end(&scene);
}

/* A session that is made after the doubt has nothing to do with it; but one that was made when
 * nothing was known of it yet has. */
static void test_next_session(void **state)
{
	struct world *world = *state;
	struct scene scene;

	begin(world, &scene);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&scene.waiter);
	disconnect(&world->one);
	doubt(&world->one);
	pass(world, lease_ms(&world->one));
	assert_int_equal(scene.holder.lost + scene.waiter.lost, 2);
	end(&scene);
	reconnect(&world->one);
	pass(world, 2 * TIMEOUT_MS);
	file_open(&scene.waiter, &world->one, "a");
	file_lock(&scene.waiter, EX, WAIT);
	settle(world);
	assert_holds(&scene.waiter);
	file_close(&scene.waiter);
}

/* fsync(2) and tokens: asked again, if they had been asked before. */
static void test_proofs_are_sent_again(void **state)
{
	struct world *world = *state;
	struct file file;
	uint64_t token;

	file_open_and_lock(&file, &world->one, EX);
	for (int with_token = 0; with_token < 2; with_token++) {
		world->one.operations = 0;
		file_prove(&file, with_token == 1);
		assert_int_equal(world->one.operations, 1);
		store_faulty_pause(world->one.store, true);
		settle(world); /* it is answered, and that is not read */
		doubt(&world->one);
		store_faulty_pause(world->one.store, false);
		store_faulty_due(world->one.store);
		store_faulty_step(world->one.store);
		assert_waits(&file);
		assert_int_equal(world->one.operations, 2);
		settle(world);
		assert_granted(&file);
	}
	token = file.token;
	doubt(&world->one);
	file_prove(&file, true); /* asked after it: one round trip */
	settle(world);
	assert_granted(&file);
	assert_int_equal(file.token, token);
	file_close(&file);
}

/* Virtual machines whose clocks stood still. The session is over, but the lease seems to hold; the
 * news that the claim in front is gone came before the end. */
static void pause_until_over(struct world *world, struct scene *scene, struct file *rival)
{
	begin(world, scene);
	machine_pause(&world->one);
	foreign_withdraw(world, "a", 0);
	file_open(rival, &world->two, "a");
	file_lock(rival, EX, WAIT);
	pass(world, 2 * TIMEOUT_MS);
	assert_holds(rival);
	machine_resume(&world->one);
	assert_true(lease_ms(&world->one) > 0);
}

static void test_session_is_over(void **state)
{
	struct world *world = *state;
	struct scene scene;
	struct file rival;

	pause_until_over(world, &scene, &rival);
	doubt(&world->one);
	settle(world);
	assert_waits(&scene.waiter);
	reconnect(&world->one);
	pass(world, BEAT_MS);
	assert_int_equal(scene.holder.lost, 1); /* as soon as it is known */
	assert_waits(&scene.waiter);
	file_close(&rival);
	pass(world, TIMEOUT_MS);
	assert_holds(&scene.waiter); /* queued anew */
	end(&scene);
}

/* That the check above finds a grant: this is what happens where nobody tells of the pause. */
static void test_nobody_tells(void **state)
{
	struct world *world = *state;
	struct scene scene;
	struct file rival;

	pause_until_over(world, &scene, &rival);
	settle(world);
	assert_holds(&scene.waiter);
	assert_holds(&rival);
	reconnect(&world->one);
	pass(world, BEAT_MS);
	assert_int_equal(scene.holder.lost + scene.waiter.lost, 2);
	file_close(&rival);
	end(&scene);
}

/* The session lives when the machine goes on, but not for long: its server is lost before it has
 * told the leader. One write that the quorum acknowledges is not enough. */
static void test_session_ends_soon_after(void **state)
{
	struct world *world = *state;
	struct scene scene;
	int64_t end_ms;

	begin(world, &scene);
	foreign_withdraw(world, "a", 0);
	store_faulty_pause(world->one.store, true);
	end_ms = store_faulty_soonest_end_ms(world->one.store);
	machine_pause(&world->one);
	world->now_ms = end_ms - 10;
	machine_resume(&world->one);
	doubt(&world->one);
	pass(world, 10);
	assert_true(lease_ms(&world->one) > BEAT_MS);
	assert_waits(&scene.waiter);
	store_faulty_expire(world->one.store);
	settle(world);
	assert_waits(&scene.waiter);
	reconnect(&world->one);
	pass(world, TIMEOUT_MS);
	assert_int_equal(scene.holder.lost, 1);
	assert_holds(&scene.waiter);
	end(&scene);
}

/* Each host by itself. */
static void test_others_do_not_mind(void **state)
{
	struct world *world = *state;
	struct scene scene;
	struct file file;

	begin(world, &scene);
	doubt(&world->one);
	file_open(&file, &world->two, "c");
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_holds(&file);
	foreign_withdraw(world, "a", 0);
	pass(world, WINDOW_MS + 1);
	file_close(&file);
	end(&scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(granted_when_proved),
		TEST(asks_at_once),
		TEST(earlier_proof_does_not_count),
		TEST(doubt_in_doubt),
		TEST(nothing_is_lost_by_it),
		TEST(idle),
		TEST(without_connection),
		TEST(next_session),
		TEST(proofs_are_sent_again),
		TEST(session_is_over),
		TEST(nobody_tells),
		TEST(session_ends_soon_after),
		TEST(others_do_not_mind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
