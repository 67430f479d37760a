/* SPDX-License-Identifier: Apache-2.0
 *
 * What the servers have of lock files: what is written is read as the same, by
 * other hosts; and whatever another client has written is a file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/inode_restore.h"
#include "files/lockfile_text.h"
#include "files/user.h"
#include "handles/lockfile_name.h"
#include "notifier_double.h"
#include "ops/asking.h"
#include "ops/content.h"
#include "ops/serving.h"

#define ID "abcdefghijklmnopabcdefghijklmnop"

enum { ALICE = 54321 };

struct fixture {
	struct config config;
	struct shard shard;
	struct shards shards;
	struct serving serving;
	struct inode *inode;
};

static struct fixture fixture;

static void make_lockfile(struct inode *inode)
{
	const struct inode *root = fixture.serving.filesystem.inodes->root;
	inode->lockfile = lockfile_create(inode, inode_lockfile_path(root, inode->name));
	assert_non_null(inode->lockfile);
}

static int begin(void **state)
{
	struct filesystem *filesystem = &fixture.serving.filesystem;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	fixture = (struct fixture){0};
	assert_int_equal(config_init(&fixture.config), 0);
	fixture.shards = (struct shards){.list = &fixture.shard, .count = 1};
	assert_int_equal(serving_init(&fixture.serving, &fixture.config, &fixture.shards), 0);
	fixture.shard.filesystem = filesystem;
	filesystem->inodes->root->keeps_files = true;
	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, "a", S_IFREG | 0640,
				      ALICE, ALICE, &fixture.inode),
			 0);
	make_lockfile(fixture.inode);
	assert_int_equal(inode_attach(filesystem->inodes->root, fixture.inode), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	serving_finish(&fixture.serving.filesystem);
	config_finish(&fixture.config);
	return 0;
}

static struct lockfile_facts parse(const char *data, size_t bytes, int64_t changed_ms)
{
	struct store_claim claim = {
		.data = data,
		.data_bytes = bytes,
		.session = 7,
		.since_ms = 1000,
		.changed_ms = changed_ms,
		.version = 3,
	};
	struct lockfile_facts facts;

	assert_int_equal(lockfile_text_parse(&claim, &facts), 0);
	assert_int_equal(facts.version, 3);
	return facts;
}

/* Writes the inode, and reads that. */
static struct lockfile_facts copy(nlink_t links)
{
	char *text = lockfile_text_format(fixture.inode, links);

	assert_non_null(text);
	struct lockfile_facts facts = parse(text, strlen(text), 2500);
	free(text);
	return facts;
}

static void test_path(void **state)
{
	(void)state;
	assert_string_equal(fixture.inode->lockfile->path, "//a");
}

/* Any bytes of any length, in the line or behind it. */
static void test_copies(void **state)
{
	static const mode_t modes[] = {S_IFREG | 0640, S_IFLNK | 0777, S_IFDIR | 0701};
	struct inode *inode = fixture.inode;
	char text[2 * LOCKFILE_LINE_BYTES_MAX];

	(void)state;
	srandom(1);
	for (int round = 0; round < 300; round++) {
		static const size_t lengths[] = {0, LOCKFILE_LINE_BYTES_MAX,
						 LOCKFILE_LINE_BYTES_MAX + 1, sizeof(text)};
		size_t bytes = round < 4 ? lengths[round]
					 : (size_t)random() % (round % 2 != 0 ? 8 : sizeof(text));
		for (size_t i = 0; i < bytes; i++)
			text[i] = (char)random();
		assert_int_equal(text_set(&inode->text, text, bytes, ALICE), 0);
		assert_true(lockfile_renew_id(inode->lockfile));
		inode->mode = modes[round % 3];
		inode->uid = (uid_t)random();
		inode->gid = (gid_t)random();
		inode->lockfile->dates = round % 2 != 0;
		inode->mtime = (struct timespec){random() - (1L << 30), random() % 1000000000};
		inode->atime = inode->mtime;
		if (round % 3 == 0)
			inode->atime = (struct timespec){random() - (1L << 30), round};
		if (round % 5 == 0)
			inode->lockfile->number = (uint64_t)random() << 32;
		struct lockfile_facts facts = copy((nlink_t)round % 7 + 1);

		assert_true(lockfile_text_is_same(inode, &facts));
		assert_int_equal(facts.number, inode->lockfile->number);
		assert_int_equal(facts.mode, inode->mode);
		assert_int_equal(facts.uid, inode->uid);
		assert_int_equal(facts.gid, inode->gid);
		assert_int_equal(facts.links, round % 7 + 1);
		assert_int_equal(facts.ctime.tv_sec, 2);
		assert_int_equal(facts.ctime.tv_nsec, 500000000);
		const struct timespec *expected =
			inode->lockfile->dates ? &inode->mtime : &facts.ctime;
		assert_int_equal(facts.mtime.tv_sec, expected->tv_sec);
		assert_int_equal(facts.mtime.tv_nsec, expected->tv_nsec);
		if (round % 3 == 0)
			expected = &inode->atime;
		assert_int_equal(facts.atime.tv_sec, expected->tv_sec);
		assert_int_equal(facts.atime.tv_nsec, expected->tv_nsec);
		assert_int_equal(facts.text_bytes, bytes);
		if (bytes > 0)
			assert_memory_equal(facts.text, text, bytes);
		lockfile_text_finish(&facts);
	}
}

/* The servers have little more than the text, whatever it is; and with all its names it fits into
 * one transaction. */
static void test_long(void **state)
{
	struct filesystem *filesystem = &fixture.serving.filesystem;
	struct inode *inode = fixture.inode, *link;
	size_t bytes = (size_t)lockfile_text_limit(inode->lockfile);
	char *text = malloc(bytes);
	char why[256];

	(void)state;
	assert_in_range(bytes, 1000 * 1024, CONFIG_TEXT_LIMIT_MAX);
	assert_int_equal(inode_text_limit(inode), CONFIG_TEXT_LIMIT_LOCK);
	assert_int_equal(config_set(&fixture.config, "style", "file", why, sizeof(why)), 0);
	assert_int_equal(inode_text_limit(inode), CONFIG_TEXT_LIMIT_FILE);
	assert_int_equal(config_set(&fixture.config, "text_limit", "1048576", why, sizeof(why)), 0);
	assert_int_equal(inode_text_limit(inode), bytes);
	assert_non_null(text);
	assert_true(lockfile_renew_id(inode->lockfile));
	srandom(1);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < bytes; i++)
			text[i] = (char)(round == 0 ? random() : round == 1 ? 0 : 'x');
		assert_int_equal(text_set(&inode->text, text, bytes, ALICE), 0);
		char *stored = lockfile_text_format(inode, UINT32_MAX);
		assert_non_null(stored);
		assert_in_range(strlen(stored), bytes,
				STORE_STEPS_BYTES_MAX - STORE_STEP_BYTES - 3);
		free(stored);
		struct lockfile_facts facts = copy(1);
		assert_int_equal(facts.text_bytes, bytes);
		assert_memory_equal(facts.text, text, bytes);
		lockfile_text_finish(&facts);
	}
	free(text);
	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, "b", S_IFREG | 0640,
				      ALICE, ALICE, &link),
			 0);
	make_lockfile(link);
	assert_int_equal(inode_attach(filesystem->inodes->root, link), 0);
	lockfile_join(link->lockfile, inode->lockfile);
	assert_in_range(2 * inode_text_limit(inode), bytes - 4096, bytes);
}

/* What is said to be behind the line, and is not, or not all of it. */
static void test_cut(void **state)
{
	static char text[5000];
	struct lockfile_facts facts;

	(void)state;
	assert_int_equal(text_set(&fixture.inode->text, text, sizeof(text), ALICE), 0);
	assert_true(lockfile_renew_id(fixture.inode->lockfile));
	char *stored = lockfile_text_format(fixture.inode, 1);
	assert_non_null(stored);
	for (size_t bytes = strlen(stored) - 1; bytes > 0; bytes -= bytes < 300 ? 1 : 100) {
		facts = parse(stored, bytes, 2500);
		assert_int_equal(facts.text_bytes, bytes);
		assert_string_equal(facts.who, "another client of the store");
		lockfile_text_finish(&facts);
	}
	free(stored);
}

/* Who made it is told in one line of the log, whatever the host and the program are called. */
static void test_maker(void **state)
{
	struct lockfile *lockfile = fixture.inode->lockfile;

	(void)state;
	assert_true(lockfile_renew_id(fixture.inode->lockfile));
	lockfile->maker.pid = 4711;
	strcpy(lockfile->maker.command, "a\nb (c");
	struct lockfile_facts facts = copy(1);
	assert_non_null(strstr(facts.who, "process 4711 (a%0Ab%20(c)"));
	assert_null(strchr(facts.who, '\n'));
	assert_null(facts.text);
}

/* A file with all that is there as its content. */
static void expect_text(const char *data, size_t bytes)
{
	struct lockfile_facts facts = parse(data, bytes, 2500);
	size_t expected = bytes < LOCKFILE_TEXT_BYTES_MAX ? bytes : LOCKFILE_TEXT_BYTES_MAX;

	assert_int_equal(facts.mode, S_IFREG | 0644);
	assert_int_equal(facts.uid, 0);
	assert_int_equal(facts.links, 1);
	assert_int_equal(facts.mtime.tv_sec, 2);
	assert_string_equal(facts.who, "another client of the store");
	assert_string_equal(facts.id, "000000000000000700000000000003e8");
	assert_int_equal(facts.text_bytes, expected);
	if (expected > 0)
		assert_memory_equal(facts.text, data, expected);
	lockfile_text_finish(&facts);
}

static void test_foreign(void **state)
{
	static const char *const texts[] = {
		"worker-17\n",
		"\n\n",
		ID,
		ID "\n",
		ID "\nfile\n",
		ID "x\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b\n",
		ID "\ndirectory mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 mtime=-9223372036854775808 host=a pid=1 "
		   "command=b\n",
		/* a device, as no host makes it; times that it says do not count */
		ID "\nfile mode=8630 uid=0 gid=0 links=1 mtime=1 host=a pid=1 command=b text=x\n",
		ID "\nfile mode=99999999 uid=0 gid=0 links=1 host=a pid=1 command=b\n",
		/* no path of a queue */
		ID "\nfile lock=a mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b\n",
		ID "\nfile lock=//../ mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b\n",
		ID "\nfile lock=//a mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b\n",
		ID "\nfile mode=33188 uid=-1 gid=0 links=1 host=a pid=1 command=b\n",
		/* nobody's; and a name that is none */
		ID "\nfile mode=33188 uid=4294967295 gid=0 links=1 host=a pid=1 command=b\n",
		ID "\nfile mode=33188 uid=0 gid=4294967295 links=1 host=a pid=1 command=b\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=0 host=a pid=1 command=b\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=4294967296 host=a pid=1 command=b\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 pid=1 command=b\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b text=%4\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b bytes=1\n",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b bytes=2\n\x02x",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b bytes=-1\n\x02x",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b bytes=1048577\n"
		   "\x02x",
		ID "\nfile mode=33188 uid=0 gid=0 links=1 host=a pid=1 command=b text=y bytes=1\n"
		   "\x02x",
	};
	static char large[LOCKFILE_TEXT_BYTES_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect_text(texts[i], strlen(texts[i]));
	expect_text(NULL, 0);
	expect_text("a\0b", 3);
	memset(large, 'x', sizeof(large));
	expect_text(large, sizeof(large));
}

/* The lock of a file that was renamed is said where it does not follow from the name; and stays
 * what it is for an inode, whatever the text of that file says later. */
static void test_queue(void **state)
{
	struct inode *inode = fixture.inode;

	(void)state;
	assert_string_equal(inode_lock_path(inode), "//a/");
	assert_true(lockfile_renew_id(inode->lockfile));
	struct lockfile_facts facts = copy(1);
	assert_null(facts.queue);
	lockfile_text_finish(&facts);

	assert_int_equal(lockfile_set_queue(inode->lockfile, "t//old name%/"), 0);
	facts = copy(1);
	assert_string_equal(facts.queue, "t//old name%/");
	assert_true(lockfile_text_is_same(inode, &facts));
	assert_int_equal(lockfile_set_queue(inode->lockfile, NULL), 0);
	assert_int_equal(lockfile_text_update(inode, &facts), 0);
	assert_string_equal(inode_lock_path(inode), "//a/");
	assert_true(lockfile_renew_id(inode->lockfile));
	assert_int_equal(lockfile_text_update(inode, &facts), 0);
	assert_string_equal(inode_lock_path(inode), "t//old name%/");
	lockfile_text_finish(&facts);

	assert_true(lockfile_renew_id(inode->lockfile));
	facts = copy(1);
	free(facts.queue);
	facts.queue = NULL;
	assert_true(lockfile_renew_id(inode->lockfile));
	assert_int_equal(lockfile_text_update(inode, &facts), 0);
	assert_string_equal(inode_lock_path(inode), "//a/");
	lockfile_text_finish(&facts);
}

/* Who can write to the store gives nobody the rights of another account. */
static void test_no_setuid(void **state)
{
	static const mode_t kinds[] = {S_IFREG, S_IFDIR, S_IFLNK};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		snprintf(text, sizeof(text),
			 ID "\nfile mode=%u uid=0 gid=0 links=1 host=a pid=1 command=b text=x\n",
			 kinds[i] | 07755);
		struct lockfile_facts facts = parse(text, strlen(text), 2500);

		assert_int_equal(facts.mode, kinds[i] | 0755);
		lockfile_text_finish(&facts);
	}
}

/* Whatever time a store says. */
static void test_times(void **state)
{
	static const int64_t times_ms[] = {INT64_MIN, -1, 0, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(times_ms) / sizeof(*times_ms); i++) {
		struct lockfile_facts facts = parse("x", 1, times_ms[i]);

		assert_in_range(facts.mtime.tv_nsec, 0, 999999999);
		assert_int_equal(facts.mtime.tv_sec < 0, times_ms[i] < 0);
		lockfile_text_finish(&facts);
	}
}

/* An open that waits for the store keeps its inode until the daemon stops, and not longer. */
static void test_refused_open(void **state)
{
	struct inode *inode = fixture.inode;
	struct lockfile_opening *opening = calloc(1, sizeof(*opening));
	struct asking *asking = asking_begin_alone(fixture.serving.filesystem.inodes->root, NULL);

	(void)state;
	assert_non_null(opening);
	assert_non_null(asking);
	opening->asking = asking;
	inode->lockfile->opening = opening;
	asking->made = inode;
	inode_use(&fixture.serving.filesystem, inode);
	waiting_refuse_all(fixture.serving.filesystem.calls->askings, &asking_kind, -EIO);
	assert_null(opening->asking);
	assert_int_equal(inode->handles, 0);
}

/* An open that another process has left is on nobody's account, until the store has decided. */
static void test_restored_open(void **state)
{
	struct filesystem *filesystem = &fixture.serving.filesystem;
	struct inode *inode;

	(void)state;
	assert_int_equal(lockfile_name_prepare(filesystem, filesystem->inodes->root, "b",
					       S_IFREG | 0640, ALICE, ALICE, 0, &inode),
			 0);
	inode_use(filesystem, inode);
	inode_restore_end(filesystem);
	assert_null(inode->user);
	assert_int_equal(lockfile_name_appear(filesystem, filesystem->inodes->root, inode, false),
			 0);
	assert_ptr_equal(inode->user, user_find(filesystem->users, ALICE));
	inode_unuse(filesystem, inode);
	assert_true(inode->idle.listed);
}

static void set_names(const char *limit)
{
	char why[128];
	assert_int_equal(config_set(&fixture.config, "user_names", limit, why, sizeof(why)), 0);
}

/* Alice looks up what another host has made, with a text of that length. Returns 0 or -errno. */
static int look_up(struct inode *directory, const char *name, mode_t mode, size_t bytes,
		   struct inode **ret)
{
	char text[LOCKFILE_TEXT_BYTES_MAX] = "";
	const struct lockfile_facts facts = {
		.id = ID, .mode = mode, .links = 1, .text = text, .text_bytes = bytes};

	return lockfile_name_know(&fixture.serving.filesystem, directory, name, &facts, false,
				  ALICE, ret);
}

static size_t count_names(void)
{
	return user_find(fixture.serving.filesystem.users, ALICE)->counts[USER_NAMES];
}

/* No text takes a user beyond the limit, wherever it comes from: the name, or the longer text, is
 * refused, and what was there stays. */
static void test_limit(void **state)
{
	struct inode *root = fixture.serving.filesystem.inodes->root, *inode, *other = NULL;

	(void)state;
	set_names("20");
	assert_int_equal(look_up(root, "b", S_IFREG | 0644, 2000, &inode), 0);
	assert_int_equal(count_names(), 9);
	assert_int_equal(look_up(root, "c", S_IFREG | 0644, 4096, &other), -EDQUOT);
	assert_null(inode_child(root, "c"));
	assert_int_equal(count_names(), 9);
	assert_int_equal(look_up(root, "b", S_IFREG | 0644, 4096, &other), 0);
	assert_ptr_equal(other, inode);
	assert_int_equal(count_names(), 18);
	assert_int_equal(look_up(root, "b", S_IFREG | 0644, 2000, &other), 0);
	set_names("12");
	assert_int_equal(look_up(root, "b", S_IFREG | 0644, 4096, &other), -EDQUOT);
	assert_int_equal(inode->text.count, 2000);
	assert_int_equal(count_names(), 9);
}

/* Room for a long text is made by what is idle, and its texts; not by the directory. */
static void test_room(void **state)
{
	struct inode *root = fixture.serving.filesystem.inodes->root, *directory, *inode;

	(void)state;
	set_names("20");
	assert_int_equal(look_up(root, "d", S_IFDIR | 0755, 0, &directory), 0);
	assert_int_equal(look_up(root, "b", S_IFREG | 0644, 3072, &inode), 0);
	assert_int_equal(count_names(), 15);
	assert_int_equal(look_up(directory, "c", S_IFREG | 0644, 4096, &inode), 0);
	assert_null(inode_child(root, "b"));
	assert_ptr_equal(inode_child(root, "d"), directory);
	assert_ptr_equal(inode_child(directory, "c"), inode);
	assert_int_equal(count_names(), 19);
}

/* Links have one text: all get the new one, or none. */
static void test_links(void **state)
{
	struct inode *root = fixture.serving.filesystem.inodes->root, *inode = fixture.inode,
		     *links[2];

	(void)state;
	assert_int_equal(look_up(root, "b", S_IFREG | 0644, 0, &links[0]), 0);
	assert_int_equal(look_up(root, "c", S_IFREG | 0644, 0, &links[1]), 0);
	lockfile_join(links[0]->lockfile, inode->lockfile);
	lockfile_join(links[1]->lockfile, links[0]->lockfile);
	assert_int_equal(inode_write(inode, "old", 3, 0, ALICE), 0);
	inode->mode = S_IFREG | 0600;
	assert_int_equal(content_spread(inode), 0);

	set_names("12"); /* 3 names, and 2 texts of 4 shares */
	assert_int_equal(inode_write(inode, "new", 3, 1024, ALICE), 0);
	inode->mode = S_IFREG | 0644;
	assert_int_equal(content_spread(inode), -EDQUOT);
	const struct inode *all[] = {inode, links[0], links[1]};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_int_equal(all[i]->text.count, 3);
		assert_memory_equal(all[i]->text.bytes, "old", 3);
		assert_int_equal(all[i]->mode, S_IFREG | 0600);
	}
	assert_int_equal(count_names(), 3);
}

#define LOCKFILE_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCKFILE_TEST(test_path),	   LOCKFILE_TEST(test_copies),
		LOCKFILE_TEST(test_long),	   LOCKFILE_TEST(test_cut),
		LOCKFILE_TEST(test_maker),	   LOCKFILE_TEST(test_foreign),
		LOCKFILE_TEST(test_queue),	   LOCKFILE_TEST(test_no_setuid),
		LOCKFILE_TEST(test_times),	   LOCKFILE_TEST(test_refused_open),
		LOCKFILE_TEST(test_restored_open), LOCKFILE_TEST(test_limit),
		LOCKFILE_TEST(test_room),	   LOCKFILE_TEST(test_links),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
