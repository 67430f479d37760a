/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about open files that hold by more claims than one transaction of the store takes: none
 * of the claims is left out, the answer is about one moment, and so is the token.
 */
#include "fixture.h"

enum { PROCESSES = 5, RANGES = 16, CLAIMS = PROCESSES * RANGES };

/* The processes share one open file; each of their ranges is a claim of its own. */
static void hold_many(struct world *world, struct file *files)
{
	file_open(&files[0], &world->one, "a");
	for (int i = 1; i < PROCESSES; i++)
		file_share(&files[i], &files[0]);
	for (int i = 0; i < CLAIMS; i++) {
		record_lock(&files[i / RANGES], EX, 10 * i, 10 * i, TRY);
		settle(world);
		assert_granted(&files[i / RANGES]);
	}
	assert_int_equal(queue_length(world, "a"), CLAIMS);
	assert_true(CLAIMS > STORE_PROOFS_MAX);
}

static void test_all_are_shown(void **state)
{
	struct world *world = *state;
	struct file files[PROCESSES];

	hold_many(world, files);
	world->one.operations = 0;
	file_prove(&files[0], false);
	settle(world);
	assert_granted(&files[0]);
	assert_int_equal(world->one.operations, 2);
	file_prove(&files[0], true);
	settle(world);
	assert_granted(&files[0]);
	assert_true(files[0].token > 0);
	file_close(&files[0]);
}

/* Whichever of the claims is gone. */
static void test_one_is_gone(void **state)
{
	static const size_t places[] = {0, STORE_PROOFS_MAX - 1, STORE_PROOFS_MAX, CLAIMS - 1};
	struct world *world = *state;

	for (int i = 0; i < 8; i++) {
		struct file files[PROCESSES];
		hold_many(world, files);
		foreign_withdraw(world, "a", places[i / 2]);
		file_prove(&files[0], i % 2 == 1);
		settle(world);
		assert_denied(&files[0], -EIO);
		assert_int_equal(files[0].lost, 1);
		file_close(&files[0]);
		settle(world);
	}
}

/* Whichever operation the connection breaks at. */
static void test_broken_connection(void **state)
{
	struct world *world = *state;
	struct file files[PROCESSES];

	world->on_operation = break_connection;
	for (int i = 0; i < 2 * BREAK_COUNT * 2; i++) {
		hold_many(world, files);
		world->one.operations = 0;
		world->one.break_at = 1 + i % 2;
		world->one.break_how = i / 4;
		file_prove(&files[0], i / 2 % 2 == 1);
		settle(world);
		assert_waits(&files[0]);
		reconnect(&world->one);
		pass(world, 200);
		if (world->one.break_how == BREAK_EXPIRE)
			assert_denied(&files[0], -EIO);
		else
			assert_granted(&files[0]);
		world->one.break_at = 0;
		file_close(&files[0]);
		settle(world);
	}
}

/* Closed, and interrupted, with several transactions on their way. */
static void test_nobody_asks_any_more(void **state)
{
	struct world *world = *state;
	struct file files[PROCESSES];

	hold_many(world, files);
	file_prove(&files[0], true);
	file_cancel_proof(&files[0]);
	settle(world);
	file_prove(&files[0], false);
	file_close(&files[0]);
	settle(world);
	assert_int_equal(files[0].decisions, 0);
}

/* A claim goes between the first transaction and the last, and another host has the lock and its
 * token before the last is carried out: that token is the greater one. */
static void test_token_of_one_moment(void **state)
{
	struct world *world = *state;
	struct file file, other, rival;

	engine_set_proofs_max(world->one.engine, 1);
	file_open(&file, &world->one, "a");
	file_share(&other, &file);
	record_lock(&file, EX, 0, 9, WAIT);
	record_lock(&other, EX, 20, 29, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-9 | w20-29");
	file_open(&rival, &world->two, "a");
	record_lock(&rival, EX, 0, 9, WAIT);
	settle(world);
	assert_waits(&rival);

	file_prove(&file, true);
	assert_true(store_faulty_step(world->one.store)); /* the first arrives */
	foreign_withdraw(world, "a", 0);
	settle_alone(&world->two);
	assert_granted(&rival);
	file_prove(&rival, true);
	settle_alone(&world->two);
	assert_granted(&rival);
	settle(world);
	assert_granted(&file);
	assert_true(file.token < rival.token);
	pass(world, TIMEOUT_MS);
	assert_int_equal(file.lost, 1);
	file_close(&file);
	file_close(&rival);
}

/* One thread asks, and others release and lock anew through the same open file: it is told of what
 * was held when it asked; who asks after a grant is told of nothing older than that. */
static void test_token_of_the_asker(void **state)
{
	struct world *world = *state;
	struct file file, thread, late, rival;

	file_open(&file, &world->one, "a");
	file_share(&thread, &file);
	file_share(&late, &file);
	file_open(&rival, &world->two, "a");
	for (int asked_before = 0; asked_before < 2; asked_before++) {
		uint64_t first = 0;

		file_lock(&file, EX, WAIT);
		settle(world);
		if (asked_before) {
			file_prove(&file, true);
			settle(world);
			assert_granted(&file);
			first = file.token;
		}
		file_prove(&thread, true);
		file_unlock(&file);
		file_lock(&rival, EX, WAIT);
		settle_alone(&world->two);
		settle(world);
		assert_granted(&rival);
		file_prove(&rival, true);
		file_lock(&file, EX, WAIT);
		settle(world);
		file_unlock(&rival);
		settle(world);
		assert_granted(&file);
		file_prove(&late, true);
		settle(world);
		assert_granted(&thread);
		assert_granted(&late);
		assert_true(thread.token < rival.token);
		assert_true(rival.token < late.token);
		if (asked_before)
			assert_int_equal(thread.token, first);
		file_unlock(&file);
		settle(world);
	}
	file_close(&file);
	file_close(&rival);
}

/* The same while nothing can be sent: the answer is of what is held when it can. */
static void test_token_of_a_later_grant(void **state)
{
	struct world *world = *state;
	struct file file, thread;
	uint64_t first;

	file_open(&file, &world->one, "a");
	file_share(&thread, &file);
	file_lock(&file, EX, WAIT);
	settle(world);
	file_prove(&file, true);
	settle(world);
	first = file.token;
	disconnect(&world->one);
	file_prove(&thread, true);
	file_unlock(&file);
	file_lock(&file, EX, WAIT);
	reconnect(&world->one);
	pass(world, 500);
	assert_granted(&file);
	assert_denied(&thread, -ENODATA); /* when it could be asked, nothing was held yet */
	file_prove(&thread, true);
	settle(world);
	assert_granted(&thread);
	assert_true(thread.token > first);
	file_close(&file);
}

/* A grant while the token is on its way: the token is older than what was granted. */
static void test_token_before_a_grant(void **state)
{
	struct world *world = *state;
	struct file file, other, rival;

	file_open(&file, &world->one, "a");
	file_share(&other, &file);
	file_open(&rival, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	record_lock(&rival, EX, 20, 29, WAIT);
	record_lock(&other, EX, 20, 29, WAIT);
	settle(world);
	assert_granted(&rival);
	assert_waits(&other);
	file_prove(&file, true);
	record_unlock(&rival, 20, 29);
	assert_granted(&other);
	settle(world);
	assert_granted(&file);
	file_prove(&other, true);
	settle(world);
	assert_granted(&other);
	assert_true(file.token < other.token);
	file_close(&file);
	file_close(&rival);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_are_shown),	    TEST(one_is_gone),
		TEST(broken_connection),    TEST(nobody_asks_any_more),
		TEST(token_of_one_moment),  TEST(token_of_the_asker),
		TEST(token_before_a_grant), TEST(token_of_a_later_grant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
