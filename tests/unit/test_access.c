/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may use a lock: what the configuration says of paths, and how permissions are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>

#include "access.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct config config;

static int setup(void **state)
{
	(void)state;
	return config_init(&config);
}

static int teardown(void **state)
{
	(void)state;
	config_finish(&config);
	return 0;
}

static void read_text(const char *text)
{
	char file[] = "/tmp/dlockfs-test-access.XXXXXX", why[1024];
	int fd = mkstemp(file);
	size_t bytes = strlen(text);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	close(fd);
	assert_int_equal(config_read(&config, file, why, sizeof(why)), 0);
	unlink(file);
}

static void check(const char *path, bool directory, uid_t uid, gid_t gid, mode_t mode)
{
	struct access access = access_of(&config, path, directory);

	assert_true(access.fixed);
	assert_int_equal(access.uid, uid);
	assert_int_equal(access.gid, gid);
	assert_int_equal(access.mode, mode);
}

/* Nothing is fixed where nothing is said; what is not said where something is has defaults. */
static void test_paths(void **state)
{
	(void)state;
	assert_false(access_of(&config, "a", false).fixed);
	read_text("[locks \"a\"]\nowner = 5\n[locks \"b/*\"]\ngroup = 6\n[locks \"c\"]\n"
		  "mode = 0\n[locks \"*\"]\nlinger = 1s\n[locks \"d\"]\nowner = 7\ngroup = 8\n"
		  "mode = 0750\n[locks \"e\"]\nowner = creator\n");
	check("a", false, 5, getgid(), 0660);
	check("b/x", false, getuid(), 6, 0660);
	assert_false(access_of(&config, "b", true).fixed);
	assert_false(access_of(&config, "b/x/y", false).fixed);
	check("c", false, getuid(), getgid(), 0);
	check("d", false, 7, 8, 0750);
	assert_false(access_of(&config, "e", false).fixed);
}

/* Directories can be searched by whom they can be read by; the root has a mode of its own. */
static void test_directories(void **state)
{
	(void)state;
	read_text("[locks]\nmode = 0640\n[locks \"a\"]\nmode = 0204\n");
	check("x", true, getuid(), getgid(), 0750);
	check("a", true, getuid(), getgid(), 0205);
	assert_false(access_of(&config, "", true).fixed);
	read_text("[locks \"*\"]\nmode = 0600\n");
	assert_false(access_of(&config, "", true).fixed);
}

/* As the kernel reads them: the first class that fits counts, also where a later one has more. */
static void test_classes(void **state)
{
	static const gid_t others[] = {30, 20};
	const struct access access = {true, 10, 20, 0064};
	const struct {
		struct access_caller caller;
		int allowed;
	} cases[] = {
		{{.uid = 10, .gid = 99}, 0},
		{{.uid = 10, .gid = 20}, 0},
		{{.uid = 11, .gid = 20}, R_OK | W_OK},
		{{.uid = 11, .gid = 99, .groups = others, .groups_count = 2}, R_OK | W_OK},
		{{.uid = 11, .gid = 99, .groups = others, .groups_count = 1}, R_OK},
		{{.uid = 11, .gid = 10}, R_OK},
		{{.uid = 0, .gid = 99}, R_OK | W_OK | X_OK},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (int wanted = 0; wanted < 8; wanted++)
			assert_int_equal(access_allows(&cases[i].caller, &access, wanted),
					 (cases[i].allowed & wanted) == wanted);
	}
}

/* Whose groups are unknown has no more than either class; but it may be known to be in the group.
 */
static void test_unknown_groups(void **state)
{
	static const struct {
		mode_t mode;
		struct access_caller caller;
		int allowed;
	} cases[] = {
		{0604, {.uid = 11, .gid = 99, .groups_unknown = true}, 0},
		{0604, {.uid = 11, .gid = 99}, R_OK},
		{0664, {.uid = 11, .gid = 99, .groups_unknown = true}, R_OK},
		{0660, {.uid = 11, .gid = 99, .groups_unknown = true}, 0},
		{0660, {.uid = 11, .gid = 20, .groups_unknown = true}, R_OK | W_OK},
		{0604, {.uid = 10, .gid = 99, .groups_unknown = true}, R_OK | W_OK},
		{0000, {.uid = 0, .groups_unknown = true}, R_OK | W_OK | X_OK},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct access access = {true, 10, 20, cases[i].mode};
		for (int wanted = 0; wanted < 8; wanted++)
			assert_int_equal(access_allows(&cases[i].caller, &access, wanted),
					 (cases[i].allowed & wanted) == wanted);
	}
}

static void test_flags(void **state)
{
	(void)state;
	assert_int_equal(access_wanted(O_RDONLY | O_CREAT | O_EXCL), R_OK);
	assert_int_equal(access_wanted(O_WRONLY), W_OK);
	assert_int_equal(access_wanted(O_RDWR), R_OK | W_OK);
	assert_int_equal(access_wanted(O_RDONLY | O_TRUNC), R_OK | W_OK);
	assert_int_equal(access_wanted(O_WRONLY | O_TRUNC), W_OK);
}

/* Whose queues are shown: the file must be readable, and each directory on the way searchable. */
static void test_seeing(void **state)
{
	static const struct access_caller user = {.uid = 5, .gid = 5}, root = {.uid = 0};

	(void)state;
	read_text("[locks \"a\"]\nmode = 0600\n[locks \"d\"]\nowner = 5\ngroup = 6\n"
		  "[locks \"d/e\"]\nmode = 0711\n[locks \"d/e/f\"]\nmode = 0004\n");
	assert_true(access_may_see(&config, &user, "x"));
	assert_true(access_may_see(&config, &user, "x/y"));
	assert_false(access_may_see(&config, &user, "a"));
	assert_false(access_may_see(&config, &user, "a/b"));
	assert_false(access_may_see(&config, &user, "a/b/c"));
	assert_true(access_may_see(&config, &user, "ab"));
	assert_true(access_may_see(&config, &user, "d/x"));
	assert_true(access_may_see(&config, &user, "d/e/f"));
	assert_true(access_may_see(&config, &user, "d/e/x"));
	assert_false(access_may_see(&config, &user, "d/e"));
	assert_true(access_may_see(&config, &root, "a/b"));
}

#define ACCESS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACCESS_TEST(test_paths),   ACCESS_TEST(test_directories),
		ACCESS_TEST(test_classes), ACCESS_TEST(test_unknown_groups),
		ACCESS_TEST(test_flags),   ACCESS_TEST(test_seeing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
