/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine does when somebody from outside asks a holder for its lock, or takes it away.
 */
#include "fixture.h"

enum { BEAT_MS = TIMEOUT_MS / 8 };

#define DATA "format=1\nhost=here\n"

/* The data of the first claim, as others read it. */
static const char *data_of(struct world *world)
{
	queue_text(world, "a");
	return world->data;
}

static void test_revoke(void **state)
{
	struct world *world = *state;
	struct file file, other;

	file_take(&file, &world->one);
	file_open(&other, &world->one, "a");
	pass(world, 3 * BEAT_MS);
	foreign_write(world, "a", 0, DATA "revoke=root@web1\n");
	settle(world);
	assert_int_equal(file.revoked, 1);
	assert_int_equal(other.revoked, 0);
	assert_holds(&file);
	foreign_write(world, "a", 0, DATA "revoke=root@web2\n");
	settle(world);
	assert_int_equal(file.revoked, 1);
	/* The next grant has not been asked for. */
	file_unlock(&file);
	file_lock(&file, EX, WAIT);
	pass(world, 3 * BEAT_MS);
	assert_int_equal(file.revoked, 1);
	foreign_write(world, "a", 0, DATA "revoke=root@web2\n");
	settle(world);
	assert_int_equal(file.revoked, 2);
	file_close(&file);
	file_close(&other);
}

/* Curator's puts a word in place of the data, which is restored for those who look at the queue. */
static void test_revoke_by_curator(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	pass(world, 3 * BEAT_MS);
	foreign_write(world, "a", 0, "__REVOKE__");
	settle(world);
	assert_int_equal(file.revoked, 1);
	assert_memory_equal(data_of(world), DATA, strlen(DATA));
	file_close(&file);
}

/* Orders that come before the claim is watched. */
static void test_early_order(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	foreign_write(world, "a", 0, DATA "revoke=root@web1\n");
	settle(world);
	assert_int_equal(file.revoked, 0);
	pass(world, 3 * BEAT_MS);
	assert_int_equal(file.revoked, 1);
	file_close(&file);
}

/* The holder's host changes its claim, not having read what was wanted: for a token, or because a
 * part is released. */
static void test_revoke_and_token(void **state)
{
	struct world *world = *state;
	struct file file;

	for (int beats = 0; beats < 4; beats += 3) {
		file_take(&file, &world->one);
		pass(world, beats * BEAT_MS);
		foreign_write(world, "a", 0, DATA "revoke=root@web1\n");
		file_prove(&file, true);
		settle(world);
		assert_granted(&file);
		assert_true(file.token > 0);
		assert_int_equal(file.revoked, 1);
		file_prove(&file, true);
		settle(world);
		assert_int_equal(file.revoked, 1);
		assert_holds(&file);
		file_close(&file);
		settle(world);
	}
}

static void test_revoke_and_release_of_a_part(void **state)
{
	struct world *world = *state;
	struct file file;

	for (int beats = 0; beats < 4; beats += 3) {
		file_open(&file, &world->one, "a");
		record_lock(&file, EX, 0, 9, WAIT);
		settle(world);
		pass(world, beats * BEAT_MS);
		foreign_write(world, "a", 0, DATA "ranges=w0-9\nrevoke=root@web1\n");
		record_unlock(&file, 0, 4);
		settle(world);
		assert_int_equal(file.revoked, 1);
		assert_queue(world, "a", "w5-9");
		record_unlock(&file, 7, 7);
		settle(world);
		assert_queue(world, "a", "w5-6,w8-9");
		file_close(&file);
		settle(world);
	}
}

/* Of a claim that waits, and is changed while it does: it is told once it is held. */
static void test_revoke_of_a_waiter(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_open(&holder, &world->one, "a");
	file_open(&file, &world->two, "a");
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	assert_queue(world, "a", "w0-9 | w0-9?");
	foreign_write(world, "a", 1, DATA "ranges=w0-9\nrevoke=root@web1\n");
	record_unlock(&holder, 0, 9);
	settle(world);
	assert_ranges(&file, "w0-9");
	pass(world, 3 * BEAT_MS);
	assert_int_equal(file.revoked, 1);
	assert_queue(world, "a", "w0-9");
	file_close(&holder);
	file_close(&file);
}

/* The connection is lost while it is not known whether the change was made, or what was read. */
static void test_revoke_and_lost_connection(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	foreign_write(world, "a", 0, DATA "revoke=root@web1\n");
	file_prove(&file, true);
	disconnect(&world->one);
	settle(world);
	reconnect(&world->one);
	pass(world, BEAT_MS);
	assert_granted(&file);
	assert_true(file.token > 0);
	assert_int_equal(file.revoked, 1);
	file_close(&file);
}

/* Of a claim that waits: it goes at once, so that nobody holds by it when whoever broke it takes it
 * away. */
static void test_break_of_a_waiter(void **state)
{
	struct world *world = *state;
	struct host *hosts[] = {&world->one, &world->two};

	/* Behind another host's claim, and behind one of its own. */
	for (size_t i = 0; i < 2; i++) {
		struct file holder, file, next;
		char broken[sizeof(world->names[0])];

		file_take(&holder, hosts[i]);
		file_open_and_lock(&file, &world->two, EX);
		file_open_and_lock(&next, &world->one, EX);
		pass(world, 3 * BEAT_MS);
		assert_int_equal(queue_length(world, "a"), 3);
		memcpy(broken, world->names[1], sizeof(broken));
		foreign_write(world, "a", 1, DATA "break=root@web1\n");
		settle(world);
		assert_waits(&file);
		assert_int_equal(queue_length(world, "a"), 3);
		assert_string_not_equal(world->names[1], broken);
		assert_string_not_equal(world->names[2], broken);
		file_close(&holder);
		settle(world);
		assert_holds(&next);
		file_close(&next);
		settle(world);
		assert_holds(&file);
		assert_int_equal(file.lost, 0);
		file_close(&file);
		settle(world);
	}
}

static char broken_name[192];
static const struct file *broken_file;

/* Nobody holds by the claim that was broken. */
static void check_broken(struct world *world)
{
	if (file_holds(broken_file) && queue_length(world, "a") > 0)
		assert_string_not_equal(world->names[0], broken_name);
}

/* What is not known of a claim that is watched, as after a lost connection, is read before it is
 * granted. */
static void test_break_unheard(void **state)
{
	struct world *world = *state;
	struct file holder, file;

	file_take(&holder, &world->one);
	file_open_and_lock(&file, &world->one, EX);
	pass(world, 3 * BEAT_MS);
	assert_int_equal(queue_length(world, "a"), 2);
	memcpy(broken_name, world->names[1], sizeof(broken_name));
	broken_file = &file;
	disconnect(&world->one);
	foreign_write(world, "a", 1, DATA "break=root@web1\n");
	file_unlock(&holder);
	world->on_step = check_broken;
	reconnect(&world->one);
	settle(world);
	world->on_step = NULL;
	assert_holds(&file);
	assert_int_equal(file.lost, 0);
	file_close(&holder);
	file_close(&file);
}

static void test_break(void **state)
{
	struct world *world = *state;
	struct file file, other, rival;

	file_take(&file, &world->one);
	file_open(&other, &world->one, "b");
	file_lock(&other, EX, WAIT);
	pass(world, 3 * BEAT_MS);
	file_open_and_lock(&rival, &world->two, EX);
	assert_waits(&rival);
	foreign_write(world, "a", 0, DATA "revoke=root@web1\nbreak=root@web1\n");
	settle(world);
	assert_int_equal(file.lost, 1);
	assert_int_equal(file.revoked, 0);
	assert_holds(&rival);
	assert_holds(&other);
	assert_int_equal(queue_length(world, "a"), 1);
	file_close(&file);
	file_close(&other);
	file_close(&rival);
}

/* Somebody who does not ask first: the holder is not to wait for its next heartbeat. */
static void test_taken_away(void **state)
{
	struct world *world = *state;
	struct file file, rival;

	file_take(&file, &world->one);
	pass(world, 3 * BEAT_MS + 1);
	file_open_and_lock(&rival, &world->two, EX);
	foreign_withdraw(world, "a", 0);
	settle(world);
	assert_int_equal(file.lost, 1);
	assert_holds(&rival);
	file_close(&file);
	file_close(&rival);
}

/* However long the paths are. */
static void test_long_paths(void **state)
{
	enum { FILES = 200, PATH_BYTES = 4000 };
	struct world *world = *state;
	struct file *files = calloc(FILES, sizeof(*files));
	char path[PATH_BYTES + 1];
	size_t revoked = 0;

	memset(path, 'a', PATH_BYTES);
	path[PATH_BYTES] = '\0';
	for (int i = 0; i < FILES; i++) {
		snprintf(path, 7, "%06d", i);
		path[6] = '/';
		file_open(&files[i], &world->one, path);
		file_lock(&files[i], EX, WAIT);
	}
	pass(world, 10 * BEAT_MS);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, 7, "%06d", i);
		path[6] = '/';
		foreign_write(world, path, 0, DATA "revoke=root@web1\n");
		settle(world);
		revoked += (size_t)files[i].revoked;
		file_close(&files[i]);
	}
	assert_int_equal(revoked, FILES);
	free(files);
}

/* All open files of a process are told; and it loses all of them. */
static void test_records(void **state)
{
	struct world *world = *state;
	struct file file, twin;

	file_open(&file, &world->one, "a");
	file_open_too(&twin, &file, "a");
	record_lock(&file, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&twin, EX, 20, 29, WAIT);
	pass(world, 3 * BEAT_MS);
	foreign_write(world, "a", 0, DATA "ranges=w0-9\nrevoke=root@web1\n");
	settle(world);
	assert_int_equal(file.revoked, 1);
	assert_int_equal(twin.revoked, 1);
	assert_ranges(&file, "w0-9,w20-29");
	foreign_write(world, "a", 1, DATA "ranges=w20-29\nbreak=root@web1\n");
	settle(world);
	assert_int_equal(file.lost, 1);
	assert_int_equal(twin.lost, 1);
	file_close(&file);
	file_close(&twin);
}

/* Of this host's own claims nobody has to write anything. */
static void test_own_host(void **state)
{
	struct world *world = *state;
	struct file file, waiter, next;
	char names[3][192];

	file_take(&file, &world->one);
	file_open_and_lock(&waiter, &world->one, EX);
	file_open_and_lock(&next, &world->two, EX);
	assert_int_equal(queue_length(world, "a"), 3);
	memcpy(names, world->names, sizeof(names));

	struct engine *engine = world->one.engine;
	assert_int_equal(engine_steer(engine, "a", names[2], ENGINE_BREAK, "me"), -ENOENT);
	assert_int_equal(engine_steer(engine, "b", names[0], ENGINE_BREAK, "me"), -ENOENT);
	assert_int_equal(engine_steer(engine, "a", names[1], ENGINE_REVOKE, "me"), -EINVAL);
	assert_int_equal(engine_steer(engine, "a", names[0], ENGINE_REVOKE, "me"), 0);
	assert_int_equal(file.revoked, 1);
	/* A waiter that is broken goes to the end. */
	assert_int_equal(engine_steer(engine, "a", names[1], ENGINE_BREAK, "me"), 0);
	settle(world);
	assert_waits(&waiter);
	assert_int_equal(engine_steer(engine, "a", names[0], ENGINE_BREAK, "me"), 0);
	settle(world);
	assert_int_equal(file.lost, 1);
	assert_holds(&next);
	assert_waits(&waiter);
	file_unlock(&next);
	settle(world);
	assert_holds(&waiter);
	file_close(&file);
	file_close(&waiter);
	file_close(&next);
}

/* In a new session as in the first. */
static void test_after_a_loss(void **state)
{
	struct world *world = *state;
	struct file file;

	file_take(&file, &world->one);
	pass(world, 3 * BEAT_MS);
	store_faulty_expire(world->one.store);
	settle(world);
	reconnect(&world->one);
	assert_int_equal(file.lost, 1);
	file_close(&file);
	file_take(&file, &world->one);
	pass(world, 3 * BEAT_MS);
	foreign_write(world, "a", 0, DATA "revoke=root@web1\n");
	settle(world);
	assert_int_equal(file.revoked, 1);
	file_close(&file);
}

/* A connection that breaks when the watch is set up, or while it stands. */
static void test_broken_connection(void **state)
{
	struct world *world = *state;

	world->on_operation = break_connection;
	for (int how = BREAK_BEFORE; how <= BREAK_LATE; how++) {
		for (int at = 1; at <= 6; at++) {
			struct file file;

			file_take(&file, &world->one);
			world->one.operations = 0;
			world->one.break_at = at;
			world->one.break_how = how;
			for (int i = 0; i < 6; i++) {
				pass(world, BEAT_MS);
				reconnect(&world->one);
			}
			world->one.break_at = 0;
			assert_int_equal(file.lost, 0);
			foreign_write(world, "a", 0, DATA "revoke=root@web1\n");
			pass(world, 3 * BEAT_MS);
			assert_int_equal(file.revoked, 1);
			file_close(&file);
			settle(world);
		}
	}
}

/* Each of very many is found by its name, in whatever order, also between those of another host and
 * when it has gone. */
static void test_among_many(void **state)
{
	enum { FILES = 40, STEP = 17 };
	struct world *world = *state;
	struct engine *engine = world->one.engine;
	struct file files[FILES];
	char names[FILES][sizeof(world->names[0])];

	for (size_t i = 0; i < FILES; i++) {
		file_open(&files[i], i % 3 == 1 ? &world->two : &world->one, "a");
		file_lock(&files[i], SH, WAIT);
		settle(world);
		assert_holds(&files[i]);
	}
	assert_int_equal(queue_length(world, "a"), FILES);
	memcpy(names, world->names, sizeof(names));
	pass(world, 3 * BEAT_MS);
	for (size_t i = 0; i < FILES; i++) {
		size_t at = (i + 1) * STEP % FILES;
		bool own = at % 3 != 1;
		assert_int_equal(engine_steer(engine, "a", names[at], ENGINE_BREAK, "me"),
				 own ? 0 : -ENOENT);
		settle(world);
		assert_int_equal(engine_steer(engine, "a", names[at], ENGINE_BREAK, "me"), -ENOENT);
		assert_int_equal(files[at].lost, own);
		if (!own)
			file_unlock(&files[at]);
		settle(world);
		assert_int_equal(queue_length(world, "a"), FILES - i - 1);
	}
	for (size_t i = 0; i < FILES; i++)
		file_close(&files[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(revoke),
		TEST(revoke_by_curator),
		TEST(early_order),
		TEST(break),
		TEST(break_of_a_waiter),
		TEST(break_unheard),
		TEST(records),
		TEST(own_host),
		TEST(after_a_loss),
		TEST(broken_connection),
		TEST(taken_away),
		TEST(long_paths),
		TEST(among_many),
		TEST(revoke_and_token),
		TEST(revoke_and_release_of_a_part),
		TEST(revoke_of_a_waiter),
		TEST(revoke_and_lost_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
