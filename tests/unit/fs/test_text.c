/* SPDX-License-Identifier: Apache-2.0
 *
 * Long texts in lock files: limits, the blocks that the journal keeps, and what a commit writes of
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/inode_restore.h"
#include "files/user.h"
#include "journal/form.h"
#include "notifier_double.h"
#include "ops/serving.h"

enum { ALICE = 54321, LONG = 1 << 20 };

struct fixture {
	struct config config;
	struct shard shard;
	struct shards shards;
	struct serving serving;
};

static struct fixture fixture;
static struct filesystem *const filesystem = &fixture.serving.filesystem;
static char text[LONG];

static void set(const char *key, const char *value)
{
	char why[256];
	assert_int_equal(config_set(&fixture.config, key, value, why, sizeof(why)), 0);
}

static int begin(void **state)
{
	log_set_level(LOG_LEVEL_ERROR);
	fixture = (struct fixture){0};
	for (size_t i = 0; i < LONG; i++)
		text[i] = (char)(i * 31 + i / 4096);
	assert_int_equal(config_init(&fixture.config), 0);
	set("text_limit", "1048576");
	fixture.shards = (struct shards){.list = &fixture.shard, .count = 1};
	assert_int_equal(serving_init(&fixture.serving, &fixture.config, &fixture.shards), 0);
	return state_journal_create(memfd_create("test", MFD_CLOEXEC), 4096, 0,
				    &filesystem->journal);
}

static int end(void **state)
{
	struct state_journal *journal = filesystem->journal;

	serving_finish(filesystem);
	assert_null(filesystem->users->by_uid);
	config_finish(&fixture.config);
	state_journal_destroy(journal);
	return 0;
}

static struct inode *make(const char *name)
{
	struct inode *inode;

	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, name, S_IFREG | 0644,
				      ALICE, ALICE, &inode),
			 0);
	assert_int_equal(inode_attach(filesystem->inodes->root, inode), 0);
	return inode;
}

/* How many bytes a commit appends. */
static uint64_t commit(void)
{
	struct head head;
	int descriptor = state_journal_descriptor(filesystem->journal);
	uint64_t end[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pread(descriptor, &head, sizeof(head), 0), sizeof(head));
		int current = state_journal_find_extent(&head);
		end[i] = current > 0 ? head.extents[current - 1].end : 0;
		if (i == 0)
			state_journal_commit(filesystem->journal, 0, NULL, 0);
	}
	return end[1] - end[0];
}

static void test_limits(void **state)
{
	struct inode *inode = make("a");

	assert_int_equal(inode_resize(inode, LONG, 0), 0);
	assert_int_equal(inode_resize(inode, LONG + 1, 0), -EFBIG);
	assert_int_equal(inode_resize(inode, -1, 0), -EFBIG);
	assert_int_equal(inode_write(inode, text, 2, LONG - 1, 0), -EFBIG);
	assert_int_equal(inode_write(inode, text, 2, -1, 0), -EFBIG);
	assert_int_equal(inode_write(inode, text, 2, INT64_MAX, 0), -EFBIG);
	assert_int_equal(inode->text.count, LONG);
	/* A text that is there stays, and may be written over and cut. */
	set("text_limit", "10");
	assert_int_equal(inode_write(inode, text, 2, LONG - 2, 0), 0);
	assert_int_equal(inode_resize(inode, 9000, 0), 0);
	assert_int_equal(inode_resize(inode, 9001, 0), -EFBIG);
	assert_int_equal(inode_write(inode, text, 1, 9000, 0), -EFBIG);
	assert_int_equal(inode->text.count, 9000);
	/* A user's texts count together. */
	set("text_limit", "1048576");
	set("user_names", "100");
	assert_int_equal(inode_resize(inode, 9000 + 98 * 256, ALICE), -EDQUOT);
	assert_int_equal(inode_resize(inode, 90 * 256, ALICE), 0);
	assert_int_equal(inode_resize(make("b"), 20 * 256, ALICE), -EDQUOT);
	set("text_limit", "0");
	assert_int_equal(inode_write(make("c"), text, 1, 0, 0), -EFBIG);
	assert_int_equal(inode_write(make("d"), text, 0, 0, 0), 0);
}

/* A change of a long text, or of its file, does not cost the whole text. */
static void test_commits(void **state)
{
	struct inode *inode = make("a");

	commit();
	assert_int_equal(inode_write(inode, text, LONG, 0, 0), 0);
	assert_in_range(commit(), LONG, 4 * LONG);
	assert_int_equal(inode_write(inode, "x", 1, 500000, 0), 0);
	assert_in_range(commit(), 4096, 64 << 10);
	assert_int_equal(inode_resize(inode, LONG - 1, 0), 0);
	assert_in_range(commit(), 4096, 64 << 10);
	inode_use(filesystem, inode);
	inode_mark(inode);
	assert_in_range(commit(), 4096, 64 << 10);
	/* What is cut is gone. */
	assert_int_equal(inode_resize(inode, 5000, 0), 0);
	assert_in_range(commit(), 4096, 64 << 10);
	inode_unuse(filesystem, inode);
}

/* Reads all lines that the journal has of inodes into another file system, and returns its root. */
static struct inode *restore(struct serving *serving)
{
	struct filesystem *other = &serving->filesystem;
	struct state_journal_content content;
	struct state_reader in;
	char why[256] = "";

	assert_int_equal(serving_init(serving, &fixture.config, &fixture.shards), 0);
	state_journal_commit(filesystem->journal, 0, NULL, 0);
	assert_int_equal(state_journal_load(state_journal_descriptor(filesystem->journal), &content,
					    why, sizeof(why)),
			 0);
	state_reader_init(&in, content.text);
	while (state_next(&in) > 0 && strcmp(in.word, "end") != 0) {
		int error = strcmp(in.word, "inode") == 0
				    ? inode_restore(other, &in)
				    : text_restore_block(
					      &inode_find(other->inodes,
							  state_get_unsigned(&in, "node", 1000))
						       ->text,
					      &in);
		if (error != 0)
			fail_msg("%s", in.why);
	}
	state_reader_finish(&in);
	state_journal_content_finish(&content);
	return other->inodes->root;
}

/* The next process has the same texts, whatever happened to them. */
static void test_restore(void **state)
{
	struct serving other;
	static const size_t lengths[] = {1, 4095, 4096, 4097, 8192, 8193, 100000, LONG};
	char name[16];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		snprintf(name, sizeof(name), "text%zu", lengths[i]);
		struct inode *inode = make(name);
		assert_int_equal(inode_resize(inode, 20000, 0), 0);
		commit();
		assert_int_equal(inode_resize(inode, 5000, 0), 0);
		commit();
		assert_int_equal(inode_resize(inode, (off_t)lengths[i], 0), 0);
		assert_int_equal(inode_write(inode, text, lengths[i], 0, 0), 0);
		commit();
		assert_int_equal(inode_write(inode, "end", 1, (off_t)lengths[i] - 1, 0), 0);
	}
	inode_resize(make("empty"), 0, 0);
	struct inode *moved, *former = inode_child(filesystem->inodes->root, "text8193");
	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, "text8193", S_IFREG,
				      ALICE, ALICE, &moved),
			 0);
	inode_use(filesystem, former);
	inode_use(filesystem, moved);
	inode_take_name(filesystem, moved, true);
	inode_unuse(filesystem, former);

	struct inode *root = restore(&other);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		snprintf(name, sizeof(name), "text%zu", lengths[i]);
		const struct inode *inode = inode_child(root, name);
		assert_non_null(inode);
		assert_int_equal(inode->text.count, lengths[i]);
		assert_memory_equal(inode->text.bytes, text, lengths[i] - 1);
		assert_int_equal(inode->text.bytes[lengths[i] - 1], 'e');
	}
	assert_int_equal(inode_child(root, "empty")->text.count, 0);
	serving_finish(&other.filesystem);
	assert_null(other.users.by_uid);
	fixture.shard.filesystem = filesystem; /* serving_init() has changed that */
	inode_unuse(filesystem, moved);
}

static void expect_refused(const char *line, const char *part)
{
	struct inode *inode = make("a");
	struct state_reader in;
	FILE *file = fmemopen((void *)line, strlen(line), "r");

	assert_int_equal(inode_write(inode, text, 4096, 0, 0), 0);
	state_reader_init(&in, file);
	assert_int_equal(state_next(&in), 1);
	assert_int_equal(text_restore_block(&inode->text, &in), -EINVAL);
	if (strstr(in.why, part) == NULL)
		fail_msg("%s", in.why);
	state_reader_finish(&in);
	fclose(file);
	inode_detach(filesystem, inode);
}

static void test_refused(void **state)
{
	char line[5000] = "text at=4096 text=";
	size_t used = strlen(line);

	expect_refused("text at=0 text=x\n", "at: expected where the block before it ends");
	expect_refused("text at=8192 text=x\n", "at: expected where the block before it ends");
	expect_refused("text at=4095 text=x\n", "at: expected where the block before it ends");
	expect_refused("text at=1048576 text=x\n", "at: expected a number up to 1048575");
	expect_refused("text at=4096\n", "text: expected a value");
	memset(line + used, 'x', 4097);
	strcpy(line + used + 4097, "\n");
	expect_refused(line, "text: expected what fits into a file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_limits, begin, end),
		cmocka_unit_test_setup_teardown(test_commits, begin, end),
		cmocka_unit_test_setup_teardown(test_restore, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
