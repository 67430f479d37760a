/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may use a lock: what the configuration says of paths, and how permissions are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>

#include "files/access.h"
#include "files/filesystem.h"
#include "files/inode.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct config config;
static size_t policies; /* asked for */

/* The linker puts it in the place of config_policy(). */
struct lock_policy __real_config_policy(const struct config *of, const char *path);
struct lock_policy __wrap_config_policy(const struct config *of, const char *path);

struct lock_policy __wrap_config_policy(const struct config *of, const char *path)
{
	policies++;
	return __real_config_policy(of, path);
}

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

static void read_section(const char *header, const char *mode)
{
	char text[128];

	snprintf(text, sizeof(text), "%s\nmode = %s\n", header, mode);
	read_text(text);
}

static bool may(const struct access_caller *caller, const char *path, bool directory, int wanted)
{
	struct access access = access_of(&config, path, directory);
	return !access.fixed || access_allows(caller, &access, wanted);
}

/* The plain way: each directory is asked about. */
static bool may_see(const struct access_caller *caller, const char *path)
{
	char above[64];

	for (size_t i = 0; path[i] != '\0'; i++) {
		above[i] = '\0';
		if (path[i] == '/' && !may(caller, above, true, X_OK))
			return false;
		above[i] = path[i];
	}
	return may(caller, path, false, R_OK);
}

static void test_seeing_random_paths(void **state)
{
	static const char *const patterns[] = {"a", "b", "*", "?/a", "*/*", "a/?/b", "b/*/*/a"};
	static const char *const modes[] = {"0600", "0604", "0640", "0711", "0755"};
	static const struct access_caller user = {.uid = 5, .gid = 5};
	size_t seen = 0, unseen = 0;

	srandom(1);
	for (int round = 0; round < 300; round++) {
		size_t count = 1 + (size_t)random() % COUNT(patterns);

		teardown(state);
		setup(state);
		read_section("[locks]", random() % 3 == 0 ? "0600" : "0644");
		for (size_t i = 0; i < count; i++) {
			char header[64];
			snprintf(header, sizeof(header), "[locks \"%s\"]", patterns[i]);
			read_section(header, modes[(size_t)random() % COUNT(modes)]);
		}
		for (int i = 0; i < 200; i++) {
			char path[32] = "a";
			path[0] += (char)(random() % 2);
			for (long more = random() % 8; more > 0; more--)
				strcat(path, random() % 2 ? "/a" : "/b");
			bool expected = may_see(&user, path);
			assert_int_equal(access_may_see(&config, &user, path), expected);
			seen += expected;
			unseen += !expected;
		}
	}
	assert_true(seen > 1000 && unseen > 1000);
}

/* However deep the path is, no more is asked than there is to know. */
static void test_seeing_deep_paths(void **state)
{
	static const struct access_caller user = {.uid = 5, .gid = 5};
	char path[PATH_BYTES_MAX + 1];

	(void)state;
	read_text("[locks \"b/*\"]\nmode = 0600\n[locks \"a/a\"]\nmode = 0644\n");
	for (size_t i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 == 0 ? 'a' : '/';
	path[sizeof(path) - 2] = 'a';
	path[sizeof(path) - 1] = '\0';
	policies = 0;
	assert_true(access_may_see(&config, &user, path));
	assert_int_equal(policies, 4); /* a, a/a, a/a/a and the file */
	path[0] = 'b';
	policies = 0;
	assert_false(access_may_see(&config, &user, path));
	assert_int_equal(policies, 2);
}

#define ACCESS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ACCESS_TEST(test_paths),
		ACCESS_TEST(test_directories),
		ACCESS_TEST(test_classes),
		ACCESS_TEST(test_unknown_groups),
		ACCESS_TEST(test_flags),
		ACCESS_TEST(test_seeing),
		ACCESS_TEST(test_seeing_random_paths),
		ACCESS_TEST(test_seeing_deep_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
