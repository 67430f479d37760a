/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises while the store is well: order, conversion, refusal, giving up. What it
 * promises otherwise is in test_faults.c.
 */
#include "fixture.h"

enum { FOREIGN_HOSTS = 40 };

static void test_exclusive_is_first_in_first_out(void **state)
{
	struct world *world = *state;
	struct file files[5];

	for (int i = 0; i < 5; i++) {
		file_open(&files[i], i % 2 == 0 ? &world->one : &world->two, "a");
		file_lock(&files[i], EX, WAIT);
		settle(world);
	}
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < 5; j++)
			assert_int_equal(files[j].owner != NULL && file_holds(&files[j]), i == j);
		file_close(&files[i]);
		settle(world);
	}
}

static void test_readers_together_and_writer_not_starved(void **state)
{
	struct world *world = *state;
	struct file r1, r2, w, r3, r4;

	file_open(&r1, &world->one, "a");
	file_open(&r2, &world->two, "a");
	file_open(&w, &world->one, "a");
	file_open(&r3, &world->two, "a");
	file_open(&r4, &world->one, "a");
	file_lock(&r1, SH, WAIT);
	file_lock(&r2, SH, WAIT);
	settle(world);
	assert_holds(&r1);
	assert_holds(&r2);
	file_lock(&w, EX, WAIT);
	settle(world);
	file_lock(&r3, SH, WAIT);
	file_lock(&r4, SH, WAIT);
	settle(world);
	assert_waits(&w);
	assert_waits(&r3);
	assert_waits(&r4);
	file_unlock(&r2);
	settle(world);
	assert_waits(&w);
	file_unlock(&r1);
	settle(world);
	assert_holds(&w);
	assert_waits(&r3);
	assert_waits(&r4);
	file_unlock(&w);
	settle(world);
	assert_holds(&r3);
	assert_holds(&r4);
	file_close(&r1);
	file_close(&r2);
	file_close(&r3);
	file_close(&r4);
	file_close(&w);
}

static void test_try_is_refused(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, here, there;

	file_open(&holder, &world->one, "a");
	file_open(&waiter, &world->two, "a");
	file_open(&here, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_lock(&holder, SH, WAIT);
	settle(world);
	file_lock(&here, EX, TRY);
	assert_refused(&here, -EWOULDBLOCK); /* known without asking */
	file_lock(&there, EX, TRY);
	settle(world);
	assert_refused(&there, -EWOULDBLOCK);
	file_lock(&there, SH, TRY);
	settle(world);
	assert_holds(&there);
	file_unlock(&there);

	file_lock(&waiter, EX, WAIT);
	settle(world);
	assert_waits(&waiter);
	/* Only readers hold, but a writer waits. */
	file_lock(&here, SH, TRY);
	settle(world);
	assert_refused(&here, -EWOULDBLOCK);
	file_lock(&there, SH, TRY);
	assert_refused(&there, -EWOULDBLOCK);
	assert_int_equal(queue_length(world, "a"), 2);

	file_lock_by_open(&here, TRY);
	settle(world);
	assert_refused(&here, -EWOULDBLOCK);
	file_close(&holder);
	file_close(&waiter);
	file_close(&here);
	file_close(&there);
}

/* flock -n f a; flock -n f b: the release need not have reached anybody. */
static void test_try_right_after_release(void **state)
{
	struct world *world = *state;
	struct file files[4];

	file_open(&files[0], &world->one, "a");
	file_lock(&files[0], EX, TRY);
	settle(world);
	for (int i = 1; i < 4; i++) {
		file_close(&files[i - 1]);
		file_open(&files[i], &world->one, "a");
		file_lock(&files[i], EX, TRY);
		settle(world);
		assert_holds(&files[i]);
	}
	file_close(&files[3]);
}

/* A local successor does not wait for the answer to the withdrawal. */
static void test_hand_over_is_at_once(void **state)
{
	struct world *world = *state;
	struct file first, second;

	file_open(&first, &world->one, "a");
	file_open(&second, &world->one, "a");
	file_lock(&first, EX, WAIT);
	file_lock(&second, EX, WAIT);
	settle(world);
	assert_waits(&second);
	file_close(&first);
	assert_holds(&second);
	file_close(&second);
}

static void test_conversion(void **state)
{
	struct world *world = *state;
	struct file file, reader, writer;

	file_open(&file, &world->one, "a");
	file_open(&reader, &world->two, "a");
	file_open(&writer, &world->two, "a");
	file_lock(&file, EX, WAIT);
	settle(world);
	file_lock(&reader, SH, WAIT);
	settle(world);
	file_lock(&file, SH, WAIT);
	settle(world);
	assert_holds(&file);
	assert_holds(&reader);

	/* Up again: lets go of the old lock, so a writer that waits comes first. */
	file_lock(&writer, EX, WAIT);
	settle(world);
	file_unlock(&reader);
	settle(world);
	assert_waits(&writer);
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_holds(&writer);
	assert_true(!file_holds(&file));
	file_unlock(&writer);
	settle(world);
	assert_holds(&file);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&file);
	file_close(&reader);
	file_close(&writer);
}

/* flock(2): "the original lock is lost" if LOCK_NB fails. */
static void test_failed_conversion_loses_the_lock(void **state)
{
	struct world *world = *state;
	struct file file, here, there;

	file_open(&file, &world->one, "a");
	file_open(&here, &world->one, "a");
	file_open(&there, &world->two, "a");
	file_lock(&file, SH, WAIT);
	file_lock(&here, SH, WAIT);
	settle(world);
	file_lock(&file, EX, TRY);
	assert_refused(&file, -EWOULDBLOCK);
	file_unlock(&here);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);

	file_lock(&file, SH, WAIT);
	file_lock(&there, SH, WAIT);
	settle(world);
	file_lock(&file, EX, TRY);
	settle(world);
	assert_refused(&file, -EWOULDBLOCK);
	assert_holds(&there);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&file);
	file_close(&here);
	file_close(&there);
}

static void test_same_mode_again_changes_nothing(void **state)
{
	struct world *world = *state;
	struct file file, waiter;
	long operations;

	file_open(&file, &world->one, "a");
	file_open(&waiter, &world->two, "a");
	file_lock(&file, EX, WAIT);
	settle(world);
	file_lock(&waiter, EX, WAIT);
	settle(world);
	operations = world->one.operations;
	file_lock(&file, EX, WAIT);
	assert_holds(&file);
	assert_int_equal(file.decisions, 1);
	file_lock(&file, EX, TRY);
	assert_holds(&file);
	assert_int_equal(file.decisions, 1);
	settle(world);
	assert_int_equal(world->one.operations, operations);
	file_close(&file);
	file_close(&waiter);
}

static void test_flock_on_exclusive_open(void **state)
{
	struct world *world = *state;
	struct file file, other;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_lock_by_open(&file, WAIT);
	settle(world);
	assert_holds(&file);
	file_lock(&file, EX, TRY);
	assert_int_equal(file.decisions, 1);
	assert_int_equal(file.result, 0);
	file_lock(&other, SH, TRY);
	settle(world);
	assert_refused(&other, -EWOULDBLOCK);
	file_lock(&file, SH, TRY);
	settle(world);
	assert_holds(&file);
	file_lock(&other, SH, TRY);
	settle(world);
	assert_holds(&other);
	file_unlock(&file);
	settle(world);
	file_lock(&other, EX, TRY);
	settle(world);
	assert_holds(&other);
	file_close(&file);
	file_close(&other);
}

static void test_unlocks_exclusive_open(void **state)
{
	struct world *world = *state;
	struct file file, other;

	file_open(&file, &world->one, "a");
	file_open(&other, &world->two, "a");
	file_lock_by_open(&file, WAIT);
	settle(world);
	file_lock(&other, EX, WAIT);
	settle(world);
	assert_waits(&other);
	file_unlock(&file);
	settle(world);
	assert_holds(&other);
	file_lock(&file, SH, TRY);
	settle(world);
	assert_refused(&file, -EWOULDBLOCK);
	file_close(&file);
	file_close(&other);
}

/* Two threads call flock(2) on one open file: the later grant converts the lock. */
static void test_two_calls_of_one_owner(void **state)
{
	struct world *world = *state;
	struct file holder, file, twin;

	file_open_and_lock(&holder, &world->two, EX);
	file_open(&file, &world->one, "a");
	memset(&twin, 0, sizeof(twin));
	twin.host = file.host;
	twin.owner = file.owner;
	file_lock(&file, EX, WAIT);
	file_lock(&twin, SH, WAIT);
	settle(world);
	assert_waits(&file);
	assert_waits(&twin);
	file_close(&holder);
	settle(world);
	assert_int_equal(file.decisions, 1);
	assert_int_equal(twin.decisions, 1);
	assert_int_equal(queue_length(world, "a"), 1);
	assert_int_equal(world->claims[0].mode, SH);
	file_unlock(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
	file_close(&file);
}

/* A call is interrupted in each stage of its life. Nobody is granted, and nothing stays behind. */
static void test_cancel_in_each_state(void **state)
{
	struct world *world = *state;

	for (int linger_ms = 0; linger_ms <= LINGER_MS; linger_ms += LINGER_MS) {
		for (int stage = 0; stage < 6; stage++) {
			struct file holder, file, next;

			world->policy.linger_ms = linger_ms;
			file_open(&holder, &world->two, "a");
			file_open(&file, &world->one, "a");
			file_open(&next, &world->one, "a");
			file_lock(&holder, EX, WAIT);
			settle(world);
			if (stage == 0)
				disconnect(&world->one); /* not even sent */
			file_lock(&file, EX, WAIT);
			if (stage == 2)
				store_faulty_step(world->one.store); /* placed, but unheard */
			if (stage >= 3)
				settle(world); /* it waits */
			if (stage == 4)
				file_close(&holder); /* its turn comes, but unheard */
			if (stage == 5) {
				file_close(&holder);
				store_faulty_step(world->two.store);
			}
			file_cancel(&file);
			if (stage == 0)
				reconnect(&world->one);
			if (stage < 4)
				file_close(&holder);
			file_lock(&next, EX, WAIT);
			pass(world, linger_ms);
			assert_idle(&file);
			assert_holds(&next);
			assert_int_equal(queue_length(world, "a"), 1);
			file_close(&file);
			file_close(&next);
			settle(world);
			assert_int_equal(queue_length(world, "a"), 0);
		}
	}
}

static void test_cancelled_exclusive_open_leaves_at_once(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_open(&holder, &world->two, "a");
	file_open(&file, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock_by_open(&file, WAIT);
	settle(world);
	file_cancel(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&holder);
	file_close(&file);
}

static void test_restarted_call_keeps_its_place(void **state)
{
	struct world *world = *state;
	struct file holder, file, next;

	file_open(&holder, &world->two, "a");
	file_open(&file, &world->one, "a");
	file_open(&next, &world->two, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&file, EX, WAIT);
	settle(world);
	file_lock(&next, EX, WAIT);
	settle(world);
	for (int i = 0; i < 3; i++) {
		file_cancel(&file);
		pass(world, LINGER_MS - 1);
		file_lock(&file, EX, WAIT);
		settle(world);
	}
	file_close(&holder);
	settle(world);
	assert_holds(&file);
	assert_waits(&next);
	file_close(&file);
	file_close(&next);
}

/* The turn comes while nobody asks: the place is kept, and a restarted call has the lock. */
static void test_turn_comes_while_lingering(void **state)
{
	struct world *world = *state;
	struct file holder, file, next;

	file_open(&holder, &world->two, "a");
	file_open(&file, &world->one, "a");
	file_open(&next, &world->one, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&file, EX, WAIT);
	file_lock(&next, EX, WAIT);
	settle(world);
	file_cancel(&file);
	file_close(&holder);
	settle(world);
	assert_idle(&file);
	assert_waits(&next);
	file_lock(&file, EX, WAIT);
	assert_holds(&file);
	file_unlock(&file);
	assert_holds(&next);

	/* And without a call it ends in time. */
	file_lock(&file, EX, WAIT);
	settle(world);
	file_cancel(&file);
	file_unlock(&next);
	pass(world, LINGER_MS - 1);
	assert_int_equal(queue_length(world, "a"), 1);
	pass(world, 1);
	assert_int_equal(queue_length(world, "a"), 0);
	file_close(&file);
	file_close(&next);
}

/* Another process on the same open file has a place of its own, which says that it asks. */
static void test_other_caller_ends_lingering(void **state)
{
	struct world *world = *state;
	struct file holder, file, next;

	file_open(&holder, &world->two, "a");
	file_open(&file, &world->one, "a");
	file_open(&next, &world->two, "a");
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&file, EX, WAIT);
	settle(world);
	file_lock(&next, EX, WAIT);
	settle(world);
	file_cancel(&file);
	file.process++;
	file_lock(&file, EX, WAIT);
	settle(world);
	file_close(&holder);
	settle(world);
	assert_holds(&next);
	assert_waits(&file);
	file_close(&next);
	file_close(&file);
}

/* Another call than the interrupted one does not take up its place. */
static void test_other_call_ends_lingering(void **state)
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
	file_lock(&file, SH, WAIT);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 2);
	assert_int_equal(world->claims[1].mode, SH);
	file_cancel(&file);
	file_unlock(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&holder);
	file_close(&file);
}

static void test_close_in_each_state(void **state)
{
	struct world *world = *state;

	for (int stage = 0; stage < 7; stage++) {
		struct file holder, file;

		file_open(&holder, &world->two, "a");
		file_open(&file, &world->one, "a");
		file_lock(&holder, EX, WAIT);
		settle(world);
		if (stage == 0)
			disconnect(&world->one);
		if (stage > 0)
			file_lock(&file, EX, WAIT);
		if (stage == 2)
			store_faulty_step(world->one.store);
		if (stage >= 3)
			settle(world);
		if (stage == 4)
			file_cancel(&file);
		if (stage >= 5)
			file_close(&holder);
		if (stage == 6) {
			settle(world);
			assert_holds(&file);
		}
		file_close(&file);
		reconnect(&world->one);
		if (stage < 5)
			file_close(&holder);
		settle(world);
		assert_int_equal(queue_length(world, "a"), 0);
	}
}

static void test_foreign_claims_are_waited_for(void **state)
{
	struct world *world = *state;
	struct file writer, reader;

	foreign_place(world, "a", SH);
	foreign_place(world, "a", EX);
	file_open(&writer, &world->one, "a");
	file_open(&reader, &world->one, "a");
	file_lock(&reader, SH, TRY);
	settle(world);
	assert_refused(&reader, -EWOULDBLOCK);
	file_lock(&reader, SH, WAIT);
	file_lock(&writer, EX, WAIT);
	settle(world);
	assert_waits(&reader);
	foreign_withdraw(world, "a", 1);
	settle(world);
	assert_holds(&reader);
	assert_waits(&writer);
	file_unlock(&reader);
	settle(world);
	assert_waits(&writer);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&writer);
	file_close(&writer);
	file_close(&reader);
}

/* One release costs the others nothing: who is next has watched already. */
static void test_no_herd(void **state)
{
	struct world *world = *state;
	struct file files[12];
	long operations;

	for (int i = 0; i < 12; i++) {
		file_open(&files[i], i < 2 ? &world->two : &world->one, "a");
		file_lock(&files[i], EX, WAIT);
		settle(world);
	}
	operations = world->one.operations;
	assert_int_equal(operations, 10 + 2 + 1); /* the first one's own claim is watched, too */
	file_close(&files[0]);
	settle(world);
	file_close(&files[1]);
	settle(world);
	assert_int_equal(world->one.operations, operations);
	for (int i = 2; i < 12; i++) {
		assert_holds(&files[i]);
		file_close(&files[i]);
	}
	assert_int_equal(world->one.operations, operations + 10);
}

/* However many claims of other hosts stand in front: they are not asked for one by one, and nothing
 * is asked for when the last one goes. */
static void test_turn_comes_unasked(void **state)
{
	struct world *world = *state;
	struct file waiter;
	long operations;

	for (int i = 0; i < FOREIGN_HOSTS; i++)
		foreign_place(world, "a", EX);
	file_open_and_lock(&waiter, &world->one, EX);
	operations = world->one.operations;
	for (int i = 0; i < FOREIGN_HOSTS - 2; i++) {
		foreign_withdraw(world, "a", 0);
		settle(world);
	}
	assert_int_equal(world->one.operations, operations);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(world->one.operations, operations + 1);
	assert_waits(&waiter);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(world->one.operations, operations + 1);
	assert_holds(&waiter);
	file_close(&waiter);
}

/* A write claim of Curator's may have become a read claim in front of ours, before it went. */
static void test_writer_of_curator_goes(void **state)
{
	struct world *world = *state;
	struct file waiter, second;
	long operations;

	foreign_place_as(world, "a", EX, CLAIM_CURATOR_RW);
	file_open(&waiter, &world->one, "a");
	file_open(&second, &world->one, "a");
	file_lock(&waiter, SH, WAIT);
	file_lock(&second, SH, WAIT);
	settle(world);
	operations = world->one.operations;
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&waiter);
	assert_holds(&second);
	assert_int_equal(world->one.operations, operations + 1); /* one list for both */
	file_close(&waiter);
	file_close(&second);
}

/* Those in front give up in another order. */
static void test_others_give_up_in_any_order(void **state)
{
	struct world *world = *state;
	struct file waiter;

	for (int i = 0; i < FOREIGN_HOSTS; i++)
		foreign_place(world, "a", EX);
	file_open_and_lock(&waiter, &world->one, EX);
	for (int left = FOREIGN_HOSTS; left > 0; left--) {
		assert_waits(&waiter);
		foreign_withdraw(world, "a", (size_t)(left * 5 / 7));
		settle(world);
	}
	assert_holds(&waiter);
	file_close(&waiter);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(exclusive_is_first_in_first_out),
		TEST(readers_together_and_writer_not_starved),
		TEST(try_is_refused),
		TEST(try_right_after_release),
		TEST(hand_over_is_at_once),
		TEST(conversion),
		TEST(failed_conversion_loses_the_lock),
		TEST(same_mode_again_changes_nothing),
		TEST(flock_on_exclusive_open),
		TEST(unlocks_exclusive_open),
		TEST(two_calls_of_one_owner),
		TEST(cancel_in_each_state),
		TEST(cancelled_exclusive_open_leaves_at_once),
		TEST(restarted_call_keeps_its_place),
		TEST(turn_comes_while_lingering),
		TEST(other_caller_ends_lingering),
		TEST(other_call_ends_lingering),
		TEST(close_in_each_state),
		TEST(foreign_claims_are_waited_for),
		TEST(no_herd),
		TEST(turn_comes_unasked),
		TEST(writer_of_curator_goes),
		TEST(others_give_up_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
