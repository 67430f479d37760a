/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises to those who ask whether they still hold their locks, what tokens it
 * tells them, and that it notices when somebody takes claims away by hand.
 */
#include "fixture.h"

enum { BEAT_MS = TIMEOUT_MS / 8 };

static uint64_t token_of(struct world *world, struct file *file)
{
	file_prove(file, true);
	settle(world);
	assert_granted(file);
	assert_true(file->token > 0);
	return file->token;
}

static void test_nothing_held(void **state)
{
	struct world *world = *state;
	struct file file, waiter, thread;

	file_open(&file, &world->one, "a");
	file_prove(&file, false);
	assert_granted(&file); /* at once */
	file_prove(&file, true);
	assert_denied(&file, -ENODATA);
	foreign_place(world, "a", EX);
	file_open_and_lock(&waiter, &world->one, EX);
	world->one.operations = 0;
	file_share(&thread, &waiter);
	file_prove(&thread, true); /* to wait is not to hold */
	assert_denied(&thread, -ENODATA);
	assert_int_equal(world->one.operations, 0);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_holds(&waiter);
	file_unlock(&waiter);
	settle(world);
	file_prove(&waiter, true);
	assert_denied(&waiter, -ENODATA);
	file_close(&waiter);
	file_close(&file);
}

static void test_asks_the_service(void **state)
{
	struct world *world = *state;
	struct file file;

	file_open_and_lock(&file, &world->one, EX);
	world->one.operations = 0;
	file_prove(&file, false);
	assert_waits(&file); /* for the service */
	settle(world);
	assert_granted(&file);
	assert_int_equal(world->one.operations, 1);
	file_close(&file);
}

/* From grant to grant, on any host and in any mode, and the same for one grant. */
static void test_tokens_grow(void **state)
{
	struct world *world = *state;
	struct file files[3];
	uint64_t last = 0;

	for (int i = 0; i < 3; i++)
		file_open(&files[i], world->hosts[i % 2], "a");
	for (int round = 0; round < 12; round++) {
		struct file *file = &files[round % 3];
		uint64_t token;

		if (round % 4 == 3)
			record_lock(file, EX, 0, 9, WAIT);
		else
			file_lock(file, round % 2 ? SH : EX, WAIT);
		settle(world);
		assert_granted(file);
		token = token_of(world, file);
		assert_true(token > last);
		assert_int_equal(token_of(world, file), token);
		pass(world, 3 * BEAT_MS);
		assert_int_equal(token_of(world, file), token);
		last = token;
		if (round % 4 == 3)
			record_unlock(file, 0, 9);
		else
			file_unlock(file);
		settle(world);
	}
	for (int i = 0; i < 3; i++)
		file_close(&files[i]);
}

/* A new grant through the same open file has a new one: a conversion, and a further range, also of
 * another process. */
static void test_new_grant_new_token(void **state)
{
	struct world *world = *state;
	struct file file, other, twin;
	uint64_t token, last;

	file_open_and_lock(&file, &world->one, EX);
	last = token_of(world, &file);
	file_lock(&file, SH, WAIT);
	settle(world);
	token = token_of(world, &file);
	assert_true(token > last);
	last = token;
	file_lock(&file, SH, WAIT); /* is held already */
	settle(world);
	assert_int_equal(token_of(world, &file), last);
	file_unlock(&file);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	token = token_of(world, &file);
	assert_true(token > last);
	last = token;
	file_share(&other, &file);
	record_lock(&other, EX, 20, 29, WAIT);
	settle(world);
	token = token_of(world, &file);
	assert_true(token > last);
	record_unlock(&file, 0, 4);
	settle(world);
	assert_int_equal(token_of(world, &file), token);
	/* An open file through which nothing was locked has none, though its process holds. */
	file_open_too(&twin, &file, "a");
	file_prove(&twin, true);
	assert_denied(&twin, -ENODATA);
	record_flush(&other);
	file_close(&file);
	file_close(&twin);
}

/* A range that is held by a flock through another open file. */
static void test_covered_by_another_file(void **state)
{
	struct world *world = *state;
	struct file file, other;
	uint64_t last;

	file_open_and_lock(&file, &world->one, EX);
	record_lock(&file, EX, 0, 9, WAIT);
	file_open_too(&other, &file, "a");
	record_lock(&other, EX, 20, 29, WAIT);
	settle(world);
	assert_granted(&other);
	assert_queue(world, "a", "W");
	last = token_of(world, &other);
	assert_int_equal(token_of(world, &other), last);
	foreign_withdraw(world, "a", 0);
	file_prove(&other, false);
	settle(world);
	assert_denied(&other, -EIO);
	file_close(&other);
	file_close(&file);
}

/* Two threads ask at once. */
static void test_asked_twice_at_once(void **state)
{
	struct world *world = *state;
	struct file file, thread;

	file_open_and_lock(&file, &world->one, EX);
	file_share(&thread, &file);
	file_prove(&file, true);
	file_prove(&thread, true);
	settle(world);
	assert_granted(&file);
	assert_granted(&thread);
	assert_int_equal(file.token, thread.token);
	assert_int_equal(token_of(world, &file), thread.token);
	file_close(&file);
}

/* What others read of the claim is what it was. */
/* One thread releases and locks anew while another one asks, at whatever moment; and another host
 * holds in between. What the question is answered with is of the lock that was held when it came:
 * younger than those before, older than the other host's. Who asks after that is told of the new
 * one. */
static void test_locked_anew_meanwhile(void **state)
{
	enum { STEPS = 12 };
	struct world *world = *state;
	struct file file, thread, rival;
	uint64_t former, others, present;

	file_open(&file, &world->one, "a");
	file_open(&rival, &world->two, "a");
	file_share(&thread, &file);
	for (int steps = 0; steps < STEPS; steps++) {
		file_lock(&file, EX, WAIT);
		settle(world);
		former = token_of(world, &file);
		file_unlock(&file);
		file_lock(&file, EX, WAIT);
		settle(world);
		file_lock(&rival, EX, WAIT);
		settle(world);
		file_prove(&thread, true);
		for (int i = 0; i < steps; i++)
			step(world);
		file_unlock(&file);
		file_lock(&file, EX, WAIT);
		settle(world);
		assert_holds(&rival);
		others = token_of(world, &rival);
		assert_granted(&thread);
		assert_in_range(thread.token, former + 1, others - 1);
		file_unlock(&rival);
		settle(world);
		assert_holds(&file);
		file_prove(&thread, true);
		present = token_of(world, &file);
		assert_true(present > others);
		assert_int_equal(thread.token, present);
		file_unlock(&file);
		settle(world);
	}
	file_close(&rival);
	file_close(&file);
}

/* Somebody else has changed the claim's data, so it is read before the token is asked for again;
 * and one of two processes lets go, at whatever moment. The other one has its answer. */
static void test_released_meanwhile(void **state)
{
	enum { STEPS = 12 };
	struct world *world = *state;
	int told = 0;

	for (int steps = 0; steps < STEPS; steps++) {
		struct file file, thread;

		file_open_and_lock(&file, &world->one, EX);
		foreign_write(world, "a", 0, "format=1\n");
		file_share(&thread, &file);
		file_prove(&thread, true);
		for (int i = 0; i < steps; i++)
			step(world);
		file_unlock(&file);
		settle(world);
		if (thread.decisions == 1 && thread.result == 0)
			told++;
		else
			assert_denied(&thread, -ENODATA);
		file_close(&file);
		settle(world);
	}
	assert_in_range(told, 1, STEPS - 4);
}

static void test_claim_stays(void **state)
{
	struct world *world = *state;
	struct file file;

	file_open(&file, &world->one, "a");
	record_lock(&file, EX, 0, 99, WAIT);
	settle(world);
	record_unlock(&file, 40, 59);
	token_of(world, &file);
	assert_queue(world, "a", "w0-39,w60-99");
	file_close(&file);
	file_open_and_lock(&file, &world->one, EX);
	token_of(world, &file);
	assert_queue(world, "a", "W");
	assert_non_null(strstr(world->data, "host=here\n"));
	file_close(&file);
}

static void test_signal(void **state)
{
	struct world *world = *state;
	struct file file;

	file_open_and_lock(&file, &world->one, EX);
	file_prove(&file, true);
	file_cancel_proof(&file);
	settle(world);
	disconnect(&world->one);
	file_prove(&file, true); /* not sent */
	file_cancel_proof(&file);
	reconnect(&world->one);
	token_of(world, &file);
	file_prove(&file, true);
	file_close(&file); /* with the question on its way */
	settle(world);
	assert_int_equal(file.decisions, 0);
}

/* Whatever happens to the connection and the session: the answer is true, and it comes. */
static void test_broken_connection(void **state)
{
	struct world *world = *state;

	world->on_operation = break_connection;
	for (int how = 0; how < BREAK_COUNT; how++) {
		for (int token = 0; token < 2; token++) {
			struct file file;
			file_take(&file, &world->one);
			world->one.operations = 0;
			world->one.break_at = 1;
			world->one.break_how = how;
			file_prove(&file, token == 1);
			settle(world);
			assert_waits(&file);
			reconnect(&world->one);
			pass(world, 200);
			if (how == BREAK_EXPIRE)
				assert_denied(&file, -EIO);
			else
				assert_granted(&file);
			assert_int_equal(file.lost, how == BREAK_EXPIRE);
			world->one.break_at = 0;
			file_close(&file);
			settle(world);
		}
	}
}

/* The lease ends before there is an answer. */
static void test_lost_meanwhile(void **state)
{
	struct world *world = *state;
	struct file file, range;

	file_open(&file, &world->one, "a");
	file_lock(&file, EX, WAIT);
	file_open(&range, &world->one, "b");
	record_lock(&range, EX, 0, 9, WAIT);
	settle(world);
	store_faulty_cut_off(world->one.store);
	file_prove(&file, true);
	file_prove(&range, false);
	pass(world, TIMEOUT_MS / 2);
	assert_waits(&file);
	assert_waits(&range);
	pass(world, TIMEOUT_MS / 2);
	assert_denied(&file, -EIO);
	assert_denied(&range, -EIO);
	assert_int_equal(file.lost, 1);
	assert_int_equal(engine_prove(file.owner, true, &file, &file.proof), -EIO);
	store_faulty_heal(world->one.store);
	pass(world, TIMEOUT_MS);
	reconnect(&world->one);
	file_close(&file);
	file_close(&range);
}

/* Claims that somebody takes away */

static void test_holder_is_told(void **state)
{
	struct world *world = *state;
	struct file file, other, rival;

	file_open(&other, &world->one, "b");
	file_lock(&other, EX, WAIT);
	file_open_and_lock(&file, &world->one, EX);
	file_open_and_lock(&rival, &world->two, EX);
	foreign_withdraw(world, "a", 0);
	pass(world, BEAT_MS);
	assert_int_equal(file.lost, 1);
	assert_holds(&rival);
	assert_holds(&other);
	assert_int_equal(other.lost, 0);
	assert_int_equal(rival.lost, 0);
	file_close(&file);
	file_close(&other);
	file_close(&rival);
}

static void test_holder_is_told_when_it_asks(void **state)
{
	struct world *world = *state;
	struct file file;

	for (int token = 0; token < 2; token++) {
		file_open_and_lock(&file, &world->one, EX);
		foreign_withdraw(world, "a", 0);
		file_prove(&file, token == 1);
		settle(world);
		assert_denied(&file, -EIO);
		assert_int_equal(file.lost, 1);
		file_close(&file);
	}
}

/* Of the ranges that a process holds. */
static void test_process_is_told(void **state)
{
	struct world *world = *state;
	struct file file, looker;

	file_open(&file, &world->one, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&file, EX, 20, 29, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-9 | w20-29");
	foreign_withdraw(world, "a", 1);
	pass(world, BEAT_MS);
	assert_int_equal(file.lost, 1);
	assert_ranges(&file, "");
	assert_queue(world, "a", "w0-9"); /* keeps others out until the file is closed */
	file_open(&looker, &world->one, "a");
	record_test(&looker, SH, 5, 99);
	settle(world);
	assert_true(looker.in_the_way);
	assert_int_equal(looker.conflict.range.mode, EX);
	assert_int_equal(looker.conflict.range.span.start, 0);
	assert_int_equal(looker.conflict.range.span.end, 9);
	file_close(&looker);
	file_close(&file);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Waiters queue again, at the end. */
static void test_waiter_queues_again(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, next;

	file_open_and_lock(&holder, &world->two, EX);
	file_open_and_lock(&waiter, &world->one, EX);
	file_open_and_lock(&next, &world->two, EX);
	foreign_withdraw(world, "a", 1);
	pass(world, BEAT_MS);
	assert_int_equal(queue_length(world, "a"), 3);
	file_unlock(&holder);
	settle(world);
	assert_holds(&next);
	assert_waits(&waiter);
	file_unlock(&next);
	settle(world);
	assert_holds(&waiter);
	file_close(&holder);
	file_close(&waiter);
	file_close(&next);
}

/* Locks many/0, many/1, ... of one host. */
static void hold_many(struct world *world, struct file *files, int count)
{
	char path[16];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "many/%d", i);
		file_open(&files[i], &world->one, path);
		file_lock(&files[i], EX, WAIT);
	}
	settle(world);
}

/* More locks than one heartbeat brings along, and all of them taken away. */
static void test_all_are_taken_away(void **state)
{
	enum { FILES = 3 * STORE_PROOFS_MAX };
	struct world *world = *state;
	struct file *files = calloc(FILES, sizeof(*files));
	char path[16];

	hold_many(world, files, FILES);
	pass(world, 10 * TIMEOUT_MS);
	for (int i = 0; i < FILES; i++)
		assert_int_equal(files[i].lost, 0);
	/* Each is shown in its turn. */
	snprintf(path, sizeof(path), "many/%d", FILES - 1);
	foreign_withdraw(world, path, 0);
	pass(world, 4 * BEAT_MS);
	assert_int_equal(files[FILES - 1].lost, 1);
	for (int i = 0; i < FILES - 1; i++) {
		snprintf(path, sizeof(path), "many/%d", i);
		foreign_withdraw(world, path, 0);
	}
	pass(world, 4 * BEAT_MS);
	for (int i = 0; i < FILES; i++) {
		assert_int_equal(files[i].lost, 1);
		file_close(&files[i]);
	}
	free(files);
}

/* Many claims of one open file, with a long path and long data: no more is asked in one transaction
 * than the service takes. */
static void test_long_claims(void **state)
{
	struct world *world = *state;
	struct file *files = calloc(STORE_PROOFS_MAX, sizeof(*files));
	char path[4096];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	file_open(&files[0], &world->one, path);
	for (int i = 0; i < PROCESS_RANGES; i++) {
		record_lock(&files[0], EX, INT64_MAX - 2 * i, INT64_MAX - 2 * i, TRY);
		settle(world);
	}
	for (int i = 1; i < STORE_PROOFS_MAX; i++) {
		file_share(&files[i], &files[0]);
		record_lock(&files[i], EX, i, i, TRY);
		settle(world);
		assert_granted(&files[i]);
	}
	token_of(world, &files[0]);
	file_close(&files[0]);
	free(files);
}

static struct store_ops bent_ops;
static size_t proofs_shown;
static int64_t proofs_ms, proofs_now_ms; /* when the latest were shown, and what time it is */
static bool shown[4 * STORE_PROOFS_MAX]; /* by the number in the name of the lock */

/* Instead of the store's: what a heartbeat shows is noted, and not answered. */
static void note_proofs(struct store *store, void *tag, const struct store_proof *proofs,
			size_t count)
{
	assert_null(tag);
	proofs_ms = proofs_now_ms;
	for (size_t i = 0; i < count; i++) {
		size_t number = (size_t)atoi(strrchr(proofs[i].path, '/') + 1);

		proofs_shown += !shown[number];
		shown[number] = true;
	}
}

/* A lease that needs no answers, but heartbeats. */
static void describe_lease(struct store *store, int64_t now_ms, struct store_lease *ret)
{
	*ret = (struct store_lease){
		.end_ms = INT64_MAX,
		.grants = true,
		.beat_ms = proofs_ms + BEAT_MS,
		.touch_ms = INT64_MAX,
	};
	proofs_now_ms = now_ms;
}

static void note_proofs_of(struct host *host)
{
	bent_ops = *host->store->ops;
	bent_ops.prove = note_proofs;
	bent_ops.lease = describe_lease;
	proofs_ms = host_clock(host);
	host->store->ops = &bent_ops;
}

/* So many heartbeats, each answered by that; returns how many claims they showed. */
static size_t show(struct world *world, int beats, int error)
{
	memset(shown, 0, sizeof(shown));
	proofs_shown = 0;
	for (int i = 0; i < beats; i++) {
		pass(world, BEAT_MS);
		engine_store_events.on_proved(world->one.engine, NULL, error, NULL, 0);
	}
	return proofs_shown;
}

/* Where the store does not say whether a claim stands, the others have their turn all the same. */
static void test_turns_without_rights(void **state)
{
	enum { FILES = 3 * STORE_PROOFS_MAX };
	struct world *world = *state;
	struct file *files = calloc(FILES, sizeof(*files));
	const struct store_ops *ops = world->one.store->ops;

	hold_many(world, files, FILES);
	note_proofs_of(&world->one);
	assert_int_equal(show(world, 4, 0), FILES);
	assert_int_equal(show(world, 4, -EACCES), FILES);
	assert_int_equal(show(world, 4, -EACCES), FILES);
	/* What was shown along with another failure is shown again. */
	show(world, 1, -ECONNRESET);
	assert_int_equal(show(world, 1, -ECONNRESET), STORE_PROOFS_MAX);
	assert_int_equal(show(world, 2, -ECONNRESET), STORE_PROOFS_MAX);
	for (int i = 0; i < FILES; i++) {
		assert_int_equal(files[i].lost, 0);
		file_close(&files[i]);
	}
	world->one.store->ops = ops;
	free(files);
}

/* Claims of two znodes have half the room. */
static void test_turns_of_pairs(void **state)
{
	enum { FILES = STORE_PROOFS_MAX + 1 };
	struct world *world = *state;
	struct file files[FILES];
	const struct store_ops *ops = world->one.store->ops;

	world->policy.recipe = CLAIM_CURATOR_ANY;
	hold_many(world, files, FILES);
	note_proofs_of(&world->one);
	assert_int_equal(show(world, 1, 0), STORE_PROOFS_MAX / 2);
	assert_int_equal(show(world, 3, 0), FILES);
	for (int i = 0; i < FILES; i++)
		file_close(&files[i]);
	world->one.store->ops = ops;
}

static const struct store_ops *true_ops;
static int watches;

static void count_watch(struct store *store, void *tag, const char *path, const char *name)
{
	watches++;
	true_ops->watch(store, tag, path, name);
}

/* However many locks are held, all are watched in the end, some with each heartbeat. */
static void test_many_are_overseen(void **state)
{
	enum { FILES = 600, AT_A_TIME = 500 };
	struct world *world = *state;
	struct file *files = calloc(FILES, sizeof(*files));
	char path[16];

	hold_many(world, files, FILES);
	true_ops = world->one.store->ops;
	bent_ops = *true_ops;
	bent_ops.watch = count_watch;
	world->one.store->ops = &bent_ops;
	watches = 0;
	pass(world, BEAT_MS);
	assert_int_equal(watches, AT_A_TIME);
	pass(world, BEAT_MS);
	assert_int_equal(watches, FILES);
	pass(world, TIMEOUT_MS);
	assert_int_equal(watches, FILES);
	world->one.store->ops = true_ops;
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "many/%d", i);
		foreign_withdraw(world, path, 0);
		settle(world);
		assert_int_equal(files[i].lost, 1);
		file_close(&files[i]);
	}
	free(files);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_held),
		TEST(asks_the_service),
		TEST(tokens_grow),
		TEST(new_grant_new_token),
		TEST(covered_by_another_file),
		TEST(asked_twice_at_once),
		TEST(locked_anew_meanwhile),
		TEST(released_meanwhile),
		TEST(claim_stays),
		TEST(signal),
		TEST(broken_connection),
		TEST(lost_meanwhile),
		TEST(holder_is_told),
		TEST(holder_is_told_when_it_asks),
		TEST(process_is_told),
		TEST(waiter_queues_again),
		TEST(all_are_taken_away),
		TEST(long_claims),
		TEST(turns_without_rights),
		TEST(turns_of_pairs),
		TEST(many_are_overseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
