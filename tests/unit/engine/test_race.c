/* SPDX-License-Identifier: Apache-2.0
 *
 * Races for record locks over hosts: who yields, and that two hosts never disagree on that, also
 * when a connection breaks.
 */
#include "order_fixture.h"

/* Files of which no two may hold ranges that conflict. */
struct cast {
	struct file *files;
	size_t count;
};

static const struct range_set *held_by(const struct file *file)
{
	bool counts = file->owner != NULL && !store_faulty_is_expired(file->host->store);
	return counts ? engine_ranges(file->owner, file->process) : NULL;
}

static void check_exclusion(struct world *world)
{
	const struct cast *cast = world->context;

	for (size_t i = 0; i < cast->count; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct range_set *a = held_by(&cast->files[i]);
			const struct range_set *b = held_by(&cast->files[j]);

			if (a != NULL && b != NULL && range_sets_conflict(a, b))
				fail_msg("%zu and %zu hold %s and %s", i, j,
					 record_ranges(&cast->files[i]),
					 record_ranges(&cast->files[j]));
		}
	}
}

static void watch_exclusion(struct world *world, struct cast *cast)
{
	world->context = cast;
	world->on_step = cast != NULL ? check_exclusion : NULL;
}

/* The race of who yields: one holds a part that a reader waits for who waits for another holder,
 * too, and asks for what that one holds. */
struct race {
	struct file files[3], *around, *waiter, *holder;
	struct cast cast;
};

static void race_begin(struct world *world, struct race *race)
{
	memset(race, 0, sizeof(*race));
	race->around = &race->files[0];
	race->waiter = &race->files[1];
	race->holder = &race->files[2];
	open_three(world, race->files, 0 + 3 + 18);
	race->cast = (struct cast){race->files, 3};
	watch_exclusion(world, &race->cast);
	ask(race->around, SH, 0, 0);
	ask(race->around, SH, 9, 9);
	ask(race->holder, EX, 5, 5);
	ask(race->waiter, SH, 5, 9);
	assert_waits(race->waiter);
}

/* One has it, and the other gets it then. Returns whether it is the one who waited first. */
static bool race_end(struct world *world, struct race *race)
{
	settle(world);
	bool waiter_first = !file_waits(race->waiter);
	struct file *first = waiter_first ? race->waiter : race->around;
	struct file *second = waiter_first ? race->around : race->waiter;

	assert_granted(first);
	assert_waits(second);
	pass(world, 1000);
	assert_waits(second);
	drop(first, 5, 5);
	assert_granted(second);
	assert_ranges(race->around, waiter_first ? "r0-0,w5-5,r9-9" : "r0-0,r9-9");
	close_all(race->files, 3);
	watch_exclusion(world, NULL);
	return waiter_first;
}

static void take_steps(struct host *host, int steps)
{
	for (int i = 0; i < steps; i++)
		store_faulty_step(host->store);
}

static void test_precedence_or_not(void **state)
{
	struct world *world = *state;
	struct race race;

	/* It asks while the other waits. */
	race_begin(world, &race);
	ask(race.around, EX, 5, 5);
	assert_waits(race.around);
	drop(race.holder, 5, 5);
	assert_false(race_end(world, &race));

	/* It asks when the other has got it. */
	race_begin(world, &race);
	drop(race.holder, 5, 5);
	ask(race.around, EX, 5, 5);
	assert_true(race_end(world, &race));
}

/* It has asked before, and read then that the other waits. By now that one holds, and up to so much
 * of the news of that has come: that there is new data comes before the data itself, and what was
 * read before counts no more. */
static void test_precedence_by_former_data(void **state)
{
	enum { STEPS = 6 };
	struct world *world = *state;

	for (int steps = 0; steps < STEPS; steps++) {
		struct race race;

		race_begin(world, &race);
		ask(race.around, EX, 5, 5);
		assert_waits(race.around);
		file_cancel(race.around);
		settle(world);
		assert_waits(race.waiter);
		record_unlock(race.holder, 5, 5);
		settle_alone(&world->three);
		settle_alone(&world->two);
		assert_granted(race.waiter);
		take_steps(&world->one, steps);
		record_lock(race.around, EX, 5, 5, WAIT);
		settle_alone(&world->one);
		assert_waits(race.around);
		assert_true(race_end(world, &race));
	}
}

/* In between: the one who waits sees the other's claim in the list that it asks for then, or not;
 * and the other sees, in the list that its claim brings, who holds and who waits. */
static void test_race_of_lists(void **state)
{
	enum { STEPS = 10 };
	struct world *world = *state;
	int firsts = 0;

	for (int i = 0; i < STEPS * STEPS * 2; i++) {
		struct race race;

		race_begin(world, &race);
		record_unlock(race.holder, 5, 5);
		settle_alone(&world->three);
		take_steps(&world->two, i % STEPS);
		record_lock(race.around, EX, 5, 5, WAIT);
		take_steps(&world->one, i / STEPS % STEPS);
		if (i >= STEPS * STEPS)
			settle_alone(&world->two);
		firsts += race_end(world, &race);
	}
	assert_in_range(firsts, 20, STEPS * STEPS * 2 - 20);
}

static void test_race_by_chance(void **state)
{
	struct world *world = *state;
	int firsts = 0;

	world->shuffled = true;
	for (int i = 0; i < 500; i++) {
		struct race race;

		race_begin(world, &race);
		for (int64_t left = prng_below(&world->prng, 8); left > 0; left--)
			step(world);
		bool asks_first = prng_chance(&world->prng, 50);
		if (asks_first)
			record_lock(race.around, EX, 5, 5, WAIT);
		else
			record_unlock(race.holder, 5, 5);
		for (int64_t left = prng_below(&world->prng, 8); left > 0; left--)
			step(world);
		if (asks_first)
			record_unlock(race.holder, 5, 5);
		else
			record_lock(race.around, EX, 5, 5, WAIT);
		firsts += race_end(world, &race);
	}
	assert_in_range(firsts, 20, 480);
}

/* One of both gives up, at whatever time. */
static void test_interrupted_race(void **state)
{
	enum { STEPS = 40 };
	struct world *world = *state;

	world->shuffled = true;
	for (int i = 0; i < STEPS * 16; i++) {
		struct race race;
		int how = i / STEPS;

		world->policy.linger_ms = how & 1 ? LINGER_MS : 0;
		race_begin(world, &race);
		struct file *quits = how & 2 ? race.around : race.waiter;
		struct file *stays = how & 2 ? race.waiter : race.around;
		if (how & 4)
			record_unlock(race.holder, 5, 5);
		record_lock(race.around, EX, 5, 5, WAIT);
		if (how & 8)
			settle(world);
		if (!(how & 4))
			record_unlock(race.holder, 5, 5);
		for (int j = 0; j < i % STEPS; j++)
			step(world);
		if (file_waits(quits)) {
			file_cancel(quits);
			settle(world);
			pass(world, LINGER_MS);
		} else {
			settle(world);
			drop(quits, 5, 5);
		}
		assert_granted(stays);
		close_all(race.files, 3);
		watch_exclusion(world, NULL);
	}
}

/* Both hold parts around what they ask for. */
static void test_two_with_precedence(void **state)
{
	struct world *world = *state;

	world->shuffled = true;
	for (int i = 0; i < 300; i++) {
		struct file files[3], *first = &files[0], *second = &files[1];
		struct cast cast = {files, 3};

		open_three(world, files, i % 9 + 18);
		watch_exclusion(world, &cast);
		for (int j = 0; j < 2; j++) {
			ask(first, EX, j * 9, j * 9);
			ask(second, EX, 1 + j * 7, 1 + j * 7);
		}
		ask(&files[2], EX, 4, 5);
		record_lock(i & 1 ? first : second, EX, 4, 5, WAIT);
		for (int64_t left = prng_below(&world->prng, 8); left > 0; left--)
			step(world);
		record_lock(i & 1 ? second : first, i & 2 ? EX : SH, 5, 6, WAIT);
		for (int64_t left = prng_below(&world->prng, 8); left > 0; left--)
			step(world);
		drop(&files[2], 4, 5);
		if (file_waits(first)) {
			struct file *other = first;
			first = second;
			second = other;
		}
		assert_granted(first);
		assert_waits(second);
		drop(first, 4, 6);
		assert_granted(second);
		close_all(files, 3);
		watch_exclusion(world, NULL);
	}
}

/* Who has gone before a waiter is not taken for one that waits behind it. */
static void test_who_has_passed_holds(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3], *around = &files[0], *passes = &files[1];
		struct file *waiter = &files[2];
		struct cast cast = {files, 3};

		open_three(world, files, h);
		watch_exclusion(world, &cast);
		ask(around, EX, 0, 0);
		ask(around, EX, 99, 99);
		ask(passes, EX, 10, 10);
		ask(waiter, EX, 0, 30);
		assert_waits(waiter);
		ask(passes, EX, 20, 20);
		assert_granted(passes);
		assert_waits(waiter);
		ask(around, EX, 20, 20);
		assert_waits(around);
		drop(passes, 20, 20);
		assert_granted(around);
		assert_waits(waiter);
		drop(around, 0, 99);
		assert_waits(waiter);
		drop(passes, 0, 99);
		assert_granted(waiter);
		close_all(files, 3);
		watch_exclusion(world, NULL);
	}
}

/* The connection of one host breaks at each operation. */

static bool may_call(const struct file *file)
{
	return file->lost == 0 && !file_waits(file);
}

/* Time in which a broken connection comes back. */
static void go_on(struct world *world)
{
	for (int i = 0; i < 6; i++) {
		pass(world, 5);
		if (i == 3)
			for (int h = 0; h < HOSTS; h++)
				store_faulty_reconnect(world->hosts[h]->store);
	}
	pass(world, 300);
}

static void want(struct file *file, enum claim_mode mode, int64_t start, int64_t end)
{
	if (!may_call(file))
		return;
	record_lock(file, mode, start, end, WAIT);
	go_on(file->host->world);
}

static void give_up(struct file *file, int64_t start, int64_t end)
{
	if (!may_call(file))
		return;
	record_unlock(file, start, end);
	go_on(file->host->world);
}

/* Lock, upgrade, extension, partial unlock, downgrade, release. */
static void play_changes(struct file files[3])
{
	struct file *first = &files[0], *second = &files[1], *third = &files[2];

	want(first, EX, 0, 9);
	want(second, EX, 20, 29);
	want(first, SH, 40, 49);
	want(third, SH, 40, 49);
	want(second, EX, 0, 19); /* waits for the first */
	want(first, EX, 10, 19); /* goes before that */
	want(first, EX, 40, 49); /* waits for the third */
	give_up(third, 45, 49);
	give_up(third, 40, 44);
	give_up(first, 0, 4);
	want(first, SH, 5, 9);
	want(third, EX, 0, 4); /* waits behind the second */
	give_up(first, 0, 19);
	want(first, SH, 10, 14); /* waits for the second */
	give_up(second, 0, 9);
	want(second, SH, 10, 19);
	give_up(third, 0, 99);
	give_up(second, 0, 99);
	give_up(first, 0, 99);
}

static void play_race(struct file files[3])
{
	struct file *around = &files[0], *waiter = &files[1], *holder = &files[2];
	struct world *world = around->host->world;

	want(around, SH, 0, 0);
	want(around, SH, 9, 9);
	want(holder, EX, 5, 5);
	want(waiter, SH, 5, 9);
	if (may_call(holder))
		record_unlock(holder, 5, 5);
	settle_alone(&world->three);
	want(around, EX, 5, 5);
	give_up(around, 9, 9);
	give_up(around, 5, 5);
	give_up(waiter, 5, 5);
	want(holder, EX, 5, 5);
	want(waiter, EX, 5, 5);
	want(around, EX, 5, 5);
	give_up(holder, 5, 5);
	give_up(around, 5, 5);
	give_up(waiter, 5, 5);
	give_up(around, 0, 9);
}

struct play {
	void (*run)(struct file files[3]);
	int host, how;
	long at;
};

/* Who does not wait leaves, which must be the turn of others. */
static void everybody_gets_his_turn(struct world *world, struct file files[3],
				    const struct play *play)
{
	int left = 3;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++) {
			if (files[i].owner == NULL || file_waits(&files[i]))
				continue;
			if (files[i].result != 0 && files[i].result != -EIO)
				fail_msg("host %d how %d at %ld: %d is told %d", play->host,
					 play->how, play->at, i, files[i].result);
			file_close(&files[i]);
			left--;
		}
		go_on(world);
	}
	if (left > 0 || !local_service_is_empty(world->service, "a"))
		fail_msg("host %d how %d at %ld: %d forgotten, left is: %s", play->host, play->how,
			 play->at, left, queue_text(world, "a"));
}

static long run_play(struct world *world, const struct play *play)
{
	struct host *host = world->hosts[play->host];
	struct file files[3];
	struct cast cast = {files, 3};

	world->on_operation = break_connection;
	host->operations = 0;
	host->break_at = play->at;
	host->break_how = play->how;
	open_three(world, files, 0 + 3 + 18);
	for (int i = 0; i < 3; i++)
		files[i].decisions = 1;
	watch_exclusion(world, &cast);
	play->run(files);
	go_on(world);
	host->break_at = 0;
	everybody_gets_his_turn(world, files, play);
	watch_exclusion(world, NULL);
	return host->operations;
}

static void loss_at_each_operation(struct world *world, void (*run)(struct file files[3]))
{
	struct play play = {.run = run};

	for (play.host = 0; play.host < HOSTS; play.host++) {
		play.at = 0;
		long length = run_play(world, &play);
		assert_true(length > 4);
		for (play.how = 0; play.how < BREAK_COUNT; play.how++)
			for (play.at = 1; play.at <= length; play.at++)
				run_play(world, &play);
		play.how = 0;
	}
}

static void test_loss_at_each_operation_of_changes(void **state)
{
	loss_at_each_operation(*state, play_changes);
}

static void test_loss_at_each_operation_of_a_race(void **state)
{
	loss_at_each_operation(*state, play_race);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(precedence_or_not),
		TEST(precedence_by_former_data),
		TEST(race_of_lists),
		TEST(race_by_chance),
		TEST(interrupted_race),
		TEST(two_with_precedence),
		TEST(who_has_passed_holds),
		TEST(loss_at_each_operation_of_changes),
		TEST(loss_at_each_operation_of_a_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
