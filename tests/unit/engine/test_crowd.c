/* SPDX-License-Identifier: Apache-2.0
 *
 * Many processes that wait for each other: the search for a cycle of them takes its time in parts.
 */
#include "order_fixture.h"

enum { PROCESSES = 200, PASS_MS = 5000, RANGES = 32, THREADS = 20 };

/* Each holds two bytes, and waits for those of the next one, the last one for nobody. */
static void open_chain(struct world *world, struct file *files)
{
	for (int i = 0; i < PROCESSES; i++) {
		file_open(&files[i], &world->one, "a");
		record_try(&files[i], EX, 4 * i, 4 * i + 1);
		settle(world);
		assert_granted(&files[i]);
	}
	for (int i = PROCESSES - 2; i >= 0; i--)
		record_lock(&files[i], EX, 4 * i + 4, 4 * i + 5, WAIT);
	settle(world);
}

static void close_chain(struct file *files)
{
	for (int i = PROCESSES - 1; i >= 0; i--)
		file_close(&files[i]);
}

/* For more than a moment there is no time left, and who closes a cycle is not told of that. */
static void test_later(void **state)
{
	struct world *world = *state;
	struct file files[PROCESSES];
	struct file *last = &files[PROCESSES - 1];

	open_chain(world, files);
	record_lock(last, EX, 0, 1, WAIT);
	settle(world);
	assert_waits(last);
	pass(world, PASS_MS);
	assert_denied(last, -EDEADLK);
	assert_waits(&files[0]);
	close_chain(files);
	settle(world);
	assert_queue(world, "a", "");
}

/* Whoever is in no cycle is granted at once all the same. */
static void test_granted(void **state)
{
	struct world *world = *state;
	struct file files[PROCESSES], other;

	open_chain(world, files);
	record_unlock(&files[PROCESSES - 1], 0, INT64_MAX);
	settle(world);
	assert_granted(&files[PROCESSES - 2]);
	file_open(&other, &world->one, "b");
	file_lock(&other, EX, WAIT);
	settle(world);
	assert_granted(&other);
	file_close(&other);
	close_chain(files);
	settle(world);
	assert_queue(world, "a", "");
}

/* Nor does a thread wait for that whose range another one of its process is granted. */
static void test_covered(void **state)
{
	struct world *world = *state;
	struct file files[PROCESSES], wide, narrow, between, holder;

	file_open(&wide, &world->one, "b");
	file_open_too(&narrow, &wide, "b");
	file_open(&between, &world->one, "b");
	file_open(&holder, &world->one, "b");
	ask(&holder, EX, 0, 9);
	ask(&wide, EX, 0, 9);
	ask(&between, EX, 5, 6);
	ask(&narrow, EX, 5, 6);
	open_chain(world, files);
	record_lock(&files[PROCESSES - 1], EX, 0, 1, WAIT);
	settle(world);
	assert_waits(&files[PROCESSES - 1]);
	drop(&holder, 0, 9);
	assert_granted(&wide);
	assert_granted(&narrow);
	assert_waits(&between);
	file_close(&wide);
	file_close(&narrow);
	file_close(&between);
	file_close(&holder);
	close_chain(files);
	settle(world);
	assert_queue(world, "a", "");
	assert_queue(world, "b", "");
}

/* A process with as many ranges as one claim is to gather has threads that ask for more, and wait:
 * not each of their claims covers all that the process holds. */
static void test_threads_wait(void **state)
{
	struct world *world = *state;
	struct file process, other, threads[THREADS];
	size_t commas = 0;

	file_open(&process, &world->one, "a");
	file_open(&other, &world->one, "a");
	ask(&other, EX, 1000, 1999);
	for (int i = 0; i < RANGES; i++)
		ask(&process, EX, 2 * i, 2 * i);
	for (int i = 0; i < THREADS; i++) {
		file_open_too(&threads[i], &process, "a");
		ask(&threads[i], EX, 1000 + 2 * i, 1000 + 2 * i);
		assert_waits(&threads[i]);
	}
	for (const char *at = queue_text(world, "a"); *at != '\0'; at++)
		commas += *at == ',';
	assert_in_range(commas, RANGES, 3 * RANGES);
	file_close(&other);
	settle(world);
	for (int i = 0; i < THREADS; i++) {
		assert_granted(&threads[i]);
		file_close(&threads[i]);
	}
	close_all(&process, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(later),
		TEST(granted),
		TEST(covered),
		TEST(threads_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
