/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises about locks whose claims go on from one caller of a host to the next
 * (handoff), and are kept while nobody uses them (keep).
 */
#include "fixture.h"

enum { BEAT_MS = TIMEOUT_MS / 8, LEASE_MS = TIMEOUT_MS * 6 / 10, KEEP_MS = 300 };
enum { CALLERS = 5 };

static void set_policy(struct world *world, int64_t handoff, int64_t keep_ms)
{
	world->policy.handoff = handoff;
	world->policy.keep_ms = keep_ms;
}

static void unlock(struct file *file)
{
	file_unlock(file);
	settle(file->host->world);
}

static void close_files(struct file *files, size_t count)
{
	struct world *world = files[0].host->world;

	for (size_t i = 0; i < count; i++)
		file_close(&files[i]);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* Callers of one host have one claim, in the order of their asking, without a word to the store. */
static void test_goes_on(void **state)
{
	struct world *world = *state;
	struct file files[CALLERS];
	long operations;

	set_policy(world, 1, 0);
	for (int i = 0; i < CALLERS; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	assert_holds(&files[0]);
	assert_queue(world, "a", "W");
	operations = world->one.operations;
	for (int i = 0; i < CALLERS - 1; i++) {
		assert_int_equal(engine_counts(world->one.engine).waiters, CALLERS - 1 - i);
		assert_int_equal(engine_counts(world->one.engine).holders, 1);
		unlock(&files[i]);
		assert_idle(&files[i]);
		assert_holds(&files[i + 1]);
		for (int j = i + 2; j < CALLERS; j++)
			assert_waits(&files[j]);
	}
	assert_int_equal(world->one.operations, operations);
	unlock(&files[CALLERS - 1]);
	assert_queue(world, "a", "");
	close_files(files, CALLERS);
}

/* While another host waits, that many follow the first, and the others queue behind that host. */
static void test_limit(void **state)
{
	struct world *world = *state;

	for (int handoff = 1; handoff <= 3; handoff++) {
		struct file files[CALLERS], other;

		set_policy(world, handoff, 0);
		for (int i = 0; i < CALLERS; i++)
			file_open_and_lock(&files[i], &world->one, EX);
		file_open_and_lock(&other, &world->two, EX);
		for (int i = 0; i <= handoff; i++) {
			assert_holds(&files[i]);
			assert_waits(&other);
			unlock(&files[i]);
		}
		assert_holds(&other);
		for (int i = handoff + 1; i < CALLERS; i++)
			assert_waits(&files[i]);
		unlock(&other);
		for (int i = handoff + 1; i < CALLERS; i++) {
			assert_holds(&files[i]);
			unlock(&files[i]);
		}
		file_close(&other);
		close_files(files, CALLERS);
	}
}

/* Another host's turn comes also if a former one has waited in vain while the same caller held. */
static void test_limit_after_contention(void **state)
{
	struct world *world = *state;
	struct file files[CALLERS], other, reader;

	set_policy(world, 1, 0);
	for (int i = 0; i < CALLERS; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	file_open_and_lock(&other, &world->two, EX);
	file_open_and_lock(&reader, &world->one, SH);
	file_cancel(&other);
	pass(world, LINGER_MS);
	file_cancel(&reader);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "W");
	file_lock(&reader, SH, WAIT); /* its list shows that the other host has gone */
	settle(world);
	file_cancel(&reader);
	pass(world, LINGER_MS);
	file_lock(&other, EX, WAIT);
	settle(world);
	unlock(&files[0]);
	assert_holds(&files[1]);
	unlock(&files[1]);
	assert_holds(&other);
	file_close(&other);
	file_close(&reader);
	close_files(files, CALLERS);
}

/* The first to queue behind others is not one of those. */
static void test_limit_begins_with_the_turn(void **state)
{
	struct world *world = *state;
	struct file first, second, third, other;

	set_policy(world, 1, 0);
	file_open_and_lock(&other, &world->two, EX);
	file_open_and_lock(&first, &world->one, EX);
	file_open_and_lock(&second, &world->one, EX);
	file_open_and_lock(&third, &world->one, EX);
	assert_queue(world, "a", "W | W");
	unlock(&other);
	assert_holds(&first);
	file_lock(&other, EX, WAIT);
	settle(world);
	unlock(&first);
	assert_holds(&second);
	unlock(&second);
	assert_holds(&other);
	unlock(&other);
	assert_holds(&third);
	unlock(&third);
	file_close(&other);
	file_close(&first);
	file_close(&second);
	file_close(&third);
}

static void test_keep(void **state)
{
	struct world *world = *state;
	struct file file, next;
	long operations;

	set_policy(world, 0, KEEP_MS);
	file_open_and_lock(&file, &world->one, EX);
	unlock(&file);
	assert_queue(world, "a", "W");
	assert_int_equal(engine_counts(world->one.engine).holders, 0);
	assert_int_equal(engine_counts(world->one.engine).kept, 1);
	operations = world->one.operations;
	for (int i = 0; i < 10; i++) {
		file_lock(&file, EX, i % 2 == 0);
		settle(world);
		assert_holds(&file);
		assert_int_equal(engine_counts(world->one.engine).kept, 0);
		unlock(&file);
		file_take(&next, &world->one);
		file_close(&next);
		settle(world);
	}
	assert_int_equal(world->one.operations, operations);
	pass(world, KEEP_MS - 1);
	assert_queue(world, "a", "W");
	pass(world, 1);
	assert_queue(world, "a", "");
	assert_int_equal(engine_counts(world->one.engine).kept, 0);
	file_close(&file);
	settle(world);
	assert_int_equal(engine_counts(world->one.engine).locks, 0);
}

/* With keep alone each caller that has to wait has a claim of its own. */
static void test_keep_is_no_handoff(void **state)
{
	struct world *world = *state;
	struct file first, second, other;

	set_policy(world, 0, KEEP_MS);
	file_open_and_lock(&first, &world->one, EX);
	file_open_and_lock(&other, &world->two, EX);
	file_open_and_lock(&second, &world->one, EX);
	assert_queue(world, "a", "W | W | W");
	unlock(&first);
	assert_holds(&other);
	assert_waits(&second);
	unlock(&other);
	assert_holds(&second);
	file_close(&first);
	file_close(&second);
	file_close(&other);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* Who comes back at once does not overtake one whose claim is still on its way. */
static void test_keep_is_in_order(void **state)
{
	struct world *world = *state;
	struct file first, second;

	set_policy(world, 0, KEEP_MS);
	file_open_and_lock(&first, &world->one, EX);
	file_open(&second, &world->one, "a");
	file_lock(&second, EX, WAIT);
	file_unlock(&first);
	file_lock(&first, EX, WAIT);
	settle(world);
	assert_holds(&second);
	assert_waits(&first);
	unlock(&second);
	assert_holds(&first);
	file_close(&first);
	file_close(&second);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* Another host gets what is kept when it asks, also if it does not wait. */
static void test_keep_gives_way(void **state)
{
	struct world *world = *state;

	for (int waits = 0; waits < 2; waits++) {
		for (int age = 0; age < 2; age++) {
			struct file file, other;

			set_policy(world, 0, 10 * TIMEOUT_MS);
			file_open_and_lock(&file, &world->one, EX);
			unlock(&file);
			pass(world, age * TIMEOUT_MS);
			file_open(&other, &world->two, "a");
			file_lock(&other, EX, waits);
			settle(world);
			assert_holds(&other);
			assert_queue(world, "a", "W");
			unlock(&other);
			/* And back, and to another client. */
			file_lock(&file, EX, TRY);
			settle(world);
			assert_holds(&file);
			unlock(&file);
			foreign_place(world, "a", EX);
			settle(world);
			assert_queue(world, "a", "W");
			foreign_withdraw(world, "a", 0);
			file_close(&file);
			file_close(&other);
			settle(world);
			assert_queue(world, "a", "");
		}
	}
}

/* It is kept as ever after others have waited in vain while it was used: nobody has to, who comes
 * then, and who came meanwhile is heard of. */
static void test_keep_after_contention(void **state)
{
	struct world *world = *state;

	for (int waits = 0; waits < 2; waits++) {
		struct file file, second, other, third;

		set_policy(world, 0, 10 * TIMEOUT_MS);
		file_open_and_lock(&file, &world->one, EX);
		file_open_and_lock(&other, &world->two, EX);
		file_open_and_lock(&second, &world->one, EX);
		file_cancel(&other);
		pass(world, LINGER_MS);
		assert_queue(world, "a", "W | W");
		file_open(&third, &world->three, "a");
		if (waits)
			file_lock(&third, EX, WAIT);
		settle(world);
		file_cancel(&second);
		pass(world, LINGER_MS);
		unlock(&file);
		if (!waits) {
			assert_int_equal(engine_counts(world->one.engine).kept, 1);
			file_lock(&third, EX, TRY);
			settle(world);
		}
		assert_holds(&third);
		assert_queue(world, "a", "W");
		file_close(&file);
		file_close(&second);
		file_close(&other);
		file_close(&third);
		pass(world, 10 * TIMEOUT_MS);
		assert_queue(world, "a", "");
	}
}

/* A call that does not wait is refused by a lock that is used, whoever it is used by. */
static void test_try_of_what_is_used(void **state)
{
	struct world *world = *state;

	for (int handoff = 0; handoff < 2; handoff++) {
		struct file first, second, other, third;
		int64_t begin_ms = world->now_ms;

		set_policy(world, handoff, 10 * TIMEOUT_MS);
		file_open_and_lock(&first, &world->one, EX);
		unlock(&first);
		file_open_and_lock(&second, &world->one, EX);
		file_open(&other, &world->two, "a");
		file_open(&third, &world->three, "a");
		file_lock(&other, EX, TRY);
		settle(world);
		assert_denied(&other, -EWOULDBLOCK);
		file_lock(&third, EX, WAIT);
		settle(world);
		file_lock(&other, EX, TRY);
		settle(world);
		assert_denied(&other, -EWOULDBLOCK);
		file_lock(&first, EX, TRY);
		settle(world);
		assert_denied(&first, -EWOULDBLOCK);
		assert_int_equal(world->now_ms, begin_ms);
		unlock(&second);
		assert_holds(&third);
		file_close(&first);
		file_close(&second);
		file_close(&other);
		file_close(&third);
		pass(world, 10 * TIMEOUT_MS);
		assert_queue(world, "a", "");
	}
}

/* Readers: one claim each at a time, which is kept for the next one; a writer of the same host
 * makes it go. */
static void test_modes(void **state)
{
	struct world *world = *state;
	struct file one, two, writer;
	long operations;

	set_policy(world, 5, KEEP_MS);
	file_open_and_lock(&one, &world->one, SH);
	file_open_and_lock(&two, &world->one, SH);
	assert_holds(&one);
	assert_holds(&two);
	assert_queue(world, "a", "R | R");
	unlock(&one);
	unlock(&two);
	operations = world->one.operations;
	file_lock(&two, SH, TRY);
	file_lock(&one, SH, WAIT);
	settle(world);
	assert_holds(&one);
	assert_holds(&two);
	assert_int_equal(world->one.operations, operations);
	file_open_and_lock(&writer, &world->one, EX);
	assert_waits(&writer);
	unlock(&one);
	assert_waits(&writer);
	unlock(&two);
	assert_holds(&writer);
	assert_queue(world, "a", "W");
	/* A conversion lets go of the old lock first. */
	file_lock(&writer, SH, WAIT);
	settle(world);
	assert_holds(&writer);
	assert_queue(world, "a", "R");
	file_lock(&writer, EX, WAIT);
	file_lock(&one, EX, WAIT);
	settle(world);
	assert_holds(&writer);
	unlock(&writer);
	assert_holds(&one);
	file_close(&one);
	file_close(&two);
	file_close(&writer);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* Signals: who gives up is passed over, who comes back keeps the place, who dies leaves nothing. */
static void test_cancel(void **state)
{
	struct world *world = *state;
	struct file files[CALLERS];

	set_policy(world, 100, 0);
	for (int i = 0; i < CALLERS; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	file_cancel(&files[1]);
	file_cancel(&files[2]);
	settle(world);
	file_lock(&files[2], EX, WAIT); /* restarted */
	settle(world);
	unlock(&files[0]);
	assert_holds(&files[2]);
	assert_idle(&files[1]);
	file_close(&files[3]);
	unlock(&files[2]);
	assert_holds(&files[4]);
	unlock(&files[4]);
	file_close(&files[0]);
	file_close(&files[1]);
	file_close(&files[2]);
	file_close(&files[4]);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "");

	/* The only one who waits behind another host. */
	struct file other;
	file_open_and_lock(&other, &world->two, EX);
	file_open_and_lock(&files[0], &world->one, EX);
	file_cancel(&files[0]);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "W");
	file_lock(&files[0], EX, WAIT);
	settle(world);
	file_cancel(&files[0]);
	unlock(&other);
	assert_idle(&files[0]);
	file_lock(&files[0], EX, WAIT);
	settle(world);
	assert_holds(&files[0]);
	file_close(&files[0]);
	file_close(&other);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "");
}

static void test_exclusive_open(void **state)
{
	struct world *world = *state;
	struct file first, second, third;

	set_policy(world, 100, KEEP_MS);
	file_open(&first, &world->one, "a");
	file_open(&second, &world->one, "a");
	file_open(&third, &world->one, "a");
	file_lock_by_open(&first, WAIT);
	settle(world);
	file_lock_by_open(&second, WAIT);
	file_lock(&third, EX, WAIT);
	settle(world);
	assert_waits(&second);
	file_close(&first);
	settle(world);
	assert_holds(&second);
	file_close(&second);
	settle(world);
	assert_holds(&third);
	assert_queue(world, "a", "W");
	file_close(&third);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* Who holds is fenced at the end of the lease, and nobody gets the lock before the session is known
 * to live; those who wait queue anew. What was kept is nobody's loss. */
static void test_loss(void **state)
{
	struct world *world = *state;

	for (int held = 0; held < 2; held++) {
		struct file first, second, third, other;

		set_policy(world, 100, 10 * TIMEOUT_MS);
		file_open_and_lock(&first, &world->one, EX);
		file_open_and_lock(&second, &world->one, EX);
		file_open_and_lock(&third, &world->one, EX);
		unlock(&first);
		assert_holds(&second);
		file_open_and_lock(&other, &world->two, EX);
		disconnect(&world->one);
		pass(world, BEAT_MS);
		if (held == 0) {
			unlock(&second);
			assert_waits(&third);
		}
		pass(world, TIMEOUT_MS);
		assert_int_equal(first.lost + third.lost, 0);
		assert_int_equal(second.lost, held);
		assert_waits(&third);
		assert_holds(&other);
		reconnect(&world->one);
		pass(world, TIMEOUT_MS); /* until the new session is proved */
		assert_waits(&third);
		unlock(&other);
		assert_holds(&third);
		unlock(&third);
		disconnect(&world->one); /* while it is kept */
		pass(world, TIMEOUT_MS);
		file_lock(&first, EX, WAIT);
		pass(world, TIMEOUT_MS);
		reconnect(&world->one);
		pass(world, TIMEOUT_MS);
		assert_holds(&first);
		assert_int_equal(first.lost + third.lost, 0);
		file_close(&first);
		file_close(&second);
		file_close(&third);
		file_close(&other);
		pass(world, 10 * TIMEOUT_MS);
		assert_queue(world, "a", "");
	}
}

/* A short interruption: what was kept is had after it, at once. */
static void test_jeopardy(void **state)
{
	struct world *world = *state;
	struct file first, second;

	set_policy(world, 0, 10 * TIMEOUT_MS);
	file_open_and_lock(&first, &world->one, EX);
	unlock(&first);
	disconnect(&world->one);
	settle(world);
	file_open(&second, &world->one, "a");
	file_lock(&first, EX, WAIT);
	file_lock(&second, EX, WAIT);
	pass(world, BEAT_MS);
	assert_waits(&first);
	reconnect(&world->one);
	assert_holds(&first);
	assert_waits(&second);
	unlock(&first);
	assert_holds(&second);
	file_close(&first);
	file_close(&second);
	pass(world, 10 * TIMEOUT_MS);
	assert_queue(world, "a", "");
}

/* Who asks for what is kept has it, though it cannot be granted before its time is over. */
static void test_keep_without_connection(void **state)
{
	struct world *world = *state;
	struct file file, other;

	for (int cancelled = 0; cancelled < 2; cancelled++) {
		set_policy(world, 0, KEEP_MS);
		file_open_and_lock(&file, &world->one, EX);
		unlock(&file);
		file_open(&other, &world->two, "a");
		disconnect(&world->one);
		pass(world, KEEP_MS / 2);
		file_lock(&file, EX, WAIT);
		file_lock(&other, EX, WAIT);
		pass(world, KEEP_MS);
		assert_waits(&file);
		if (cancelled)
			file_cancel(&file);
		reconnect(&world->one);
		if (!cancelled) {
			assert_holds(&file);
			assert_waits(&other);
			unlock(&file);
		}
		/* The time of what nobody asks for any more begins anew. */
		pass(world, KEEP_MS);
		assert_holds(&other);
		file_close(&other);
		file_close(&file);
		pass(world, KEEP_MS);
		assert_queue(world, "a", "");
	}
}

/* Each grant has a token of its own, greater than any before, on whatever claim. */
static void test_tokens(void **state)
{
	struct world *world = *state;
	struct file files[CALLERS], other;
	uint64_t latest = 0;

	set_policy(world, 1, KEEP_MS);
	for (int i = 0; i < CALLERS; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	file_open_and_lock(&other, &world->two, EX);
	for (int left = CALLERS + 1; left > 0; left--) {
		struct file *holder = &other;

		for (int i = 0; i < CALLERS; i++)
			holder = file_holds(&files[i]) ? &files[i] : holder;
		assert_holds(holder);
		file_prove(holder, true);
		settle(world);
		assert_true(holder->token > latest);
		latest = holder->token;
		unlock(holder);
	}
	file_close(&other);
	close_files(files, CALLERS);
}

/* Somebody takes the claim away: who holds has lost the lock, the others get it by another one. */
static void test_taken_away(void **state)
{
	struct world *world = *state;

	for (int how = 0; how < 4; how++) {
		struct file first, second;

		set_policy(world, 100, 10 * TIMEOUT_MS);
		file_open_and_lock(&first, &world->one, EX);
		if (how >= 2)
			unlock(&first);
		file_open_and_lock(&second, &world->one, EX);
		if (how >= 2)
			unlock(&second);
		pass(world, 2 * BEAT_MS);
		assert_int_equal(queue_length(world, "a"), 1);
		if (how % 2 == 0)
			foreign_withdraw(world, "a", 0);
		else
			assert_int_equal(engine_steer(world->one.engine, "a", world->names[0],
						      ENGINE_BREAK, "me"),
					 0);
		pass(world, BEAT_MS);
		assert_int_equal(first.lost, how < 2);
		assert_int_equal(second.lost, 0);
		if (how >= 2) {
			assert_queue(world, "a", "");
			file_lock(&second, EX, WAIT);
			settle(world);
		}
		assert_holds(&second);
		file_close(&first);
		file_close(&second);
		pass(world, 10 * TIMEOUT_MS);
		assert_queue(world, "a", "");
	}
}

/* Somebody asks for the lock: the holder is told, and then it does not go on. */
static void test_revoked(void **state)
{
	struct world *world = *state;
	struct file first, second, other;

	set_policy(world, 100, 10 * TIMEOUT_MS);
	file_open_and_lock(&first, &world->one, EX);
	file_open_and_lock(&second, &world->one, EX);
	file_open_and_lock(&other, &world->two, EX);
	assert_int_equal(queue_length(world, "a"), 2);
	assert_int_equal(engine_steer(world->one.engine, "a", world->names[0], ENGINE_REVOKE, "me"),
			 0);
	assert_int_equal(first.revoked, 1);
	unlock(&first);
	assert_holds(&other);
	unlock(&other);
	assert_holds(&second);
	assert_int_equal(second.revoked, 0);
	unlock(&second);
	/* What is kept goes at once. */
	assert_int_equal(queue_length(world, "a"), 1);
	assert_int_equal(engine_steer(world->one.engine, "a", world->names[0], ENGINE_REVOKE, "me"),
			 0);
	settle(world);
	assert_queue(world, "a", "");
	file_close(&first);
	file_close(&second);
	file_close(&other);
}

/* With record locks on the same file each call has its own claim, and nothing waits for what is
 * kept. */
static void test_record_locks(void **state)
{
	struct world *world = *state;
	struct file file, other, third;

	set_policy(world, 100, 10 * TIMEOUT_MS);
	file_open_and_lock(&file, &world->one, EX);
	unlock(&file);
	file_open(&other, &world->one, "a");
	record_test(&other, EX, 0, 9);
	settle(world);
	assert_false(other.in_the_way);
	record_lock(&other, EX, 0, 9, TRY);
	settle(world);
	assert_granted(&other);
	assert_queue(world, "a", "w0-9");
	file_lock(&file, EX, WAIT);
	settle(world);
	assert_waits(&file);
	file_open_and_lock(&third, &world->one, EX);
	assert_queue(world, "a", "w0-9 | W | W");
	record_unlock(&other, 0, 9);
	settle(world);
	assert_holds(&file);

	/* A process that locks under its flock keeps that beyond it. */
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&file);
	unlock(&file);
	assert_waits(&third);
	assert_ranges(&file, "w0-9");
	record_unlock(&file, 0, 9);
	settle(world);
	assert_holds(&third);
	file_close(&file);
	file_close(&other);
	file_close(&third);
	pass(world, 10 * TIMEOUT_MS);
	assert_queue(world, "a", "");
}

static void test_record_lock_under_a_lead(void **state)
{
	struct world *world = *state;
	struct file file, other;

	set_policy(world, 100, 10 * TIMEOUT_MS);
	file_open_and_lock(&file, &world->one, EX);
	file_open_and_lock(&other, &world->one, EX);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_granted(&file);
	unlock(&file);
	assert_waits(&other);
	assert_ranges(&file, "w0-9");
	record_unlock(&file, 0, 9);
	settle(world);
	assert_holds(&other);
	file_close(&file);
	file_close(&other);
	pass(world, 10 * TIMEOUT_MS);
	assert_queue(world, "a", "");
}

/* "-": nobody uses a claim; "1,2": process 1 does, and 2 follows. Claims are divided by a bar. */
struct users {
	char claim[192];
	char text[256];
};

static void note_user(void *context, const char *claim, enum engine_use use, const char *text)
{
	struct users *users = context;
	size_t used = strlen(users->text);
	bool another = used > 0 && strcmp(users->claim, claim) != 0;
	const char *divider = another ? " | " : used > 0 ? "," : "";
	int pid = 0;

	snprintf(users->claim, sizeof(users->claim), "%s", claim);
	assert_int_equal(text == NULL, use == ENGINE_KEPT);
	assert_int_equal(use == ENGINE_FOLLOWS, divider[0] == ',');
	if (text == NULL) {
		snprintf(users->text + used, sizeof(users->text) - used, "%s-", divider);
		return;
	}
	assert_int_equal(sscanf(text, "format=1\nhost=here\npid=%d", &pid), 1);
	snprintf(users->text + used, sizeof(users->text) - used, "%s%d", divider, pid);
}

/* What waits for a file is not in the way of who locks through the same one, wherever it stands;
 * when that caller gives up, it is. */
static void test_record_locks_of_a_waiter(void **state)
{
	struct world *world = *state;

	for (int gives_up = 0; gives_up < 2; gives_up++) {
		struct file file, same, other, second;

		set_policy(world, 5, KEEP_MS);
		file_open_and_lock(&other, &world->two, EX);
		file_open_and_lock(&file, &world->one, EX);
		file_open_and_lock(&second, &world->one, EX);
		file_share(&same, &file);
		record_lock(&same, EX, 0, 9, WAIT);
		settle(world);
		/* The claim of both is taken away, and comes to stand behind. */
		assert_queue(world, "a", "W | W | w0-9");
		foreign_withdraw(world, "a", 1);
		pass(world, TIMEOUT_MS);
		if (gives_up)
			file_cancel(&file);
		pass(world, LINGER_MS);
		unlock(&other);
		assert_granted(&same);
		assert_int_equal(file_holds(&file), !gives_up);
		assert_waits(&second);
		unlock(&file);
		assert_waits(&second);
		record_unlock(&same, 0, INT64_MAX);
		settle(world);
		assert_holds(&second);
		file_close(&other);
		file_close(&second);
		file_close(&file);
		pass(world, KEEP_MS);
		assert_queue(world, "a", "");
	}
}

/* Who has locked behind it through the file of one who gives up came before who has the claim then,
 * and may go on. */
static void test_record_locks_behind_a_waiter(void **state)
{
	struct world *world = *state;
	struct file file, same, other, second;

	set_policy(world, 5, KEEP_MS);
	file_open(&other, &world->two, "a");
	record_lock(&other, EX, 0, 9, WAIT);
	settle(world);
	file_open(&file, &world->one, "a");
	file_open(&second, &world->one, "a");
	file_share(&same, &file);
	file_lock(&file, EX, WAIT);
	file_lock(&second, EX, WAIT);
	record_lock(&same, EX, 20, 29, WAIT);
	settle(world);
	assert_granted(&same);
	assert_queue(world, "a", "w0-9 | W? | w20-29");
	file_cancel(&file);
	pass(world, LINGER_MS);
	assert_queue(world, "a", "w0-9 | w20-29 | W?");
	record_lock(&same, EX, 30, 39, WAIT);
	settle(world);
	assert_granted(&same);
	file_close(&file);
	settle(world);
	assert_waits(&second);
	file_close(&other);
	settle(world);
	assert_holds(&second);
	file_close(&second);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

/* Who tries is not refused for what is asked for through the same file. */
static void test_record_try_of_a_waiter(void **state)
{
	struct world *world = *state;
	struct file file, same;

	set_policy(world, 5, KEEP_MS);
	file_open(&file, &world->one, "a");
	file_share(&same, &file);
	file_lock(&file, EX, WAIT);
	record_lock(&same, EX, 0, 9, TRY);
	settle(world);
	assert_granted(&same);
	assert_holds(&file);
	file_close(&file);
	pass(world, KEEP_MS);
	assert_queue(world, "a", "");
}

static void assert_users(struct host *host, const char *expected)
{
	struct users users = {"", ""};

	engine_each_user(host->engine, "a", note_user, &users);
	assert_string_equal(users.text, expected);
}

/* Who uses a claim is told, not who had it placed. */
static void test_users(void **state)
{
	struct world *world = *state;
	struct file files[3], other;
	char expected[64];
	int pids[3];

	set_policy(world, 1, KEEP_MS);
	assert_users(&world->one, "");
	for (int i = 0; i < 3; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	for (int i = 0; i < 3; i++)
		pids[i] = (int)files[i].process;
	snprintf(expected, sizeof(expected), "%d,%d,%d", pids[0], pids[1], pids[2]);
	assert_users(&world->one, expected);
	unlock(&files[0]);
	snprintf(expected, sizeof(expected), "%d,%d", pids[1], pids[2]);
	assert_users(&world->one, expected);
	unlock(&files[1]);
	unlock(&files[2]);
	assert_users(&world->one, "-");

	/* Of those who wait behind another host, one stands for the claim, and then the next. */
	file_open_and_lock(&other, &world->two, EX);
	for (int i = 0; i < 3; i++)
		file_lock(&files[i], EX, WAIT);
	settle(world);
	snprintf(expected, sizeof(expected), "%d,%d,%d", pids[0], pids[1], pids[2]);
	assert_users(&world->one, expected);
	file_cancel(&files[0]);
	pass(world, LINGER_MS);
	snprintf(expected, sizeof(expected), "%d,%d", pids[1], pids[2]);
	assert_users(&world->one, expected);
	unlock(&other);
	assert_holds(&files[1]);

	/* Who may not follow any more has another claim. */
	file_lock(&other, EX, WAIT);
	settle(world);
	file_lock(&files[0], EX, WAIT);
	settle(world);
	unlock(&files[1]);
	assert_holds(&files[2]);
	snprintf(expected, sizeof(expected), "%d | %d", pids[2], pids[0]);
	assert_users(&world->one, expected);
	unlock(&files[2]);
	unlock(&other);
	assert_holds(&files[0]);
	file_close(&other);
	close_files(files, 3);
}

/* A thread that has a claim of its own behind the lead, which its open file is given: the lead does
 * not go on to somebody else then. */
static void test_own_claim_behind(void **state)
{
	struct world *world = *state;
	struct file first, file, twin, recorder, last;

	set_policy(world, 100, 10 * TIMEOUT_MS);
	file_open_and_lock(&first, &world->one, EX);
	file_open_and_lock(&file, &world->one, EX);
	file_open(&recorder, &world->two, "a");
	record_lock(&recorder, EX, 0, 9, WAIT);
	settle(world);
	file_share(&twin, &file);
	file_lock(&twin, EX, WAIT);
	settle(world);
	file_cancel(&recorder);
	pass(world, LINGER_MS);
	unlock(&first);
	assert_holds(&file);
	file_open_and_lock(&last, &world->one, EX);
	assert_waits(&last);
	unlock(&file);
	assert_holds(&last);
	file_close(&first);
	file_close(&file);
	file_close(&recorder);
	file_close(&last);
	pass(world, 10 * TIMEOUT_MS);
	assert_queue(world, "a", "");
}

/* The data of a claim tell whose it is: so it goes on to nobody else. */
static void test_another_user(void **state)
{
	struct world *world = *state;
	struct file one, two;

	set_policy(world, 100, 10 * TIMEOUT_MS);
	file_open_and_lock(&one, &world->one, EX);
	file_open(&two, &world->one, "a");
	two.uid = 1000;
	file_lock(&two, EX, WAIT);
	settle(world);
	assert_waits(&two);
	assert_queue(world, "a", "W | W");
	assert_non_null(strstr(world->data, "uid=1000\n"));
	unlock(&one);
	assert_holds(&two);
	assert_queue(world, "a", "W");
	unlock(&two);
	file_lock(&one, EX, TRY);
	settle(world);
	assert_holds(&one);
	assert_queue(world, "a", "W");
	assert_non_null(strstr(world->data, "uid=0\n"));
	unlock(&one);
	file_close(&one);
	file_close(&two);
	pass(world, 10 * TIMEOUT_MS);
	assert_queue(world, "a", "");
}

/* A whole story, with the connection broken at each operation of a host. */
static void test_broken_connection(void **state)
{
	struct world *world = *state;

	world->on_operation = break_connection;
	for (int where = 0; where < 2; where++) {
		for (int how = 0; how < BREAK_COUNT; how++) {
			for (int at = 1; at <= 14; at++) {
				struct file files[3], other;
				struct host *host = where == 0 ? &world->one : &world->two;
				int lost = 0;

				set_policy(world, 1, KEEP_MS);
				host->operations = 0;
				host->break_at = at;
				host->break_how = how;
				for (int i = 0; i < 3; i++)
					file_open_and_lock(&files[i], &world->one, EX);
				file_open_and_lock(&other, &world->two, EX);
				for (int i = 0; i < 20; i++) {
					pass(world, BEAT_MS / 2);
					reconnect(host);
					settle(world);
					int holders = file_holds(&other);
					for (int j = 0; j < 3; j++)
						holders += file_holds(&files[j]);
					assert_true(holders <= 1 || how == BREAK_EXPIRE);
					if (file_holds(&other))
						file_unlock(&other);
					for (int j = 0; j < 3; j++) {
						if (file_holds(&files[j]))
							file_unlock(&files[j]);
					}
				}
				for (int i = 0; i < 3; i++) {
					assert_false(file_waits(&files[i]));
					lost += files[i].lost;
				}
				assert_false(file_waits(&other));
				assert_true(lost + other.lost <= (how == BREAK_EXPIRE));
				file_close(&other);
				close_files(files, 3);
				host->break_at = 0;
				pass(world, TIMEOUT_MS);
			}
		}
	}
}

/* Who was taken away while it waited comes last, and who asks after that follows it. */
static void test_taken_away_is_the_newest(void **state)
{
	struct world *world = *state;
	struct file holder, first, second, third;

	world->policy.handoff = 10;
	file_open(&holder, &world->two, "a");
	file_open(&first, &world->one, "a");
	file_open(&second, &world->one, "a");
	file_open(&third, &world->one, "a");
	second.uid = 1;
	file_lock(&holder, EX, WAIT);
	settle(world);
	file_lock(&first, EX, WAIT);
	file_lock(&second, EX, WAIT);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 3);
	foreign_withdraw(world, "a", 1);
	pass(world, TIMEOUT_MS / 2);
	assert_int_equal(queue_length(world, "a"), 3);
	file_lock(&third, EX, WAIT);
	settle(world);
	assert_int_equal(queue_length(world, "a"), 3);
	file_close(&holder);
	settle(world);
	assert_granted(&second);
	file_close(&second);
	settle(world);
	assert_granted(&first);
	file_close(&first);
	settle(world);
	assert_granted(&third);
	file_close(&third);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(goes_on),
		TEST(limit),
		TEST(limit_after_contention),
		TEST(limit_begins_with_the_turn),
		TEST(keep),
		TEST(keep_is_no_handoff),
		TEST(keep_is_in_order),
		TEST(keep_gives_way),
		TEST(keep_after_contention),
		TEST(try_of_what_is_used),
		TEST(modes),
		TEST(cancel),
		TEST(exclusive_open),
		TEST(loss),
		TEST(jeopardy),
		TEST(keep_without_connection),
		TEST(tokens),
		TEST(taken_away),
		TEST(revoked),
		TEST(record_locks),
		TEST(record_lock_under_a_lead),
		TEST(record_locks_of_a_waiter),
		TEST(record_locks_behind_a_waiter),
		TEST(record_try_of_a_waiter),
		TEST(users),
		TEST(another_user),
		TEST(own_claim_behind),
		TEST(broken_connection),
		TEST(taken_away_is_the_newest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
