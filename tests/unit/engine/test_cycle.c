/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles of waiting: EDEADLK where each in the cycle holds what the next one waits for, and nowhere
 * else; and nobody waits for ever, as long as those who do not wait release what they hold.
 */
#include <stdio.h>

#include "claim/data.h"
#include "order_fixture.h"

enum { BYTES = 12, PARTIES = 6, CALLS = 40, STEPS_MAX = 100000, SEEDS = 1000 };

/* One file and who uses it: by record locks, or by flock(2). */
struct party {
	struct file file;
	bool flock;
	char held[BYTES];      /* 'r', 'w' or '.' */
	char asked[BYTES + 1]; /* by a call that waits */
};

struct parties {
	struct world *world;
	struct party all[PARTIES];
	int steps; /* since the last call */
};

static bool conflict(const char *asked, const char *held)
{
	for (int i = 0; i < BYTES; i++) {
		if (asked[i] != '.' && held[i] != '.' && (asked[i] == 'w' || held[i] == 'w'))
			return true;
	}
	return false;
}

static void set(char *bytes, int start, int end, char kind)
{
	for (int i = start; i <= end; i++)
		bytes[i] = kind;
}

static void clear(char *bytes)
{
	set(bytes, 0, BYTES - 1, '.');
}

/* Whether a party that asks waits for another one by what is held only. */
static bool depends_on(const struct parties *parties, int from, int on, unsigned *visited)
{
	for (int i = 0; i < PARTIES; i++) {
		if (i == from || !conflict(parties->all[from].asked, parties->all[i].held))
			continue;
		if (i == on)
			return true;
		if (*visited & 1U << i || !file_waits(&parties->all[i].file))
			continue;
		*visited |= 1U << i;
		if (depends_on(parties, i, on, visited))
			return true;
	}
	return false;
}

static bool is_deadlock(const struct parties *parties, int from)
{
	unsigned visited = 0;

	return depends_on(parties, from, from, &visited);
}

/* What has been decided since the last step. */
static void note_decisions(struct parties *parties)
{
	for (int i = 0; i < PARTIES; i++) {
		struct party *party = &parties->all[i];

		if (file_waits(&party->file) || party->asked[0] == '\0')
			continue;
		if (party->file.result == 0) {
			for (int j = 0; j < BYTES; j++)
				if (party->asked[j] != '.')
					party->held[j] = party->asked[j];
		}
		party->asked[0] = '\0';
	}
	for (int i = 0; i < PARTIES; i++)
		for (int j = 0; j < i; j++)
			assert_false(conflict(parties->all[i].held, parties->all[j].held));
}

static void show(struct parties *parties)
{
	for (int i = 0; i < PARTIES; i++) {
		const struct party *party = &parties->all[i];

		print_message("%s %d on host %d: holds %.*s, asks %.*s\n",
			      party->flock ? "flock" : "records", i,
			      (int)(party->file.host - &parties->world->one), BYTES, party->held,
			      BYTES, party->asked[0] == '\0' ? "-" : party->asked);
	}
	print_message("%s\n", queue_text(parties->world, "a"));
}

/* Whoever goes behind the other, and it behind the first one again, never comes to rest. */
static void count_step(struct world *world)
{
	struct parties *parties = world->context;

	if (++parties->steps == STEPS_MAX) {
		show(parties);
		fail_msg("it does not come to rest");
	}
}

static void ask_for(struct parties *parties, int number, int start, int end, enum claim_mode mode,
		    bool waits)
{
	struct party *party = &parties->all[number];

	clear(party->asked);
	set(party->asked, start, end, mode == EX ? 'w' : 'r');
	if (party->flock)
		file_lock(&party->file, mode, waits);
	else
		record_lock(&party->file, mode, start, end, waits);

	bool deadlock = waits && is_deadlock(parties, number);
	parties->steps = 0;
	pass(parties->world, 20);
	if (waits && !file_waits(&party->file) && party->file.result == -EDEADLK && !deadlock) {
		show(parties);
		fail_msg("EDEADLK for %d, who is in no cycle", number);
	}
	if (deadlock)
		pass(parties->world, TIMEOUT_MS);
	if (deadlock && file_waits(&party->file) && is_deadlock(parties, number) && !party->flock) {
		show(parties);
		fail_msg("no EDEADLK for %d", number);
	}
	note_decisions(parties);
}

static void release(struct parties *parties, int number, int start, int end)
{
	struct party *party = &parties->all[number];

	set(party->held, start, end, '.');
	if (party->flock)
		file_unlock(&party->file);
	else
		record_unlock(&party->file, start, end);
	pass(parties->world, 20);
	note_decisions(parties);
}

static void random_call(struct parties *parties);

/* A call that waits is interrupted, and restarted after another one was made: in its place, if that
 * was soon enough. */
static void ask_again(struct parties *parties, int number)
{
	struct party *party = &parties->all[number];
	enum claim_mode mode = strchr(party->asked, 'w') != NULL ? EX : SH;
	int start = 0, end = BYTES - 1;

	while (party->asked[start] == '.')
		start++;
	while (party->asked[end] == '.')
		end--;

	file_cancel(&party->file);
	note_decisions(parties);
	random_call(parties);
	if (file_waits(&party->file))
		return;
	if (party->flock)
		release(parties, number, 0, BYTES - 1); /* as a conversion does */
	ask_for(parties, number, start, end, mode, true);
}

static void random_call(struct parties *parties)
{
	struct prng *prng = &parties->world->prng;
	int number = (int)prng_below(prng, (uint64_t)PARTIES);
	struct party *party = &parties->all[number];
	int start = (int)prng_below(prng, BYTES);
	int end = start + (int)prng_below(prng, 4);
	enum claim_mode mode = prng_below(prng, 3) == 0 ? EX : SH;

	if (file_waits(&party->file)) {
		if (prng_below(prng, 4) == 0)
			ask_again(parties, number);
		return;
	}
	if (end >= BYTES)
		end = BYTES - 1;
	if (party->flock) {
		start = 0;
		end = BYTES - 1;
		release(parties, number, 0, BYTES - 1);
	}
	if (prng_below(prng, 4) == 0)
		release(parties, number, start, end);
	else
		ask_for(parties, number, start, end, mode, prng_below(prng, 8) != 0);
}

/* All who do not wait release what they hold, until nobody waits. */
static void let_go(struct parties *parties)
{
	bool waits = true;

	for (int round = 0; waits && round <= PARTIES * 4; round++) {
		waits = false;
		for (int i = 0; i < PARTIES; i++) {
			if (file_waits(&parties->all[i].file))
				waits = true;
			else
				release(parties, i, 0, BYTES - 1);
		}
		pass(parties->world, 100);
		note_decisions(parties);
	}
	if (waits) {
		show(parties);
		fail_msg("somebody waits for ever");
	}
}

static void run(struct world *world, uint64_t seed, int hosts, bool flocks)
{
	static struct parties parties; /* world->context outlives the call */

	parties = (struct parties){.world = world};
	world->shuffled = true;
	world->context = &parties;
	world->on_step = count_step;
	prng_seed(&world->prng, seed);
	for (int i = 0; i < PARTIES; i++) {
		struct party *party = &parties.all[i];

		file_open(&party->file, world->hosts[prng_below(&world->prng, hosts)], "a");
		party->file.decisions = 1;
		party->flock = flocks && prng_below(&world->prng, 4) == 0;
		clear(party->held);
	}
	for (int i = 0; i < CALLS; i++)
		random_call(&parties);
	let_go(&parties);
	for (int i = 0; i < PARTIES; i++)
		file_close(&parties.all[i].file);
	settle(world);
	assert_queue(world, "a", "");
	world->on_step = NULL;
}

/* Each sequence of calls in a world of its own, so that one that fails can be run alone: seed,
 * number of hosts, in the environment as CYCLE. */
static void test_random_calls(void **state)
{
	unsigned long first = 1, last = SEEDS;
	int only = 0;

	if (getenv("CYCLE") != NULL) {
		assert_int_equal(sscanf(getenv("CYCLE"), "%lu %d", &first, &only), 2);
		last = first;
	}
	for (unsigned long seed = first; seed <= last; seed++) {
		for (int hosts = 1; hosts <= HOSTS; hosts++) {
			for (int flocks = 0; flocks < 2 && (only == 0 || only == hosts); flocks++) {
				print_message("CYCLE='%lu %d'\n", seed, hosts);
				assert_int_equal(world_setup(state), 0);
				run(*state, seed, hosts, flocks);
				world_teardown(state);
			}
		}
	}
}

/* Linux grants the third one at once, which waits here for one that only waits, and the first one
 * after it. That one must not be told that it waits for itself. */
static void test_waiter_in_between(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3], *first = &files[0], *second = &files[1];
		struct file *third = &files[2];

		open_three(world, files, h);
		ask(first, EX, 0, 9);
		ask(second, EX, 5, 14);
		ask(third, EX, 12, 24);
		assert_waits(third);
		ask(first, EX, 20, 29);
		assert_granted(third);
		assert_waits(first);
		assert_waits(second);
		drop(third, 12, 24);
		assert_granted(first);
		assert_ranges(first, "w0-9,w20-29");
		drop(first, 0, 29);
		assert_granted(second);
		close_all(files, 3);
	}
}

/* Processes that lock ranges of a file that was opened exclusively before they were forked. */
static void test_ranges_of_exclusive_open(void **state)
{
	struct world *world = *state;
	struct file files[3];

	file_open(&files[0], &world->one, "a");
	file_share(&files[1], &files[0]);
	file_share(&files[2], &files[0]);
	file_lock_by_open(&files[0], WAIT);
	settle(world);
	assert_granted(&files[0]);
	for (int i = 0; i < 3; i++)
		ask(&files[i], EX, i, i);
	ask(&files[0], EX, 1, 1);
	ask(&files[1], EX, 2, 2);
	assert_waits(&files[0]);
	assert_waits(&files[1]);
	ask(&files[2], EX, 0, 0);
	assert_denied(&files[2], -EDEADLK);
	drop(&files[2], 2, 2);
	assert_granted(&files[1]);
	drop(&files[1], 1, 2);
	assert_granted(&files[0]);
	for (int i = 0; i < 3; i++)
		record_flush(&files[i]);
	close_all(files, 1);
}

/* Whom a claim waited for releases its range while another host is about to send the claim back: at
 * that operation of this host. */
struct release {
	struct file *file;
	int at;
};

static void release_meanwhile(struct host *host)
{
	struct release *release = host->world->context;

	if (host != &host->world->one || --release->at != 0)
		return;
	record_unlock(release->file, 20, 29);
	settle_alone(&host->world->two);
}

/* The claim is granted then, or has lost its place. */
static void test_granted_meanwhile(void **state)
{
	bool passed = false, granted = false;

	world_teardown(state);
	for (int at = 1; at <= 20; at++) {
		struct file asks, holder, waits, between;
		struct release release = {&holder, at};

		assert_int_equal(world_setup(state), 0);
		struct world *world = *state;

		file_open(&asks, &world->one, "a");
		file_open(&holder, &world->two, "a");
		file_open_too(&waits, &holder, "a");
		file_open(&between, &world->two, "a");
		ask(&asks, EX, 0, 9);
		ask(&holder, EX, 20, 29);
		ask(&between, EX, 20, 34);
		ask(&waits, EX, 0, 0);
		world->context = &release;
		world->on_operation = release_meanwhile;
		ask(&asks, EX, 30, 34);
		world->on_operation = NULL;
		assert_true(file_waits(&asks) != file_waits(&between) || release.at > 0);
		passed |= file_waits(&between);
		granted |= file_waits(&asks);
		if (file_waits(&between))
			drop(&asks, 30, 34);
		else
			drop(&between, 20, 34);
		assert_granted(&asks);
		file_close(&asks);
		settle(world);
		assert_granted(&waits);
		file_close(&waits);
		file_close(&holder);
		file_close(&between);
		settle(world);
		assert_queue(world, "a", "");
		if (at < 20)
			world_teardown(state);
	}
	assert_true(passed && granted);
}

/* A call that has been interrupted keeps its place for a while, and is in no cycle; one that goes
 * on to wait is. */
static void test_interrupted(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3], *first = &files[0], *second = &files[1];

		open_three(world, files, h);
		ask(first, EX, 0, 9);
		ask(second, EX, 10, 19);
		ask(first, EX, 10, 10);
		assert_waits(first);
		file_cancel(first);
		ask(second, EX, 0, 0);
		pass(world, LINGER_MS + 10);
		assert_waits(second);
		ask(first, EX, 10, 10);
		pass(world, LINGER_MS + 10);
		assert_denied(first, -EDEADLK);
		assert_waits(second);
		drop(first, 0, 9);
		assert_granted(second);
		close_all(files, 3);
	}
}

/* A flock waits as well, and gives way; so does the one that asks by flock. */
static void test_flock_in_between(void **state)
{
	struct world *world = *state;

	for (int h = 0; h < ASSIGNMENTS; h++) {
		struct file files[3], *first = &files[0], *whole = &files[1];
		struct file *third = &files[2];

		open_three(world, files, h);
		ask(first, EX, 0, 9);
		file_lock(whole, EX, WAIT);
		settle(world);
		ask(third, EX, 20, 29);
		assert_waits(whole);
		assert_waits(third);
		if (h % 2 == 0) {
			ask(first, EX, 25, 25);
		} else {
			file_lock(first, EX, WAIT);
			settle(world);
		}
		assert_granted(third);
		assert_waits(first);
		assert_waits(whole);
		drop(third, 20, 29);
		assert_granted(first);
		file_unlock(first);
		drop(first, 0, 29);
		assert_granted(whole);
		close_all(files, 3);
	}
}

/* Another client writes over what sends a claim back, before its host has read that. */
static void test_sent_back_is_overwritten(void **state)
{
	struct world *world = *state;
	struct file holder, whole, third;

	file_open(&holder, &world->one, "a");
	file_open(&whole, &world->two, "a");
	file_open(&third, &world->three, "a");
	ask(&holder, EX, 0, 9);
	file_lock(&whole, EX, WAIT);
	settle(world);
	ask(&third, EX, 20, 29);
	record_lock(&holder, EX, 25, 25, WAIT);
	for (int i = 0; i < 50; i++) {
		settle_alone(&world->one);
		settle_alone(&world->three);
	}
	assert_granted(&third);
	foreign_write(world, "a", 1, CLAIM_DATA_CURATOR_REVOKE);
	settle(world);
	drop(&holder, 0, 9);
	assert_waits(&whole); /* or it would hold beside the third one */
	assert_waits(&holder);
	drop(&third, 20, 29);
	assert_granted(&whole); /* who holds nothing any more has no anchor, and its turn later */
	file_unlock(&whole);
	settle(world);
	assert_granted(&holder);
	file_close(&holder);
	file_close(&whole);
	file_close(&third);
	settle(world);
	assert_queue(world, "a", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waiter_in_between, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_granted_meanwhile, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_sent_back_is_overwritten, world_setup,
						world_teardown),
		cmocka_unit_test_setup_teardown(test_flock_in_between, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, world_setup, world_teardown),
		cmocka_unit_test_setup_teardown(test_ranges_of_exclusive_open, world_setup,
						world_teardown),
		cmocka_unit_test(test_random_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
