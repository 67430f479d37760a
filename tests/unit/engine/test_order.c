/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of record locks over hosts: who goes before whom, and who waits for whom in a cycle.
 */
#include "order_fixture.h"

/* What the upgrade of a reader goes before: a writer that waits, and who waits behind that. */
static void test_upgrade_passes_who_waits(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * 2; h++) {
		struct file files[5], *upgrader = &files[0], *writer = &files[1];
		struct file *readers = &files[2];

		file_open(upgrader, &world->one, "a");
		file_open(writer, world->hosts[h % HOSTS], "a");
		ask(upgrader, SH, 0, 9);
		ask(writer, EX, 0, 9);
		assert_waits(writer);
		for (int i = 0; i < HOSTS; i++) {
			file_open(&readers[i], world->hosts[i], "a");
			ask(&readers[i], SH, 5, 14);
			assert_waits(&readers[i]);
		}
		record_lock(upgrader, EX, 0, 9, h < HOSTS ? WAIT : TRY);
		settle(world);
		assert_granted(upgrader);
		assert_ranges(upgrader, "w0-9");
		assert_waits(writer);
		ask(upgrader, SH, 0, 9); /* back, which lets nobody in */
		assert_waits(writer);
		for (int i = 0; i < HOSTS; i++)
			assert_waits(&readers[i]);
		drop(upgrader, 0, 8);
		assert_waits(writer);
		drop(upgrader, 9, 9);
		assert_granted(writer);
		for (int i = 0; i < HOSTS; i++)
			assert_waits(&readers[i]);
		drop(writer, 0, 9);
		for (int i = 0; i < HOSTS; i++)
			assert_granted(&readers[i]);
		close_all(files, 5);
	}
}

/* Another reader holds: the upgrade waits for that one only. */
static void test_upgrade_waits_for_holders_only(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * HOSTS; h++) {
		struct file files[3], *upgrader = &files[0], *reader = &files[1];
		struct file *writer = &files[2];

		file_open(upgrader, &world->one, "a");
		file_open(reader, world->hosts[h % HOSTS], "a");
		file_open(writer, world->hosts[h / HOSTS], "a");
		ask(upgrader, SH, 0, 9);
		ask(reader, SH, 0, 9);
		ask(writer, EX, 0, 9);
		ask(upgrader, EX, 0, 9);
		assert_waits(upgrader);
		drop(reader, 0, 4);
		assert_waits(upgrader);
		drop(reader, 5, 9);
		assert_granted(upgrader);
		assert_waits(writer);
		drop(upgrader, 0, 9);
		assert_granted(writer);
		close_all(files, 3);
	}
}

/* Who holds ranges on both sides of what others wait for does not go before them. */
static void test_between_ranges_that_are_held(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS * 2; h++) {
		struct file files[3], *around = &files[0], *waiter = &files[1];
		struct file *holder = &files[2];

		open_three(world, files, h);
		ask(around, SH, 0, 0);
		ask(around, SH, 31, 31);
		ask(holder, EX, 10, 11);
		ask(waiter, EX, 10, 11);
		ask(around, h < ASSIGNMENTS ? EX : SH, 10, 11);
		assert_waits(waiter);
		assert_waits(around);
		drop(holder, 10, 11);
		assert_granted(waiter);
		assert_waits(around);
		drop(waiter, 10, 11);
		assert_granted(around);
		close_all(files, 3);
	}
}

/* Nor who has held what they wait for, and released it. */
static void test_part_that_was_released(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3], *former = &files[0], *holder = &files[1];
		struct file *waiter = &files[2];

		open_three(world, files, h);
		ask(former, EX, 20, 30);
		drop(former, 20, 27);
		ask(holder, EX, 20, 25);
		ask(waiter, EX, 22, 22);
		ask(former, SH, 0, 31);
		assert_waits(waiter);
		assert_waits(former);
		drop(holder, 20, 25);
		assert_granted(waiter);
		assert_waits(former);
		drop(waiter, 22, 22);
		assert_granted(former);
		close_all(files, 3);
	}
}

/* The same, and it is interrupted: the place of who was to be passed is not lost. */
static void test_upgrade_interrupted(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * HOSTS * 8; h++) {
		struct file files[3], *upgrader = &files[0], *reader = &files[1];
		struct file *writer = &files[2];
		int how = h / (HOSTS * HOSTS);

		world->policy.linger_ms = how & 1 ? LINGER_MS : 0;
		file_open(upgrader, &world->one, "a");
		file_open(reader, world->hosts[h % HOSTS], "a");
		file_open(writer, world->hosts[h / HOSTS % HOSTS], "a");
		ask(upgrader, SH, 0, 9);
		ask(reader, SH, 0, 9);
		ask(writer, EX, 0, 9);
		ask(upgrader, EX, 0, 9);
		file_cancel(upgrader);
		if (how & 2)
			settle(world);
		record_unlock(how & 4 ? upgrader : reader, 0, 9);
		settle(world);
		assert_waits(writer);
		drop(how & 4 ? reader : upgrader, 0, 9);
		pass(world, LINGER_MS);
		assert_granted(writer);
		close_all(files, 3);
	}
}

/* Who closes the cycle is told, and keeps what it has. */
static void test_two_upgraders(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * 2; h++) {
		struct file files[2], *first = &files[0], *second = &files[1];

		file_open(first, &world->one, "a");
		file_open(second, world->hosts[h % HOSTS], "a");
		ask(first, SH, 0, 9);
		ask(second, SH, 5, 14);
		record_lock(first, EX, 0, 9, WAIT);
		if (h < HOSTS)
			settle(world);
		ask(second, EX, 5, 14);
		assert_waits(first);
		pass(world, LINGER_MS);
		assert_denied(second, -EDEADLK);
		assert_ranges(first, "r0-9");
		assert_ranges(second, "r5-14");
		drop(second, 0, 8);
		assert_waits(first);
		drop(second, 9, 9);
		assert_granted(first);
		assert_ranges(first, "w0-9");
		assert_ranges(second, "r10-14");
		close_all(files, 2);
	}
}

static void test_cycle_of_three(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3];

		open_three(world, files, h);
		for (int i = 0; i < 3; i++) {
			ask(&files[i], EX, i, i);
			assert_granted(&files[i]);
		}
		ask(&files[0], EX, 1, 1);
		ask(&files[1], EX, 2, 2);
		pass(world, 1000);
		assert_waits(&files[0]);
		assert_waits(&files[1]);
		ask(&files[2], EX, 0, 0);
		pass(world, LINGER_MS);
		assert_denied(&files[2], -EDEADLK);
		pass(world, 1000);
		assert_waits(&files[0]);
		assert_waits(&files[1]);
		assert_ranges(&files[2], "w2-2");
		drop(&files[2], 2, 2);
		assert_granted(&files[1]);
		assert_waits(&files[0]);
		drop(&files[1], 1, 1);
		assert_granted(&files[0]);
		assert_ranges(&files[0], "w0-1");
		close_all(files, 3);
	}
}

static void test_cycle_over_two_files(void **state)
{
	struct world *world = *state;
	struct file first_a, first_b, second_a, second_b;

	file_open(&first_a, &world->one, "a");
	file_open_too(&first_b, &first_a, "b");
	file_open(&second_a, &world->one, "a");
	file_open_too(&second_b, &second_a, "b");
	ask(&first_a, EX, 0, 9);
	ask(&second_b, EX, 0, 9);
	ask(&first_b, EX, 5, 5);
	assert_waits(&first_b);
	ask(&second_a, EX, 5, 5);
	assert_denied(&second_a, -EDEADLK);
	assert_waits(&first_b);
	assert_ranges(&second_b, "w0-9");
	drop(&second_b, 0, 9);
	assert_granted(&first_b);
	file_close(&first_a);
	file_close(&first_b);
	file_close(&second_a);
	file_close(&second_b);
}

static void test_chain_is_no_cycle(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3];

		open_three(world, files, h);
		for (int i = 0; i < 3; i++)
			ask(&files[i], EX, i, i);
		ask(&files[1], EX, 0, 0);
		ask(&files[2], EX, 1, 1);
		pass(world, 1000);
		assert_waits(&files[1]);
		assert_waits(&files[2]);
		drop(&files[0], 0, 0);
		assert_granted(&files[1]);
		assert_waits(&files[2]);
		/* He waits for one, and the other for him. */
		ask(&files[0], SH, 2, 2);
		pass(world, 1000);
		assert_waits(&files[0]);
		assert_waits(&files[2]);
		drop(&files[1], 0, 9);
		assert_granted(&files[2]);
		assert_waits(&files[0]);
		close_all(files, 3);
	}
}

/* What would make it a cycle has gone from the store, but the news has not arrived: because the
 * wish was interrupted, or what is waited for was given up. Before that, the one who asks has taken
 * up to so many steps; a cycle that it was told of by then was one. */
static void test_cycle_broken_just_now(void **state)
{
	struct world *world = *state;
	int waited = 0;

	world->policy.linger_ms = 0;
	for (int how = 0; how < 3; how++) {
		for (int steps = 0; steps < 12; steps++) {
			struct file files[3], *first = &files[0], *second = &files[1];

			open_three(world, files, 3 + 18);
			ask(first, EX, 0, 3);
			ask(&files[2], EX, 20, 29);
			ask(second, EX, 10, 19);
			if (how == 2) {
				ask(&files[2], EX, 10, 19);
				ask(first, EX, 20, 29);
			} else {
				ask(first, EX, 10, 19);
			}
			record_lock(second, EX, 0, 0, WAIT);
			for (int i = 0; i < steps; i++)
				store_faulty_step(world->two.store);
			if (how == 1)
				record_unlock(first, 0, 0);
			else
				file_cancel(first);
			long asked = world->two.operations;
			settle_alone(&world->one);
			if (file_waits(second)) {
				waited++;
				settle_alone(&world->two);
				settle(world);
			}
			if (file_waits(second) || second->result == 0) {
				if (how == 1) {
					assert_granted(second);
				} else {
					assert_waits(second);
					drop(first, 0, 0);
					assert_granted(second);
				}
			} else {
				settle(world);
				pass(world, LINGER_MS);
				assert_denied(second, -EDEADLK);
				/* It has withdrawn since, and read what has changed: no new list.
				 */
				assert_in_range(world->two.operations, asked,
						asked + 1 + (how == 1));
			}
			close_all(files, 3);
		}
	}
	assert_in_range(waited, 6, 36);
}

/* More of the file, past somebody who waits for what is held. */
static void test_extension_passes_who_waits(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * 2; h++) {
		struct file files[2], *holder = &files[0], *waiter = &files[1];

		file_open(holder, &world->one, "a");
		file_open(waiter, world->hosts[h % HOSTS], "a");
		ask(holder, EX, 0, 9);
		if (h < HOSTS)
			record_lock(waiter, EX, 0, 19, WAIT);
		else
			file_lock(waiter, EX, WAIT);
		settle(world);
		assert_waits(waiter);
		ask(holder, EX, 10, 19);
		assert_granted(holder);
		drop(holder, 0, 9);
		assert_waits(waiter);
		drop(holder, 10, 18);
		assert_waits(waiter);
		drop(holder, 19, 19);
		assert_granted(waiter);
		close_all(files, 2);
	}
}

/* The same again and again: each time the claim is gone that stood in front of who waits. */
static void test_hand_over_hand(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * 2; h++) {
		struct file files[2], *walker = &files[0], *waiter = &files[1];

		file_open(walker, &world->one, "a");
		file_open(waiter, world->hosts[h % HOSTS], "a");
		ask(walker, EX, 0, 9);
		if (h < HOSTS)
			record_lock(waiter, EX, 0, 99, WAIT);
		else
			file_lock(waiter, EX, WAIT);
		settle(world);
		for (int i = 1; i < 10; i++) {
			ask(walker, EX, 10 * i, 10 * i + 9);
			assert_granted(walker);
			drop(walker, 10 * i - 10, 10 * i - 1);
			assert_waits(waiter);
		}
		drop(walker, 90, 99);
		assert_granted(waiter);
		close_all(files, 2);
	}
}

/* Waiters that hold nothing get their turn in the order in which they came. */
static void test_first_come_first_served(void **state)
{
	enum { WAITERS = 9 };
	static const struct range wanted[WAITERS] = {
		{{0, 9}, EX},	{{5, 14}, SH},	{{20, 29}, EX},
		{{0, 99}, SH},	{{14, 20}, EX}, {{29, 29}, SH},
		{{50, 59}, EX}, {{0, 0}, SH},	{{0, INT64_MAX}, EX},
	};
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[1 + WAITERS], *waiters = &files[1];

		open_three(world, files, h);
		for (int i = 3; i < 1 + WAITERS; i++)
			file_open(&files[i], files[i % 3].host, "a");
		ask(&files[0], EX, 0, 99);
		for (int i = 0; i < WAITERS; i++) {
			ask(&waiters[i], wanted[i].mode, wanted[i].span.start, wanted[i].span.end);
			assert_waits(&waiters[i]);
		}
		drop(&files[0], 0, INT64_MAX);
		/* Each is there once nobody is who came before and is in its way. */
		for (int left = 0; left < WAITERS; left++) {
			for (int i = left; i < WAITERS; i++) {
				bool waits = false;

				for (int j = left; j < i; j++)
					waits |= claim_span_overlaps(wanted[i].span,
								     wanted[j].span) &&
						 (wanted[i].mode == EX || wanted[j].mode == EX);
				assert_int_equal(file_waits(&waiters[i]), waits);
			}
			drop(&waiters[left], 0, INT64_MAX);
		}
		close_all(files, 1 + WAITERS);
	}
}

/* A range that another thread's covers is there with that: nobody between them stands in its way,
 * or loses his place for it. */
static void test_threads_of_one_process(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < HOSTS * HOSTS; h++) {
		struct file files[5], *wide = &files[0], *narrow = &files[1];
		struct file *holder = &files[2], *between = &files[3], *last = &files[4];

		file_open(wide, &world->one, "a");
		file_open_too(narrow, wide, "a");
		file_open(holder, &world->one, "a");
		file_open(between, world->hosts[h % HOSTS], "a");
		file_open(last, world->hosts[h / HOSTS], "a");
		ask(holder, EX, 0, 9);
		ask(between, EX, 20, 29);
		ask(wide, EX, 0, 9);
		ask(between, EX, 5, 6);
		ask(narrow, EX, 5, 6);
		ask(last, EX, 5, 6);
		drop(holder, 0, 9);
		assert_granted(wide);
		assert_granted(narrow);
		assert_waits(between);
		drop(wide, 0, 9);
		assert_granted(between);
		assert_waits(last);
		drop(between, 5, 6);
		assert_granted(last);
		close_all(files, 5);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(upgrade_passes_who_waits),
		TEST(upgrade_waits_for_holders_only),
		TEST(between_ranges_that_are_held),
		TEST(part_that_was_released),
		TEST(upgrade_interrupted),
		TEST(two_upgraders),
		TEST(cycle_of_three),
		TEST(cycle_over_two_files),
		TEST(chain_is_no_cycle),
		TEST(cycle_broken_just_now),
		TEST(extension_passes_who_waits),
		TEST(first_come_first_served),
		TEST(hand_over_hand),
		TEST(threads_of_one_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
