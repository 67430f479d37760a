/* SPDX-License-Identifier: Apache-2.0
 *
 * Who holds a lock is told of its loss by the next process, too, which has no pidfds and goes by
 * what the journal says; and nobody else is, who has got its number since. Open files that
 * have lost theirs are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/fuse.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "handles/handle_end.h"
#include "handles/holder.h"
#include "handles/telling.h"
#include "ops/serving.h"
#include "restart/takeover.h"

static const struct fuse_in_header init;
static const struct takeover_process process = {
	.folder = "/",
	.mountpoint = "/test",
	.fuse = 3,
	.init = &init,
	.init_bytes = sizeof(init),
};

static struct config config;
static struct shards shards;
static struct serving serving;
static struct filesystem *const filesystem = &serving.filesystem;
static struct takeover_marks marks;
static int journal;
static pid_t child;

static void begin_filesystem(void)
{
	struct state_journal *created;

	assert_int_equal(shards_open(&config, &serving_events, NULL, &shards), 0);
	assert_int_equal(serving_init(&serving, &config, &shards), 0);
	assert_int_equal(state_journal_create(dup(journal), 0, 0, &created), 0);
	takeover_keep(filesystem, created, &marks);
	takeover_keep_process(filesystem, &process);
}

static void end_filesystem(void)
{
	telling_finish(filesystem);
	serving_finish(filesystem);
	shards_close(&shards);
	state_journal_destroy(filesystem->journal);
}

/* Waits for a signal: which one, its status says. */
static void begin_child(void)
{
	sigset_t set;
	int which = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	child = fork();
	assert_true(child >= 0);
	if (child > 0)
		return;
	sigwait(&set, &which);
	_exit(which);
}

/* Of signals that are there at the same time, the one with the lowest number is taken first. */
static int end_child(void)
{
	int status;

	kill(child, SIGRTMIN);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	child = 0;
	return WEXITSTATUS(status);
}

static int begin(void **state)
{
	char why[256];

	log_set_level(LOG_LEVEL_ERROR);
	assert_int_equal(config_init(&config), 0);
	assert_int_equal(config_set(&config, "on_lost", "SIGTERM", why, sizeof(why)), 0);
	journal = memfd_create("dlockfs test", MFD_CLOEXEC);
	assert_true(journal >= 0);
	begin_filesystem();
	begin_child();
	return 0;
}

static int end(void **state)
{
	end_filesystem();
	close(journal);
	config_finish(&config);
	if (child != 0)
		end_child();
	return 0;
}

/* The child holds a lock. Returns the number of the open file. */
static uint64_t let_hold(void)
{
	struct inode *inode;

	assert_int_equal(inode_create(filesystem, filesystem->inodes->root, "a", S_IFREG | 0644, 0,
				      0, &inode),
			 0);
	assert_int_equal(inode_attach(filesystem->inodes->root, inode), 0);
	struct handle *handle;
	assert_int_equal(handle_open(filesystem, inode, 0, &handle), 0);
	assert_int_equal(handle_own(handle), 0);
	holder_take_file(handle, child);
	takeover_mark_changed(filesystem);
	state_journal_commit(filesystem->journal, 0, NULL, 0);
	return handle->number;
}

/* What the journal says, with the time at which the process started so much later. */
static FILE *read_journal(uint64_t later)
{
	struct state_journal_content content;
	char why[256], *line = NULL;
	size_t capacity = 0;
	ssize_t length;
	FILE *text = tmpfile();

	assert_non_null(text);
	assert_int_equal(state_journal_load(journal, &content, why, sizeof(why)), 0);
	while ((length = getline(&line, &capacity, content.text)) > 0) {
		char *start = strstr(line, " start="), *rest;
		if (start == NULL) {
			fputs(line, text);
			continue;
		}
		uint64_t time = strtoull(start + strlen(" start="), &rest, 10);
		assert_true(time > 0);
		*start = '\0';
		fprintf(text, "%s start=%llu%s", line, (unsigned long long)(time + later), rest);
	}
	free(line);
	rewind(text);
	state_journal_content_finish(&content);
	return text;
}

/* Another process goes on with that. Returns the open file of that number. */
static struct handle *go_on(uint64_t number, FILE *text)
{
	struct takeover takeover = {0};
	char why[1024] = "";

	end_filesystem();
	takeover_read_kept(&takeover, text, 3, why, sizeof(why));
	assert_string_equal(why, "");
	begin_filesystem();
	takeover_restore(&takeover, filesystem, why, sizeof(why));
	assert_string_equal(why, "");
	struct handle *handle = handle_of_number(filesystem->handles, number);
	assert_non_null(handle);
	takeover_finish(&takeover);
	return handle;
}

/* The same, and the lock is lost. */
static void go_on_and_lose(uint64_t number, FILE *text)
{
	struct handle *handle = go_on(number, text);

	handle->flushed = false; /* there is no mount that the process could have it open on */
	telling_lose(handle);
	telling_conclude(filesystem);
}

static void test_told(void **state)
{
	uint64_t number = let_hold();

	go_on_and_lose(number, read_journal(0));
	assert_int_equal(end_child(), SIGTERM);
}

static void test_told_by_the_third(void **state)
{
	uint64_t number = let_hold();
	struct takeover takeover = {0};
	char why[1024] = "";
	FILE *text = read_journal(0);

	end_filesystem();
	assert_int_equal(takeover_read_kept(&takeover, text, 3, why, sizeof(why)), 0);
	begin_filesystem();
	assert_int_equal(takeover_restore(&takeover, filesystem, why, sizeof(why)), 0);
	takeover_finish(&takeover);
	takeover_mark_changed(filesystem);
	state_journal_commit(filesystem->journal, 0, NULL, 0);
	go_on_and_lose(number, read_journal(0));
	assert_int_equal(end_child(), SIGTERM);
}

static void test_number_of_another(void **state)
{
	uint64_t number = let_hold();

	go_on_and_lose(number, read_journal(1));
	assert_int_equal(end_child(), SIGRTMIN);
}

static void test_gone(void **state)
{
	uint64_t number = let_hold();

	assert_int_equal(end_child(), SIGRTMIN);
	go_on_and_lose(number, read_journal(0));
	assert_null(handle_of_number(filesystem->handles, number)->holders);
}

/* `status` says how many open files of a store are fenced: each once, until it is closed. */
static void test_fenced_are_counted(void **state)
{
	uint64_t number = let_hold();
	struct handle *handle = handle_of_number(filesystem->handles, number);

	assert_int_equal(shards.list[0].fenced, 0);
	telling_lose(handle);
	telling_lose(handle);
	assert_int_equal(shards.list[0].fenced, 1);
	state_journal_commit(filesystem->journal, 0, NULL, 0);
	handle = go_on(number, read_journal(0));
	assert_int_equal(shards.list[0].fenced, 1);
	handle_close(handle);
	assert_int_equal(shards.list[0].fenced, 0);
}

#define HOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOLDER_TEST(test_told),
		HOLDER_TEST(test_told_by_the_third),
		HOLDER_TEST(test_number_of_another),
		HOLDER_TEST(test_gone),
		HOLDER_TEST(test_fenced_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
