/* SPDX-License-Identifier: Apache-2.0
 *
 * Which paths lead below the folder that is off limits, by whatever way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/off_limits.h"

static char top[] = "/tmp/dlockfs-off-limits.XXXXXX";

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int begin(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	assert_int_equal(mkdir(at("mount"), 0755), 0);
	assert_int_equal(mkdir(at("beside"), 0755), 0);
	assert_int_equal(symlink("../mount/file", at("beside/relative")), 0);
	assert_int_equal(symlink("beside/relative", at("twice")), 0);
	assert_int_equal(symlink(top, at("beside/up")), 0);
	assert_int_equal(symlink("loop", at("loop")), 0);
	assert_int_equal(symlink("mount", at("link")), 0);
	return 0;
}

static int end(void **state)
{
	static const char *const links[] = {"beside/relative", "twice", "beside/up", "loop",
					    "link"};

	(void)state;
	assert_int_equal(chdir("/"), 0);
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		unlink(at(links[i]));
	rmdir(at("mount"));
	rmdir(at("beside"));
	return rmdir(top);
}

static void test_nothing_at_first(void **state)
{
	(void)state;
	assert_false(off_limits_has("/"));
	assert_false(off_limits_has(top));
}

static void test_absolute(void **state)
{
	static const char *const below[] = {
		"mount",     "mount/",	   "mount/file",    "mount/deep/file",	"//mount//x",
		"./mount/x", "mount/../x", "none/../mount", "beside/../mount/x"};
	static const char *const elsewhere[] = {"",	"mounted", "mount2/x", "beside/mount",
						"moun", "none/x",  "../mount"};

	(void)state;
	assert_int_equal(off_limits_set(at("mount")), 0);
	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++)
		assert_true(off_limits_has(at(below[i])));
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		assert_false(off_limits_has(at(elsewhere[i])));
	assert_false(off_limits_has("/"));
}

static void test_links(void **state)
{
	static const char *const below[] = {"beside/relative", "twice", "beside/up/mount/x",
					    "beside/up/twice", "link",	"link/x"};

	(void)state;
	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++)
		assert_true(off_limits_has(at(below[i])));
	assert_false(off_limits_has(at("beside/up/beside")));
	assert_false(off_limits_has(at("loop")));
	assert_false(off_limits_has(at("loop/x")));
}

static void test_relative(void **state)
{
	(void)state;
	assert_int_equal(chdir(at("beside")), 0);
	assert_true(off_limits_has("../mount/x"));
	assert_true(off_limits_has("relative"));
	assert_false(off_limits_has("x"));
	assert_int_equal(chdir(at("mount")), 0);
	assert_true(off_limits_has("x"));
	assert_true(off_limits_has("."));
	assert_int_equal(chdir("/"), 0);
	assert_false(off_limits_has("tmp"));
	assert_true(off_limits_has(at("mount/x") + 1));
}

static void test_long(void **state)
{
	char path[10000];

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_false(off_limits_has(path));
	path[4090] = '\0';
	assert_false(off_limits_has(path));
	assert_false(off_limits_has(path + 1));
}

static void test_message(void **state)
{
	char why[512] = "", expected[512];

	(void)state;
	assert_false(off_limits_refuses(at("beside"), why, sizeof(why)));
	assert_string_equal(why, "");
	assert_true(off_limits_refuses(at("link/x"), why, sizeof(why)));
	snprintf(expected, sizeof(expected),
		 "%s/link/x: is below the mount point %s/mount itself, expected a file elsewhere",
		 top, top);
	assert_string_equal(why, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_at_first),
		cmocka_unit_test(test_absolute),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_message),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
