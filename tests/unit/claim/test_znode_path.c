/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock paths and znode paths: known pairs, what is never encoded so, and for random bytes that the
 * server takes the path and that it comes back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/name.h"
#include "claim/znode_path.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
	const char *root, *path, *znode;
} pairs[] = {
	{"", "a", "/a"},
	{"", "a/b/c", "/a/b/c"},
	{"/dlockfs", "backup", "/dlockfs/backup"},
	{"/dlockfs/x", "a/b", "/dlockfs/x/a/b"},
	{"/r", "a b~!*:;", "/r/a b~!*:;"},
	{"/r", "100%", "/r/100%25"},
	{"/r", "%41", "/r/%2541"},
	{"/r", "%2", "/r/%252"},
	{"/r", "a\nb\x7f\x01", "/r/a%0Ab%7F%01"},
	/* dots */
	{"/r", ".", "/r/%2E"},
	{"/r", "..", "/r/%2E%2E"},
	{"/r", "a/../b/.", "/r/a/%2E%2E/b/%2E"},
	{"/r", ".a", "/r/.a"},
	{"/r", "..a/...", "/r/..a/..."},
	/* markers of claims */
	{"/r", "a/~held~b", "/r/a/%7Eheld~b"},
	{"/r", "~held~", "/r/%7Eheld~"},
	{"/r", "~held", "/r/~held"},
	/* the server's own znode */
	{"", "zookeeper", "/%7Aookeeper"},
	{"", "zookeeper/zookeeper", "/%7Aookeeper/zookeeper"},
	{"", "zookeepers", "/zookeepers"},
	{"", "a/zookeeper", "/a/zookeeper"},
	{"/r", "zookeeper", "/r/zookeeper"},
	/* UTF-8 */
	{"/r", "\xc3\xa4", "/r/\xc3\xa4"},
	{"/r", "\xe2\x82\xac", "/r/\xe2\x82\xac"},
	{"/r", "\xed\x9f\xbf", "/r/\xed\x9f\xbf"},     /* U+D7FF */
	{"/r", "\xef\xa4\x80", "/r/\xef\xa4\x80"},     /* U+F900 */
	{"/r", "\xef\xbf\xaf", "/r/\xef\xbf\xaf"},     /* U+FFEF */
	{"/r", "\xc2\xa0", "/r/\xc2\xa0"},	       /* U+00A0 */
	{"/r", "\xc2\x80", "/r/%C2%80"},	       /* U+0080 */
	{"/r", "\xc2\x9f", "/r/%C2%9F"},	       /* U+009F */
	{"/r", "\xed\xa0\x80", "/r/%ED%A0%80"},	       /* U+D800 */
	{"/r", "\xee\x80\x80", "/r/%EE%80%80"},	       /* U+E000 */
	{"/r", "\xef\xa3\xbf", "/r/%EF%A3%BF"},	       /* U+F8FF */
	{"/r", "\xef\xbf\xb0", "/r/%EF%BF%B0"},	       /* U+FFF0 */
	{"/r", "\xef\xbf\xbf", "/r/%EF%BF%BF"},	       /* U+FFFF */
	{"/r", "\xf0\x9f\x94\x92", "/r/%F0%9F%94%92"}, /* U+1F512 */
	/* no UTF-8: overlong, cut short, lone bytes */
	{"/r", "\xc0\xaf", "/r/%C0%AF"},
	{"/r", "\xc1\xbf", "/r/%C1%BF"},
	{"/r", "\xe0\x80\xaf", "/r/%E0%80%AF"},
	{"/r", "\xe0\x9f\xbf", "/r/%E0%9F%BF"},
	{"/r", "a\xe2\x82", "/r/a%E2%82"},
	{"/r", "\xe2\x82/b", "/r/%E2%82/b"},
	{"/r", "\xc3", "/r/%C3"},
	{"/r", "\xff\xfe\x80", "/r/%FF%FE%80"},
	{"/r", "\xe2\xc3\xa4", "/r/%E2\xc3\xa4"},
	/* what would read as a claim */
	{"/r", "job-1200000000", "/r/job-120000000%30"},
	{"/r", "deploy/job--2000000000", "/r/deploy/job--200000000%30"},
	{"/r", "deploy/_c_0-__WRIT__0000000007", "/r/deploy/_c_0-__WRIT__000000000%37"},
	{"/r", "1234567890/-123456789/x", "/r/123456789%30/-12345678%39/x"},
	{"", "1234567890", "/123456789%30"},
	{"/r",
	 "\xff"
	 "1234567890",
	 "/r/%FF123456789%30"},
	/* what would not */
	{"/r", "job-120000000%30", "/r/job-120000000%2530"},
	{"/r", "9876543210", "/r/9876543210"}, /* no counter comes to that */
	{"/r", "123456789", "/r/123456789"},
	{"/r", "-000000000", "/r/-000000000"},
	{"/r", "1234567890x", "/r/1234567890x"},
	{"/r-1234567890", "x", "/r-1234567890/x"},
};

static const char *const never_encoded[] = {
	"",
	"/",
	"/a",
	"a/",
	"a//b",
	"%",
	"%4",
	"a%",
	"%zz",
	"%00",
	"%2F",
	"a%2Fb",
	"%41",
	"%2f",
	"%0a",
	"\n",
	".",
	"..",
	"a/./b",
	"%2E.",
	"%2Ea",
	"\x7f",
	"\xff",
	"\xc2\x80",
	"%C3%A4",
	"%7Aookeepers",
	"a/%7Aookeeper",
	"%7A",
	"\xf0\x9f\x94\x92",
	"%2525%",
	"job-1200000000",
	"a/-123456789/b",
	"job-12000000%300",
	"9876543210/0123456789",
	"987654321%30",
	"job%2D120000000%30",
	"12345678%39",
	"job-120000000%31%30",
};

static void test_pairs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		char *znode = znode_path_encode(pairs[i].root, pairs[i].path), *path = NULL;

		assert_non_null(znode);
		assert_string_equal(znode, pairs[i].znode);
		assert_int_equal(znode_path_decode(znode + strlen(pairs[i].root) + 1, &path), 0);
		assert_string_equal(path, pairs[i].path);
		free(znode);
		free(path);
	}
}

static void test_rejects_what_is_never_encoded_so(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(never_encoded); i++) {
		char untouched, *path = &untouched;
		int result = znode_path_decode(never_encoded[i], &path);

		if (result != -EINVAL)
			print_message("accepted: %s\n", never_encoded[i]);
		assert_int_equal(result, -EINVAL);
		assert_ptr_equal(path, &untouched);
	}
}

/* UTF-8 to the UTF-16 that the server checks. Returns how many units, or -1 if it is not UTF-8. */
static int to_utf16(const char *text, uint16_t *units)
{
	int count = 0;

	for (const unsigned char *byte = (const unsigned char *)text; *byte;) {
		int more = *byte < 0x80 ? 0 : *byte >> 5 == 6 ? 1 : *byte >> 4 == 14 ? 2 : -1;
		uint32_t character = more == 0 ? *byte : *byte & (0x3fu >> more);

		/* Nothing beyond U+FFFF is ever left as it is. */
		if (more < 0)
			return -1;
		byte++;
		for (int i = 0; i < more; i++, byte++) {
			if (*byte >> 6 != 2)
				return -1;
			character = character << 6 | (*byte & 0x3f);
		}
		if (character < (more == 2 ? 0x800u : more == 1 ? 0x80u : 0u))
			return -1;
		units[count++] = (uint16_t)character;
	}
	return count;
}

/* What org.apache.zookeeper.common.PathUtils.validatePath() does with a path. */
static bool server_takes(const char *path)
{
	uint16_t c[1024];
	int count = to_utf16(path, c);
	uint16_t last = '/';

	if (count < 1 || c[0] != '/')
		return false;
	if (count == 1)
		return true;
	if (c[count - 1] == '/')
		return false;
	for (int i = 1; i < count; last = c[i], i++) {
		bool ends = i + 1 == count || c[i + 1] == '/';

		if (c[i] == 0 || (c[i] == '/' && last == '/'))
			return false;
		if (c[i] == '.' && last == '.' && c[i - 2] == '/' && ends)
			return false;
		if (c[i] == '.' && c[i - 1] == '/' && ends)
			return false;
		if ((c[i] > 0 && c[i] <= 0x1f) || (c[i] >= 0x7f && c[i] <= 0x9f) ||
		    (c[i] >= 0xd800 && c[i] <= 0xf8ff) || c[i] >= 0xfff0)
			return false;
	}
	return true;
}

/* Bytes that have a meaning come more often. */
static char random_byte(void)
{
	static const char interesting[] =
		"..%%zookeeper09AFaf\x7f\x80\x9f\xa0\xbf\xc2\xc3\xe0\xe2\xed\xee\xef\xf0\xf4\xff\n";
	long draw = random();

	if (draw & 1)
		return interesting[(size_t)(draw >> 1) % (sizeof(interesting) - 1)];
	return (char)(1 + (draw >> 1) % 255);
}

/* What may read as a claim, or does so nearly: returns how long it is. */
static int random_number(char *path)
{
	static const char *const prefixes[] = {"", "-", "--", "_-", "a-", "__READ__", "%", "9"};
	static const char *const suffixes[] = {"", "", "%30", "%", "a"};

	return sprintf(path, "%s%0*ld%s", prefixes[random() % COUNT(prefixes)],
		       9 + (int)(random() % 2), random() % 4 ? random() : random() % 10,
		       suffixes[random() % COUNT(suffixes)]);
}

static void random_path(char *path)
{
	int components = 1 + (int)(random() % 3);

	while (components-- > 0) {
		int bytes = 1 + (int)(random() % 12);

		if (random() % 16 == 0)
			path = stpcpy(path, "zookeeper");
		else if (random() % 4 == 0)
			path += random_number(path);
		else
			while (bytes-- > 0)
				for (*path = '/'; *path == '/'; path[1] = '\0')
					*path = random_byte();
		path += strlen(path);
		if (components > 0)
			*path++ = '/';
	}
	*path = '\0';
}

/* Whether a component of the path reads as a claim. */
static bool has_claim(const char *znode)
{
	char component[128];
	struct claim_name claim;

	for (; *znode == '/'; znode += strcspn(znode, "/")) {
		size_t bytes = strcspn(++znode, "/");

		memcpy(component, znode, bytes);
		component[bytes] = '\0';
		if (claim_name_parse(component, &claim))
			return true;
	}
	return false;
}

static void test_random_paths(void **state)
{
	static const char *const roots[] = {"", "/dlockfs"};

	(void)state;
	srandom(1);
	for (int i = 0; i < 100000; i++) {
		const char *root = roots[i % 2];
		char path[64], *znode, *back;

		random_path(path);
		znode = znode_path_encode(root, path);
		assert_non_null(znode);
		assert_true(server_takes(znode));
		assert_true(!has_claim(znode + strlen(root)));
		assert_int_not_equal(strncmp(znode, "/zookeeper/", strlen("/zookeeper/")), 0);
		assert_string_not_equal(znode, "/zookeeper");
		assert_int_equal(znode_path_decode(znode + strlen(root) + 1, &back), 0);
		assert_string_equal(back, path);
		free(znode);
		free(back);
	}
}

/* Whatever decodes is what its name encodes to. */
static void test_random_znodes(void **state)
{
	(void)state;
	srandom(2);
	for (int i = 0; i < 100000; i++) {
		char encoded[64], *path, *again, *at_root;

		random_path(encoded);
		if (znode_path_decode(encoded, &path))
			continue;
		again = znode_path_encode("/r", path);
		at_root = znode_path_encode("", path);
		assert_true(strcmp(again + strlen("/r/"), encoded) == 0 ||
			    strcmp(at_root + strlen("/"), encoded) == 0);
		free(path);
		free(again);
		free(at_root);
	}
}

/* Each is one component, or more, that ZooKeeper takes as it is. */
static void test_roots(void **state)
{
	static const char *const good[] = {
		"/dlockfs", "/a/b",	   "/a/zookeeper", "/job-1200000000",
		"/...",	    "/\xc3\xa4/b", "/a b"};
	static const char *const bad[] = {
		"/",	"//a",	 "/a/",	   "/a//b",  "/zookeeper", "/zookeeper/a", "/a/..",
		"/./a", "/a%30", "/a\x7f", "/a\xc3", "a",	   "a/b"};

	(void)state;
	assert_true(znode_path_is_root(""));
	for (size_t i = 0; i < COUNT(good); i++)
		assert_true(znode_path_is_root(good[i]));
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(znode_path_is_root(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_rejects_what_is_never_encoded_so),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_random_paths),
		cmocka_unit_test(test_random_znodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
