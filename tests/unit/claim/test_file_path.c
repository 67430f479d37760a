/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of files and of the locks on them: as the kernel has them, and back from a component.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/file_path.h"
#include "claim/znode_path.h"

static const struct {
	const char *root, *path, *znode;
} pairs[] = {
	{"/r", "a//b", "/r/a/b"},
	{"/r", "a//b/", "/r/a/b%2F"},
	{"/r", "a//b/c", "/r/a/b%2Fc"},
	{"/r", "a//b/c/", "/r/a/b%2Fc%2F"},
	{"/r", "a/b//c", "/r/a/b/c"},
	{"/r", "//a", "/r/a"},
	{"/r", "//a/b", "/r/a%2Fb"},
	{"", "//zookeeper", "/%7Aookeeper"},
	{"", "//zookeeper/", "/zookeeper%2F"},
	{"/r", "a//..", "/r/a/%2E%2E"},
	{"/r", "a//1234567890", "/r/a/123456789%30"},
};

static void test_encode(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		char *znode = znode_path_encode(pairs[i].root, pairs[i].path);
		assert_string_equal(znode, pairs[i].znode);
		free(znode);
	}
}

static void expect_plain(const char *path, const char *expected)
{
	char *plain = file_path_plain(path);
	assert_string_equal(plain, expected);
	free(plain);
}

static void test_plain(void **state)
{
	(void)state;
	expect_plain("a", "a");
	expect_plain("a/b", "a/b");
	expect_plain("a//b", "a/b");
	expect_plain("a//b/", "a/b");
	expect_plain("a/b//c/d", "a/b/c/d");
	expect_plain("//a", "a");
	expect_plain("//a/", "a");
	expect_plain("//a/b/", "a/b");
}

static void expect_file(const char *encoded, const char *expected)
{
	char *file = NULL;
	int error = znode_path_decode_file(encoded, &file);
	if (expected == NULL) {
		assert_int_equal(error, -EINVAL);
		return;
	}
	assert_int_equal(error, 0);
	assert_string_equal(file, expected);
	free(file);
}

static void test_decode_file(void **state)
{
	(void)state;
	expect_file("b", "b");
	expect_file("b%2F", "b/");
	expect_file("b%2Fc", "b/c");
	expect_file("%7Aookeeper", "zookeeper");
	expect_file("zookeeper", "zookeeper");
	expect_file("job-120000000%30", "job-1200000000");
	expect_file("%2Fb", NULL);
	expect_file("%41", NULL);
	expect_file("a/b", NULL);
}

static void test_is_queue(void **state)
{
	static const char *const queues[] = {"a//b/",	"//b/",	    "a/c//b/",
					     "a//b/c/", "//b/c/d/", "a//.b/"};
	static const char *const others[] = {
		"",	  "/",	   "//",     "///",	 "a",	      "a/b",
		"a//",	  "a//b",  "a/b/",   "a///b/",	 "a//b//",    "a//b//c/",
		"/a//b/", "a//./", "a//../", "../a//b/", "a/./c//b/", "a//b/../",
	};
	char longest[FILE_QUEUE_BYTES_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
		assert_true(file_path_is_queue(queues[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(file_path_is_queue(others[i]));
	for (size_t i = 0; i < FILE_QUEUE_BYTES_MAX; i += 2)
		memcpy(longest + i, "x/", 3);
	memcpy(longest, "xy//", 4);
	memcpy(longest + FILE_QUEUE_BYTES_MAX - 2, "x/", 3);
	assert_true(file_path_is_queue(longest));
	memcpy(longest + FILE_QUEUE_BYTES_MAX - 1, "x/", 3);
	assert_false(file_path_is_queue(longest));
	/* a component longer than any name */
	memset(longest, 'x', 300);
	memcpy(longest, "a//", 3);
	memcpy(longest + 300, "/", 2);
	assert_false(file_path_is_queue(longest));
	memcpy(longest + 3 + 255, "/", 2);
	assert_true(file_path_is_queue(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_is_queue),
		cmocka_unit_test(test_decode_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
