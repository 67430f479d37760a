/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl reads below .dlockfs while it changes: locks below another one come and go, and
 * another process goes on with the mount. The mount is a directory; inside_open() and read(2) are
 * those of this test.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlockctl/look.h"
#include "dlockctl/private_mount.h"
#include "dlockctl/tree.h" /* before cmocka.h, which has a macro fail() */

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define QUEUE "lock=cron claims=1 holders=1\nposition=1 state=held mode=exclusive\n"

static char folder[] = "/tmp/dlockfs-tree.XXXXXX";
static struct place place = {.mount = folder, .name = "cron"};

static unsigned opens, reads;
static unsigned stale_from, stale_to;  /* read(2) does not know the descriptor, from and to */
static void (*change)(unsigned opens); /* before a file is opened */

/* Of private_mount.c and options.c, which no test here asks for. */
int private_mount_begin(const struct context *context, char **ret_folder)
{
	(void)context;
	(void)ret_folder;
	return EXIT_NO_MOUNT;
}

bool is_of_store(const struct context *context)
{
	(void)context;
	return false;
}

/* Of look.c: in this process, whose calls are counted. */
int look(const char *mount, look_ask *ask, const void *what, char **ret_text, size_t *ret_bytes)
{
	int error = ask(what, ret_text, ret_bytes);

	(void)mount;
	if (error == 0 && *ret_text == NULL)
		*ret_text = must(strdup(""));
	return error;
}

const char *look_words(int error)
{
	return strerror(-error);
}

int __real_inside_open(const char *mount, const char *name, int flags, mode_t mode);
int __wrap_inside_open(const char *mount, const char *name, int flags, mode_t mode);
ssize_t __real_read(int fd, void *buffer, size_t bytes);
ssize_t __wrap_read(int fd, void *buffer, size_t bytes);

int __wrap_inside_open(const char *mount, const char *name, int flags, mode_t mode)
{
	assert_false(flags & O_CREAT);
	if ((flags & O_PATH) == 0) {
		opens++;
		if (change != NULL)
			change(opens);
	}
	return __real_inside_open(mount, name, flags, mode);
}

ssize_t __wrap_read(int fd, void *buffer, size_t bytes)
{
	reads++;
	if (reads >= stale_from && reads <= stale_to) {
		errno = ESTALE;
		return -1;
	}
	return __real_read(fd, buffer, bytes);
}

/*
 * The tree
 */

static void path_of(char *path, size_t bytes, const char *name)
{
	assert_true(snprintf(path, bytes, "%s/.dlockfs/%s", folder, name) < (int)bytes);
}

static void put(const char *name, const char *text)
{
	char path[256];
	path_of(path, sizeof(path), name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void make(const char *name)
{
	char path[256];
	path_of(path, sizeof(path), name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static void take_away(const char *name)
{
	char path[256];
	path_of(path, sizeof(path), name);
	assert_true(remove(path) == 0 || errno == ENOENT || errno == ENOTDIR);
}

/* Nobody wants cron/x, so the queue of cron is a file. */
static void make_file(void)
{
	take_away("locks/cron/.queue");
	take_away("locks/cron");
	put("locks/cron", QUEUE);
}

/* Somebody does. */
static void make_directory(const char *queue)
{
	take_away("locks/cron");
	make("locks/cron");
	if (queue != NULL)
		put("locks/cron/.queue", queue);
}

static int begin(void **state)
{
	(void)state;
	strcpy(strrchr(folder, '.'), ".XXXXXX");
	assert_non_null(mkdtemp(folder));
	make("");
	make("locks");
	put("queues", QUEUE);
	opens = reads = stale_from = stale_to = 0;
	change = NULL;
	return 0;
}

static int end(void **state)
{
	(void)state;
	take_away("locks/cron/.queue");
	take_away("locks/cron");
	take_away("locks");
	take_away("queues");
	take_away("");
	return rmdir(folder);
}

/* How many claims the queue of cron has. */
static size_t claims(void)
{
	struct queues queues;
	assert_int_equal(tree_queue(&place, &queues), 0);
	size_t count = queues.count > 0 ? queues.list[0].count : 0;
	queues_finish(&queues);
	return count;
}

/*
 * The tests
 */

static void test_at_rest(void **state)
{
	(void)state;
	assert_int_equal(claims(), 0);
	make_file();
	assert_int_equal(claims(), 1);
	make_directory(QUEUE);
	assert_int_equal(claims(), 1);
	take_away("locks/cron/.queue");
	assert_int_equal(claims(), 0);
}

static void lock_below(unsigned number)
{
	if (number == 2)
		make_directory(QUEUE);
}

static void test_lock_below_comes(void **state)
{
	(void)state;
	make_file();
	change = lock_below;
	assert_int_equal(claims(), 1);
	assert_int_equal(opens, 3);
}

static void release_and_lock_below(unsigned number)
{
	if (number == 2)
		make_directory(NULL);
}

static void test_released_meanwhile(void **state)
{
	(void)state;
	make_file();
	change = release_and_lock_below;
	assert_int_equal(claims(), 0);
}

static void come_and_go(unsigned number)
{
	if (number % 2 == 0)
		make_directory(QUEUE);
	else
		make_file();
}

static void test_locks_below_come_and_go(void **state)
{
	struct queues queues;

	(void)state;
	make_file();
	change = come_and_go;
	assert_int_equal(tree_queue(&place, &queues), -EAGAIN);
	assert_in_range(opens, 4, 100);
}

/* Whether the first read(2) is the one that fails, or the one at the end. */
static void check_other_process(unsigned number)
{
	char *text;
	size_t bytes;

	reads = 0;
	stale_from = stale_to = number;
	assert_int_equal(claims(), 1);
	reads = 0;
	assert_int_equal(tree_read(folder, "queues", &text, &bytes), 0);
	assert_string_equal(text, QUEUE);
	assert_int_equal(bytes, strlen(QUEUE));
	free(text);
}

static void test_other_process(void **state)
{
	(void)state;
	make_file();
	check_other_process(1);
	check_other_process(2);
}

static void test_other_process_always(void **state)
{
	struct queues queues;
	char *text;
	size_t bytes;

	(void)state;
	make_file();
	stale_from = 1;
	stale_to = 1000;
	assert_int_equal(tree_queue(&place, &queues), -ESTALE);
	assert_int_equal(tree_read(folder, "queues", &text, &bytes), -ESTALE);
	assert_in_range(reads, 4, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_at_rest, begin, end),
		cmocka_unit_test_setup_teardown(test_lock_below_comes, begin, end),
		cmocka_unit_test_setup_teardown(test_released_meanwhile, begin, end),
		cmocka_unit_test_setup_teardown(test_locks_below_come_and_go, begin, end),
		cmocka_unit_test_setup_teardown(test_other_process, begin, end),
		cmocka_unit_test_setup_teardown(test_other_process_always, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
