/* SPDX-License-Identifier: Apache-2.0
 *
 * What users may have: limits, who has none, exact counts, and names that make room. The kernel
 * forgets what it is told to when a test says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/inode_restore.h"
#include "files/names.h"
#include "files/user.h"
#include "handles/handle.h"
#include "notifier_double.h"
#include "ops/serving.h"
#include "status/status.h"
#include "status/turn.h"

enum { ALICE = 54321, BOB = 54322 };

struct fixture {
	struct config config;
	struct shard shard;
	struct shards shards;
	struct serving serving;
};

static struct fixture fixture;
static struct filesystem *const filesystem = &fixture.serving.filesystem;
static uint64_t forgotten[16]; /* nodes whose names the kernel is to forget */
static size_t forgotten_count;

static void on_forget(fuse_ino_t parent, fuse_ino_t node, const char *name)
{
	if (name == NULL)
		return;
	assert_int_equal(parent, FUSE_ROOT_ID);
	assert_true(forgotten_count < 16 && name[0] != '\0');
	forgotten[forgotten_count++] = node;
}

static void set(const char *key, const char *value)
{
	char why[256];
	assert_int_equal(config_set(&fixture.config, key, value, why, sizeof(why)), 0);
}

static int begin(void **state)
{
	log_set_level(LOG_LEVEL_ERROR);
	fixture = (struct fixture){0};
	forgotten_count = 0;
	notifier_double.on_forget = on_forget;
	assert_int_equal(config_init(&fixture.config), 0);
	set("user_waiters", "2");
	set("user_files", "3");
	set("user_names", "8");
	set("user_ranges", "5");
	fixture.shards = (struct shards){.list = &fixture.shard, .count = 1};
	return serving_init(&fixture.serving, &fixture.config, &fixture.shards);
}

static int end(void **state)
{
	for (struct inode *inode = filesystem->inodes->by_node; inode != NULL;
	     inode = inode->by_node.next)
		inode->handles = 0; /* of a test that has failed */
	serving_finish(filesystem);
	assert_null(filesystem->users->by_uid);
	config_finish(&fixture.config);
	return 0;
}

static void test_limits(void **state)
{
	static const struct {
		enum user_share share;
		size_t limit;
		int error;
	} shares[] = {
		{USER_WAITERS, 2, -ENOLCK},
		{USER_FILES, 3, -ENFILE},
		{USER_NAMES, 8, -EDQUOT},
		{USER_RANGES, 5, -ENOLCK},
	};

	for (size_t i = 0; i < USER_SHARES; i++) {
		enum user_share share = shares[i].share;
		struct user *alice = NULL;

		for (size_t j = 0; j < shares[i].limit; j++) {
			assert_int_equal(user_check(filesystem, ALICE, share, 1), 0);
			alice = user_add(filesystem->users, ALICE, share, 1);
			assert_non_null(alice);
		}
		assert_int_equal(user_check(filesystem, ALICE, share, 1), shares[i].error);
		assert_int_equal(user_check(filesystem, ALICE, share, 1), shares[i].error);
		assert_int_equal(filesystem->users->limited[share], 2);
		/* Neither other users nor other shares are concerned. */
		assert_int_equal(user_check(filesystem, BOB, share, 1), 0);
		assert_int_equal(
			user_check(filesystem, ALICE, shares[(i + 1) % USER_SHARES].share, 1), 0);
		user_leave(filesystem->users, alice, share, 1);
		assert_int_equal(user_check(filesystem, ALICE, share, 1), 0);
		for (size_t j = 1; j < shares[i].limit; j++)
			user_leave(filesystem->users, alice, share, 1);
	}
	user_leave(filesystem->users, NULL, USER_FILES, 1);
}

static void test_no_limits(void **state)
{
	struct user *root = NULL;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(user_check(filesystem, 0, USER_WAITERS, 1), 0);
		assert_int_equal(user_check(filesystem, getuid(), USER_WAITERS, 1), 0);
		root = user_add(filesystem->users, 0, USER_WAITERS, 1);
	}
	assert_int_equal(root->counts[USER_WAITERS], 10);
	while (root->counts[USER_WAITERS] > 1)
		user_leave(filesystem->users, root, USER_WAITERS, 1);
	user_leave(filesystem->users, root, USER_WAITERS, 1);
	assert_int_equal(filesystem->users->limited[USER_WAITERS], 0);
}

/* A lower limit takes nothing away, and counts from then on. */
static void test_lower_limit(void **state)
{
	struct user *alice = user_add(filesystem->users, ALICE, USER_FILES, 1);

	user_add(filesystem->users, ALICE, USER_FILES, 1);
	set("user_files", "1");
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 1), -ENFILE);
	user_leave(filesystem->users, alice, USER_FILES, 1);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 1), -ENFILE);
	set("user_files", "2");
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 1), 0);
	user_leave(filesystem->users, alice, USER_FILES, 1);
}

/* What is kept counts by its size, and all of it is given back. */
static void test_amounts(void **state)
{
	struct user *alice;

	assert_int_equal(user_shares_of(0), 1);
	assert_int_equal(user_shares_of(4095), 1);
	assert_int_equal(user_shares_of(4096), 2);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 3), 0);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 4), -ENFILE);
	alice = user_add(filesystem->users, ALICE, USER_FILES, 2);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 1), 0);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 2), -ENFILE);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, SIZE_MAX), -ENFILE);
	assert_int_equal(user_check(filesystem, 0, USER_FILES, SIZE_MAX), 0);
	user_leave(filesystem->users, alice, USER_FILES, 2);
	assert_int_equal(user_check(filesystem, ALICE, USER_FILES, 3), 0);
}

/* To release a part of something may take the user to twice as much. */
static void test_releases(void **state)
{
	struct user *alice = user_add(filesystem->users, ALICE, USER_RANGES, 5);

	assert_int_equal(user_check(filesystem, ALICE, USER_RANGES, 1), -ENOLCK);
	assert_int_equal(user_check_release(filesystem, ALICE, USER_RANGES, 5), 0);
	assert_int_equal(user_check_release(filesystem, ALICE, USER_RANGES, 6), -ENOLCK);
	user_leave(filesystem->users, alice, USER_RANGES, 5);
}

/* One look at a time, a pause after it by what it has cost, and what is over is forgotten. */
static void test_turns(void **state)
{
	int64_t now_ms = filesystem->now_ms;
	struct turns *alice = turns_join(filesystem, ALICE);
	struct turn *turn = &alice->list[0];

	assert_ptr_equal(turns_join(filesystem, ALICE), alice);
	assert_true(turn_next_ms(turn) <= now_ms);
	turn->part = alice;
	assert_int_equal(turn_next_ms(turn), INT64_MAX);
	turn_end(turn, now_ms, 300);
	assert_int_equal(turn_next_ms(turn), now_ms + 300);
	turn_end(turn, now_ms, 1000000);
	assert_int_equal(turn_next_ms(turn), now_ms + TURN_PAUSE_MS_MAX);
	turns_leave(alice);
	turns_leave(alice);

	/* The pause outlives the requests. */
	turns_leave(turns_join(filesystem, BOB));
	assert_int_equal(HASH_CNT(by_uid, filesystem->status->turns), 2);
	filesystem->now_ms = now_ms + TURN_PAUSE_MS_MAX;
	turns_leave(turns_join(filesystem, BOB));
	assert_int_equal(HASH_CNT(by_uid, filesystem->status->turns), 1);
	assert_int_equal(filesystem->status->turns->uid, BOB);
}

static struct inode *make(const char *name, uid_t uid)
{
	struct inode *inode;

	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, name, S_IFREG | 0644,
				      uid, uid, &inode),
			 0);
	assert_int_equal(inode_attach(filesystem->inodes->root, inode), 0);
	inode_set_idle(filesystem, inode);
	return inode;
}

static size_t count_names(uid_t uid)
{
	const struct user *user;
	HASH_FIND(by_uid, filesystem->users->by_uid, &uid, sizeof(uid), user);
	return user != NULL ? user->counts[USER_NAMES] : 0;
}

/* A name is on the account of who made it while it is there, whoever has the file open. Without a
 * name only what is open is there, whether the kernel has forgotten it or not. */
static void test_pinned(void **state)
{
	struct inode *inode = make("a", ALICE);
	uint64_t node = inode->node;

	inode_use(filesystem, inode);
	assert_int_equal(count_names(ALICE), 1);
	inode_detach(filesystem, inode);
	assert_int_equal(count_names(ALICE), 0);
	/* Opened again, without a name. */
	inode_use(filesystem, inode);
	inode_unuse(filesystem, inode);
	assert_ptr_equal(inode_find(filesystem->inodes, node), inode);
	inode_unuse(filesystem, inode);
	assert_null(inode_find(filesystem->inodes, node));
	assert_int_equal(count_names(ALICE), 0);

	inode = make("b", ALICE);
	node = inode->node;
	inode_detach(filesystem, inode);
	assert_null(inode_find(filesystem->inodes, node));
	inode = make("c", ALICE);
	node = inode->node;
	names_drop(filesystem, inode);
	assert_int_equal(forgotten[0], node);
	assert_null(inode_find(filesystem->inodes, node));
	assert_int_equal(count_names(ALICE), 0);
}

/* A path and a text count by what the next process has to read. */
static void test_state_bytes(void **state)
{
	char name[251];
	struct inode *folder, *inode;

	memset(name, 'n', 250);
	name[250] = '\0';
	assert_int_equal(user_shares_of_path(255), 1);
	assert_int_equal(user_shares_of_path(256), 2);
	assert_int_equal(user_shares_of_text(255), 0);
	assert_int_equal(user_shares_of_text(4096), 16);
	assert_int_equal(user_shares_of_request(8191), 0);
	assert_int_equal(user_shares_of_request(1 << 20), 128);
	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, name, S_IFDIR, ALICE,
				      ALICE, &folder),
			 0);
	assert_int_equal(inode_attach(filesystem->inodes->root, folder), 0);
	assert_int_equal(inode_name_shares(folder, name), 2);
	assert_int_equal(inode_create(filesystem, folder, name, S_IFREG, ALICE, ALICE, &inode), 0);
	assert_int_equal(inode_attach(folder, inode), 0);
	assert_int_equal(count_names(ALICE), 3);
	assert_int_equal(handle_shares(inode), 2);

	/* Whoever makes the text longer has it, if there is room; nobody else has to be asked for
	 * what makes it shorter. */
	assert_int_equal(inode_resize(inode, 255, BOB), 0);
	assert_int_equal(count_names(BOB), 0);
	assert_int_equal(inode_resize(inode, 3 * 256, BOB), 0);
	assert_int_equal(count_names(BOB), 3);
	assert_int_equal(inode_resize(inode, 6 * 256, ALICE), -EDQUOT);
	assert_int_equal(inode->text.count, 3 * 256);
	assert_int_equal(inode_resize(inode, 4 * 256, ALICE), 0);
	assert_int_equal(count_names(ALICE), 7);
	assert_int_equal(count_names(BOB), 0);
	assert_int_equal(inode_resize(inode, 5 * 256, ALICE), 0);
	assert_int_equal(inode_resize(inode, 6 * 256, ALICE), -EDQUOT);
	assert_int_equal(inode_resize(inode, 2 * 256, BOB), 0);
	assert_int_equal(count_names(ALICE), 5);
	assert_int_equal(inode_resize(inode, 16 * 256, 0), 0);
	assert_int_equal(count_names(0), 16 + (getuid() == 0));
	assert_int_equal(inode_resize(inode, 300, ALICE), 0);
	assert_int_equal(count_names(0), 1 + (getuid() == 0));

	/* The text of a file without a name is there until the last one closes it. */
	assert_int_equal(inode_resize(inode, 512, BOB), 0);
	inode_use(filesystem, inode);
	inode_detach(filesystem, inode);
	assert_int_equal(count_names(ALICE), 1);
	assert_int_equal(count_names(BOB), 2);
	inode_unuse(filesystem, inode);
	assert_int_equal(count_names(BOB), 0);
}

/* What another process has restored without a name, whether somebody has it open or not. */
static void test_restored(void **state)
{
	struct inode *known, *open;

	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, "a", S_IFREG, ALICE,
				      ALICE, &known),
			 0);
	uint64_t node = known->node;
	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, "a", S_IFREG, ALICE,
				      ALICE, &open),
			 0);
	inode_use(filesystem, open);
	make("b", ALICE);
	assert_int_equal(count_names(ALICE), 3);
	inode_restore_end(filesystem);
	assert_int_equal(count_names(ALICE), 1);
	assert_null(inode_find(filesystem->inodes, node));
	inode_unuse(filesystem, open);
	assert_int_equal(count_names(ALICE), 1);
}

/* Of what is idle the oldest go, those of the same user, up to two for each new name. */
static void test_room(void **state)
{
	char name[] = "a0";
	const struct inode *used;

	make("b0", BOB);
	used = make(name, ALICE);
	inode_use(filesystem, (struct inode *)used);
	for (name[1] = '1'; name[1] < '5'; name[1]++) {
		names_make_room(filesystem, ALICE, 1);
		make(name, ALICE);
	}
	assert_int_equal(count_names(ALICE), 5);
	names_make_room(filesystem, ALICE, 1);
	assert_int_equal(forgotten_count, 0);
	make("a5", ALICE);
	notifier_double.backlog = 100000;
	names_make_room(filesystem, ALICE, 1);
	assert_int_equal(forgotten_count, 0);
	notifier_double.backlog = 0;
	names_make_room(filesystem, ALICE, 1);
	assert_int_equal(forgotten_count, 1);
	assert_null(inode_child(filesystem->inodes->root, "a1"));
	assert_non_null(inode_child(filesystem->inodes->root, "a2"));
	assert_non_null(inode_child(filesystem->inodes->root, "a0"));
	assert_non_null(inode_child(filesystem->inodes->root, "b0"));
	assert_int_equal(count_names(ALICE), 5);
	assert_null(inode_find(filesystem->inodes, forgotten[0]));

	/* Until nothing is idle; and never for who has no limit. */
	make("a6", ALICE);
	make("a7", ALICE);
	names_make_room(filesystem, ALICE, 1);
	assert_int_equal(forgotten_count, 3);
	assert_null(inode_child(filesystem->inodes->root, "a2"));
	assert_null(inode_child(filesystem->inodes->root, "a3"));
	set("user_names", "1");
	for (int i = 0; i < 4; i++)
		names_make_room(filesystem, ALICE, 1);
	assert_int_equal(forgotten_count, 7);
	assert_int_equal(count_names(ALICE), 1);
	assert_non_null(inode_child(filesystem->inodes->root, "a0"));
	for (name[1] = '0'; name[1] <= '9'; name[1]++) {
		name[0] = 'r';
		make(name, 0);
	}
	names_make_room(filesystem, 0, 1);
	assert_int_equal(forgotten_count, 7);
	inode_unuse(filesystem, (struct inode *)used);
}

/* No name leads out of its directory. */
static void test_bad_names(void **state)
{
	static const char *const names[] = {"", ".", "..", "/", "a/b", "../a", "a/"};
	struct inode *inode;
	size_t before = count_names(ALICE);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(inode_create(filesystem, filesystem->inodes->root, names[i],
					      S_IFREG, ALICE, ALICE, &inode),
				 -EINVAL);
	assert_int_equal(count_names(ALICE), before);
	make("...", ALICE);
	make("%2e%2e", ALICE);
}

static void test_text(void **state)
{
	char *text = NULL, expected[256];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct user *alice = user_add(filesystem->users, ALICE, USER_WAITERS, 1);

	make("a", ALICE);
	user_write_all(filesystem, out);
	fclose(out);
	snprintf(expected, sizeof(expected),
		 "uid=%u waiters=0 files=0 names=1 ranges=0\n"
		 "uid=54321 waiters=1 files=0 names=1 ranges=0\n",
		 getuid());
	assert_string_equal(text, expected);
	free(text);
	user_leave(filesystem->users, alice, USER_WAITERS, 1);
}

#define USER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		USER_TEST(test_limits),	  USER_TEST(test_no_limits), USER_TEST(test_lower_limit),
		USER_TEST(test_amounts),  USER_TEST(test_pinned),    USER_TEST(test_restored),
		USER_TEST(test_room),	  USER_TEST(test_bad_names), USER_TEST(test_text),
		USER_TEST(test_releases), USER_TEST(test_turns),     USER_TEST(test_state_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
