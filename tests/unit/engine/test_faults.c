/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises when connections break and sessions end, and when claims are taken away
 * behind its back: first single situations, then a loss of the connection at each operation of a
 * scenario.
 */
#include <stdio.h>

#include "fixture.h"

/* A claim whose place() was answered ambiguously is found, or placed once more. */
static void test_ambiguous_place(void **state)
{
	struct world *world = *state;

	for (size_t happened = 0; happened < 2; happened++) {
		struct file file;

		file_open(&file, &world->one, "a");
		file_lock(&file, EX, WAIT);
		assert_int_equal(store_faulty_under_way(world->one.store), 1);
		store_faulty_break(world->one.store, happened, 0, 0);
		settle(world);
		assert_waits(&file);
		assert_int_equal(queue_length(world, "a"), happened);
		reconnect(&world->one);
		assert_holds(&file);
		assert_int_equal(queue_length(world, "a"), 1);
		file_close(&file);
		settle(world);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

/* The same, and meanwhile nobody wants it any more. */
static void test_ambiguous_place_abandoned(void **state)
{
	struct world *world = *state;

	for (size_t happened = 0; happened < 2; happened++) {
		struct file file;

		file_open(&file, &world->one, "a");
		file_lock(&file, EX, WAIT);
		store_faulty_break(world->one.store, happened, 0, 0);
		settle(world);
		file_close(&file);
		reconnect(&world->one);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

/* It happens as late as it can: after the client has noticed the break. */
static void test_late_place(void **state)
{
	struct world *world = *state;
	struct file file, other;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_lock(&file, EX, WAIT);
	store_faulty_break(world->one.store, 1, 100, 0);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	reconnect(&world->one);
	assert_true(file_holds(&file) != file_holds(&other));
	file_close(file_holds(&file) ? &file : &other);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(file.owner != NULL ? &file : &other);
}

static void test_ambiguous_withdraw(void **state)
{
	struct world *world = *state;

	for (size_t happened = 0; happened < 2; happened++) {
		struct file file, other;

		file_open(&file, &world->one, "a");
		file_open(&other, &world->two, "a");
		file_lock(&file, EX, WAIT);
		settle(world);
		file_lock(&other, EX, WAIT);
		settle(world);
		file_close(&file);
		store_faulty_break(world->one.store, happened, 0, 0);
		settle(world);
		assert_true(file_holds(&other) == (happened == 1));
		reconnect(&world->one);
		pass(world, 1000);
		assert_holds(&other);
		file_close(&other);
		settle(world);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

/* More at once than are placed at a time, and the session is lost while some have not been placed.
 * They stand in the order in which they asked. */
static void test_many_at_once(void **state)
{
	enum { FILES = 510, PLACED_AT_A_TIME = 500 };
	static struct file files[FILES];
	struct world *world = *state;

	for (int i = 0; i < FILES; i++) {
		file_open(&files[i], &world->one, "a");
		file_lock(&files[i], EX, WAIT);
	}
	assert_int_equal(world->one.operations, PLACED_AT_A_TIME);
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
	settle(world);
	for (int i = 0; i < FILES; i++) {
		assert_true(i == FILES - 1 || file_waits(&files[i + 1]));
		assert_holds(&files[i]);
		file_close(&files[i]);
	}
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

static void test_session_lost(void **state)
{
	struct world *world = *state;
	const struct engine_caller nobody = {0};
	struct file holder, first, second, other, idle;
	struct wish *wish;

	file_open(&holder, &world->one, "a");
	file_open(&first, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_open(&second, &world->one, "a");
	file_open(&idle, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	file_lock(&first, EX, WAIT);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	file_lock(&second, EX, WAIT);
	settle(world);

	store_faulty_expire(world->one.store);
	settle(world);
	assert_holds(&other);
	assert_int_equal(holder.lost, 0); /* it cannot know yet */
	reconnect(&world->one);
	assert_int_equal(holder.lost, 1);
	assert_idle(&holder);
	assert_int_equal(engine_unlock(holder.owner), -EIO);
	assert_int_equal(
		engine_lock(holder.owner, LOCK_KIND_FLOCK, EX, WAIT, &nobody, &holder, &wish),
		-EIO);
	assert_waits(&first);
	assert_waits(&second);
	assert_int_equal(first.lost + second.lost + idle.lost, 0);

	file_close(&other);
	settle(world);
	assert_holds(&first);
	assert_waits(&second);
	file_close(&first);
	assert_holds(&second);
	file_lock(&idle, EX, TRY);
	assert_refused(&idle, -EWOULDBLOCK);
	file_close(&holder);
	file_close(&second);
	file_close(&idle);
}

/* The owner that loses its lock has another call under way. */
static void test_session_lost_while_asking(void **state)
{
	struct world *world = *state;
	struct file file, twin, other;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	memset(&twin, 0, sizeof(twin));
	twin.host = file.host;
	twin.owner = file.owner;
	file_lock(&file, SH, WAIT);
	file_lock(&other, SH, WAIT);
	settle(world);
	file_lock(&file, EX, WAIT); /* lets go of the old lock */
	settle(world);
	file_lock(&twin, SH, WAIT);
	settle(world);
	file_close(&other);
	settle(world);
	assert_true(file_holds(&file));
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
	assert_int_equal(file.decisions, 1);
	assert_int_equal(twin.decisions, 1);
	assert_int_equal(file.lost, 1);
	assert_true(!file_holds(&file));
	file_close(&file);
}

/* Calls whose place lingers when the session ends need no new place. */
static void test_session_lost_while_lingering(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_open(&holder, &world->two, "a");
	file_open(&file, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&file, EX, WAIT);
	settle(world);
	file_cancel(&file);
	store_faulty_expire(world->one.store);
	reconnect(&world->one);
	assert_int_equal(queue_length(world, "a"), 1);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 2);
	file_close(&holder);
	settle(world);
	assert_holds(&file);
	file_close(&file);
}

static void test_nothing_is_granted_while_suspended(void **state)
{
	struct world *world = *state;
	struct file holder, next, fresh;

	file_open(&holder, &world->one, "a");
	file_open(&next, &world->one, "a");
	file_open(&fresh, &world->one, "b");
	file_lock(&holder, EX, WAIT);
	file_lock(&next, EX, WAIT);
	settle(world);
	disconnect(&world->one);
	assert_holds(&holder);
	file_lock(&holder, EX, WAIT); /* it has that */
	assert_holds(&holder);
	file_lock(&fresh, EX, WAIT);
	file_close(&holder);
	pass(world, 1000);
	assert_waits(&next);
	assert_waits(&fresh);
	reconnect(&world->one);
	assert_holds(&next);
	assert_holds(&fresh);
	pass(world, 1000);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&next);
	file_close(&fresh);
}

/* A watched claim goes while nobody can tell us. */
static void test_watch_fires_while_suspended(void **state)
{
	struct world *world = *state;

	for (int confirmed = 0; confirmed < 2; confirmed++) {
		struct file holder, file;

		file_open(&holder, &world->two, "a");
		file_open(&file, &world->one, "a");
		file_lock(&holder, EX, WAIT);
		settle(world);
		file_lock(&file, EX, WAIT);
		if (confirmed == 0) {
			store_faulty_step(world->one.store); /* arrives */
			store_faulty_step(world->one.store); /* is answered, so the watch is sent */
			assert_int_equal(store_faulty_under_way(world->one.store), 2);
		} else {
			settle(world);
		}
		disconnect(&world->one);
		file_close(&holder);
		settle(world);
		assert_waits(&file);
		reconnect(&world->one);
		pass(world, 1000);
		assert_holds(&file);
		file_close(&file);
		settle(world);
	}
}

static void test_wait_limit(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, late;

	world->policy.wait_limit_ms = 1000;
	file_open(&holder, &world->two, "a");
	file_open(&waiter, &world->one, "a");
	file_open(&late, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&waiter, EX, WAIT);
	pass(world, 5000);
	assert_waits(&waiter); /* the limit is for waiting without the store */

	disconnect(&world->one);
	pass(world, 999);
	reconnect(&world->one);
	pass(world, 5000);
	assert_waits(&waiter);

	disconnect(&world->one);
	pass(world, 500);
	file_lock(&late, EX, WAIT);
	pass(world, 499);
	assert_waits(&waiter);
	pass(world, 1);
	assert_refused(&waiter, -ENOLCK);
	assert_waits(&late);
	pass(world, 500);
	assert_refused(&late, -ENOLCK);
	reconnect(&world->one);
	pass(world, 1000);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&holder);
	file_close(&waiter);
	file_close(&late);
}

static void test_try_limit(void **state)
{
	struct world *world = *state;
	struct file file;

	file_open(&file, &world->one, "a");
	disconnect(&world->one);
	file_lock(&file, EX, TRY);
	pass(world, TRY_LIMIT_MS - 1);
	assert_waits(&file);
	pass(world, 1);
	assert_refused(&file, -ENOLCK);
	reconnect(&world->one);
	file_lock(&file, EX, TRY);
	settle(world);
	assert_holds(&file);
	file_close(&file);
}

/* The operator, or another client, deletes our claims. That shows in the next list. */
static void test_claims_taken_away(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, other, looker;

	file_open(&holder, &world->one, "a");
	file_open(&waiter, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_open(&looker, &world->one, "a");
	file_lock(&holder, SH, WAIT);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	file_lock(&waiter, SH, WAIT);
	settle(world);
	foreign_withdraw(world, "a", 2);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&other);
	/* Something has to make the engine look: a call that does not wait. */
	file_lock(&looker, SH, TRY);
	settle(world);
	assert_refused(&looker, -EWOULDBLOCK);
	assert_int_equal(holder.lost, 1);
	assert_idle(&holder);
	assert_waits(&waiter);
	assert_int_equal(waiter.lost + looker.lost + other.lost, 0);
	file_close(&other);
	settle(world);
	assert_holds(&waiter);
	file_close(&holder);
	file_close(&waiter);
	file_close(&looker);
}

enum { FILES = 5 };

static bool counts(const struct file *file)
{
	return file->owner != NULL && file_holds(file) &&
	       !store_faulty_is_expired(file->host->store);
}

static void check_exclusion(const struct file files[FILES], const enum claim_mode modes[FILES])
{
	for (int i = 0; i < FILES; i++)
		for (int j = 0; j < i; j++)
			assert_false(counts(&files[i]) && counts(&files[j]) &&
				     (modes[i] == EX || modes[j] == EX));
}

/* Lets a while pass, in which a broken connection comes back. */
static void go_on(struct world *world, struct file files[FILES], const enum claim_mode modes[FILES])
{
	for (int i = 0; i < 8; i++) {
		settle(world);
		check_exclusion(files, modes);
		pass(world, 5);
		check_exclusion(files, modes);
		if (i == 4)
			store_faulty_reconnect(world->one.store);
	}
}

/* Files 1 and 3 are of the other host. */
static void run_scenario(struct world *world, struct file files[FILES])
{
	enum claim_mode modes[FILES] = {EX, EX, SH, EX, SH};

	for (int i = 0; i < FILES; i++) {
		file_open(&files[i], i % 2 == 0 ? &world->one : &world->two, "a");
		file_lock(&files[i], modes[i], WAIT);
		if (i % 2 == 0)
			go_on(world, files, modes);
	}
	if (files[0].lost == 0)
		file_unlock(&files[0]);
	go_on(world, files, modes);
	if (file_waits(&files[2]))
		file_cancel(&files[2]);
	go_on(world, files, modes);
	file_close(&files[1]);
	go_on(world, files, modes);
	if (files[4].lost == 0 && !file_waits(&files[4])) {
		modes[4] = EX;
		file_lock(&files[4], EX, WAIT);
	}
	go_on(world, files, modes);
	if (files[2].lost == 0 && !file_waits(&files[2]))
		file_lock(&files[2], SH, TRY);
	go_on(world, files, modes);
	file_close(&files[3]);
	go_on(world, files, modes);
	pass(world, 1000);
	reconnect(&world->one); /* a heartbeat may have been what met the loss */
	check_exclusion(files, modes);
}

/* Those who do not wait leave, which must be the turn of others. */
static bool everybody_gets_his_turn(struct world *world, struct file files[FILES])
{
	int left = FILES;

	for (int round = 0; round < FILES; round++) {
		for (int i = 0; i < FILES; i++)
			if (files[i].owner != NULL && !file_waits(&files[i]))
				file_close(&files[i]);
		pass(world, 200);
	}
	for (int i = 0; i < FILES; i++)
		left -= files[i].owner == NULL;
	return left == 0;
}

static void test_loss_at_each_operation(void **state)
{
	struct world *world = *state;
	long length = 0;

	world->on_operation = break_connection;
	for (int how = 0; how < BREAK_COUNT; how++) {
		for (long at = 0; at <= length; at++) {
			struct file files[FILES] = {0};

			world->one.operations = 0;
			world->one.break_at = at;
			world->one.break_how = how;
			run_scenario(world, files);
			if (at == 0)
				length = world->one.operations;
			world->one.break_at = 0;
			if (!everybody_gets_his_turn(world, files))
				fail_msg("how %d at %ld: somebody is forgotten", how, at);
			if (!local_service_is_empty(world->service, "a"))
				fail_msg("how %d at %ld: a claim is left", how, at);
			assert_int_equal(engine_counts(world->one.engine).waiters, 0);
		}
		assert_true(length > 8);
	}
}

/* Servers that are set back have lost the claim in front together with our own, while there was no
 * connection: what shows that the first is gone has to show that the second stands. */
static void test_both_vanish(void **state)
{
	struct world *world = *state;

	for (size_t stays = 0; stays < 2; stays++) {
		struct file file, other;

		file_open_and_lock(&other, &world->two, EX);
		assert_holds(&other);
		file_open_and_lock(&file, &world->one, EX);
		assert_waits(&file);
		disconnect(&world->one);
		if (stays == 0)
			foreign_withdraw(world, "a", 1);
		foreign_withdraw(world, "a", 0);
		foreign_place(world, "a", EX);
		reconnect(&world->one);
		assert_true(file_holds(&file) == (stays == 1));
		foreign_withdraw(world, "a", stays);
		settle(world);
		assert_holds(&file);
		assert_int_equal(file.lost, 0);
		file_close(&file);
		file_close(&other);
		settle(world);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ambiguous_place),
		TEST(ambiguous_place_abandoned),
		TEST(late_place),
		TEST(ambiguous_withdraw),
		TEST(many_at_once),
		TEST(session_lost),
		TEST(session_lost_while_asking),
		TEST(session_lost_while_lingering),
		TEST(nothing_is_granted_while_suspended),
		TEST(watch_fires_while_suspended),
		TEST(wait_limit),
		TEST(try_limit),
		TEST(both_vanish),
		TEST(claims_taken_away),
		TEST(loss_at_each_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
