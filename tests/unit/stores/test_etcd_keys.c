/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of claims in etcd, and their names; keys.h has the forms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stores/etcd/keys.h"

#define ROOT  "/dlockfs"
#define QUEUE ROOT "/a/b/"

static struct claim_name claim_of(enum claim_mode mode)
{
	return (struct claim_name){
		.id = {.session = claim_id_session(0x123456789abcdef0), .owner = 7, .number = 9},
		.span = CLAIM_SPAN_WHOLE,
		.mode = mode,
		.slot = 12,
	};
}

static void assert_key(struct etcd_key *key, const char *expected)
{
	assert_non_null(key->bytes);
	assert_int_equal(key->count, strlen(expected));
	assert_string_equal(key->bytes, expected);
	free(key->bytes);
}

static void test_queues(void **state)
{
	struct etcd_key key;

	assert_true(etcd_key_of_queue(&key, ROOT, "a/b"));
	assert_key(&key, QUEUE);
	assert_true(etcd_key_of_queue(&key, "", "a/b"));
	assert_key(&key, "a/b/");
	assert_true(etcd_key_of_queue(&key, ROOT, ""));
	assert_key(&key, ROOT "/");
	assert_true(etcd_key_of_queue(&key, "", ""));
	assert_key(&key, "");
}

/* The lock on a file, and the file. */
static void test_files(void **state)
{
	struct claim_name claim = claim_of(CLAIM_EXCLUSIVE);
	struct etcd_named named;
	struct etcd_key key;

	assert_true(etcd_key_of_file(&key, ROOT, "a//b"));
	assert_key(&key, ROOT "/a/b");
	assert_true(etcd_key_of_file(&key, ROOT, "a//b/c"));
	assert_key(&key, ROOT "/a/b/c");
	assert_true(etcd_key_of_file(&key, "", "//b"));
	assert_key(&key, "b");
	assert_true(etcd_key_of_queue(&key, ROOT, "a//b/"));
	assert_key(&key, QUEUE);
	assert_true(etcd_key_of_markers(&key, ROOT, "a//b/"));
	assert_key(&key, ROOT "/.dlockfs/held/a/b/");
	assert_true(etcd_key_of_marker(&key, ROOT, "a//b/", &claim));
	assert_key(&key, ROOT "/.dlockfs/held/a/b/123456789abc8ef0.12");
	assert_true(etcd_key_of_slots(&key, ROOT, "//b/", 1, CLAIM_SHARED));
	assert_key(&key, ROOT "/b/read/0000000000000001.");
	assert_true(etcd_key_of_new(&key, ROOT, "a//b/", &claim));
	assert_key(&key, QUEUE "write/123456789abc8ef0.12");
	named = etcd_key_of_claim(ROOT, "a//b/", "x-mutex-0000000001");
	assert_key(&named.key, QUEUE "x");
}

static bool is_of_lock(const char *rest, int64_t lease)
{
	return etcd_key_is_of_lock(rest, strlen(rest), lease);
}

static void test_files_beside_locks(void **state)
{
	static const char *const files[] = {
		"b",
		"b/c",
		"read",
		"write",
		"data",
		"b/data",
		"b/read/c",
		"read/123456789abc8ef0",
		"read/123456789abc8ef0.",
		"read/123456789abc8eF0.1",
		"read/123456789abc8ef0.1x",
		"bread/123456789abc8ef0.1",
		"b/read/170000000000000000",
		"b/read/170000000000000000x",
		"b/1700000000000000000",
		"b/write/123456789abc8ef0.1/c",
		"694d8a1c2f3b5d08",
	};
	static const char *const locks[] = {
		"b/694d8a1c2f3b5d07",
		"694d8a1c2f3b5d07",
		"b/c/694d8a1c2f3b5d07",
		"b/read/1700000000000000000",
		"read/1700000000000000000",
		"b/write/123456789abc8ef0.1",
		"b/write/123456789abc8ef0.12",
		"b/read/123456789abc8ef0.65535",
		"b/write/123456789abc8ef0.1/data",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_false(is_of_lock(files[i], 0x694d8a1c2f3b5d07));
	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++)
		assert_true(is_of_lock(locks[i], 0x694d8a1c2f3b5d07));
	assert_true(is_of_lock("b/1f", 0x1f));		     /* as Mutex writes it, */
	assert_true(is_of_lock("b/000000000000001f", 0x1f)); /* and as etcdctl */
	assert_false(is_of_lock("b/01f", 0x1f));
	assert_false(is_of_lock("b/0", 0)); /* no lease */
}

static void test_values_of_files(void **state)
{
	static const char *const others[] = {
		"",	    "made=",	   "made=1",
		"made=x\n", "made=-1\n",   "changed=\n",
		"mad=1\na", "x\nmade=1\n", "made=1234567890123456789\n"};
	struct claim_name claim;
	bool is_new = false;
	int64_t ms = 0;
	char *value;

	value = etcd_key_file_value("id\ntext", 1700000000123, true);
	assert_string_equal(value, "made=1700000000123\nid\ntext");
	assert_int_equal(etcd_key_file_parse(value, strlen(value), &ms, &is_new), 19);
	assert_true(is_new && ms == 1700000000123);
	assert_null(etcd_key_claim_parse("x", 1, value, strlen(value), 1, &claim));
	free(value);
	value = etcd_key_file_value("", INT64_MAX / 100, false);
	assert_int_equal(etcd_key_file_parse(value, strlen(value), &ms, &is_new), strlen(value));
	assert_true(!is_new && ms == INT64_MAX / 100);
	free(value);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(etcd_key_file_parse(others[i], strlen(others[i]), &ms, &is_new),
				 0);
}

static void test_private_keys(void **state)
{
	struct etcd_key key;

	assert_true(etcd_key_of_session(&key, ROOT, 0x41deb20295174634));
	assert_key(&key, ROOT "/.dlockfs/sessions/41deb20295174634");
	assert_true(etcd_key_of_session(&key, "", 1));
	assert_key(&key, ".dlockfs/sessions/0000000000000001");
	struct claim_name claim = claim_of(CLAIM_SHARED);

	assert_true(etcd_key_of_marker(&key, ROOT, "a/b", &claim));
	assert_key(&key, ROOT "/.dlockfs/held/a/b/123456789abc8ef0.12");
	assert_true(etcd_key_of_marked_slots(&key, ROOT, "a/b", claim.id.session));
	assert_key(&key, ROOT "/.dlockfs/held/a/b/123456789abc8ef0.");
	assert_true(etcd_key_of_markers(&key, "", "a/b"));
	assert_key(&key, ".dlockfs/held/a/b/");
}

static void test_ends_of_ranges(void **state)
{
	struct etcd_key key = {"a/", 2}, ones = {"a\xff\xff", 3}, none = {"", 0}, end;

	assert_true(etcd_key_end(&end, &key));
	assert_key(&end, "a0");
	assert_true(etcd_key_end(&end, &ones));
	assert_key(&end, "b");
	assert_true(etcd_key_end(&end, &none)); /* all keys: a NUL */
	assert_int_equal(end.count, 1);
	assert_int_equal(end.bytes[0], 0);
	free(end.bytes);
}

/* What a key below QUEUE says, to be freed; and that its name leads back to it. */
static char *name_of(const char *rest, size_t bytes, const char *value, struct claim_name *ret)
{
	char *name = etcd_key_claim_parse(rest, bytes, value, strlen(value), 4711, ret);
	struct etcd_named named;

	if (!name)
		return NULL;
	assert_int_equal(ret->order, 4711);
	named = etcd_key_of_claim(ROOT, "a/b", name);
	assert_non_null(named.key.bytes);
	assert_int_equal(named.order, 4711);
	assert_int_equal(named.is_ours, ret->id.session != 0);
	assert_int_equal(named.key.count, strlen(QUEUE) + bytes);
	assert_memory_equal(named.key.bytes + strlen(QUEUE), rest, bytes);
	free(named.key.bytes);
	return name;
}

static void assert_claim(const char *rest, const char *expected, enum claim_mode mode)
{
	struct claim_name claim;
	char *name = name_of(rest, strlen(rest), "", &claim);

	assert_non_null(name);
	assert_string_equal(name, expected);
	assert_int_equal(claim.mode, mode);
	assert_int_equal(claim.id.session, 0);
	free(name);
}

static void test_claims_of_other_clients(void **state)
{
	assert_claim("694d8a1c2f3b5d07", "694d8a1c2f3b5d07-mutex-0000004711", CLAIM_EXCLUSIVE);
	assert_claim("write/1700000000000000000", "1700000000000000000-write-0000004711",
		     CLAIM_EXCLUSIVE);
	assert_claim("read/1700000000000000000", "1700000000000000000-read-0000004711",
		     CLAIM_SHARED);
	assert_claim("100% \xc3\xa4", "100%25%20%C3%A4-mutex-0000004711", CLAIM_EXCLUSIVE);
	assert_claim("x-read-0000000012", "x-read-0000000012-mutex-0000004711", CLAIM_EXCLUSIVE);
}

static void test_any_bytes(void **state)
{
	char rest[255];
	struct claim_name claim;
	size_t count = 0;

	for (int c = 0; c < 256; c++)
		if (c != '/')
			rest[count++] = (char)c;
	char *name = name_of(rest, count, "any value\n", &claim);
	assert_non_null(name);
	free(name);
}

/* The value of a claim, as place() writes it. */
static char *value_of(const struct claim_name *claim)
{
	char *value = etcd_key_claim_value(claim);

	assert_non_null(value);
	return value;
}

static void test_own_claims(void **state)
{
	for (int mode = CLAIM_SHARED; mode <= CLAIM_EXCLUSIVE; mode++) {
		struct claim_name claim = claim_of((enum claim_mode)mode), read;
		char placed[CLAIM_NAME_BYTES];
		char *value = value_of(&claim), *name;
		struct etcd_key key;

		assert_true(etcd_key_of_new(&key, ROOT, "a/b", &claim));
		assert_string_equal(key.bytes, mode == CLAIM_SHARED
						       ? QUEUE "read/123456789abc8ef0.12"
						       : QUEUE "write/123456789abc8ef0.12");
		name = name_of(key.bytes + strlen(QUEUE), key.count - strlen(QUEUE), value, &read);
		assert_non_null(name);
		claim.order = 4711;
		claim_name_format_placed(placed, &claim);
		assert_string_equal(name, placed);
		assert_int_equal(claim_name_slot(name), 12);
		assert_int_equal(read.mode, mode);
		assert_int_equal(read.slot, 12);
		assert_int_equal(read.id.session, claim.id.session);
		assert_int_equal(read.id.number, claim.id.number);
		free(name);
		free(key.bytes);
		free(value);
	}
}

static void assert_foreign(const char *rest, const char *value, enum claim_mode mode)
{
	struct claim_name read;
	char *name = etcd_key_claim_parse(rest, strlen(rest), value, strlen(value), 4711, &read);

	assert_non_null(name);
	assert_int_equal(read.mode, mode);
	assert_int_equal(read.id.session, 0);
	free(name);
}

/* A value that does not fit its key is another client's. */
static void test_own_values_in_the_wrong_place(void **state)
{
	struct claim_name claim = claim_of(CLAIM_EXCLUSIVE);
	char *value = value_of(&claim);

	assert_foreign("read/123456789abc8ef0.12", value, CLAIM_SHARED);
	assert_foreign("write/123456789abc8ef0.13", value, CLAIM_EXCLUSIVE);
	assert_foreign("123456789abc8ef0.12", value, CLAIM_EXCLUSIVE);
	assert_foreign("write/123456789abc8ef0.12", "", CLAIM_EXCLUSIVE);
	assert_foreign("write/123456789abc8ef0.12", "\n", CLAIM_EXCLUSIVE);
	free(value);
}

static void test_slots(void **state)
{
	struct claim_name claim = claim_of(CLAIM_SHARED);
	struct etcd_key key;

	assert_true(etcd_key_of_slots(&key, ROOT, "a/b", claim.id.session, CLAIM_SHARED));
	assert_key(&key, QUEUE "read/123456789abc8ef0.");
	assert_int_equal(etcd_key_slot("12", 2), 12);
	assert_int_equal(etcd_key_slot("12/data", 7), 12);
	assert_int_equal(etcd_key_slot("65535", 5), 65535);
	assert_int_equal(etcd_key_slot("65536", 5), 0);
	assert_int_equal(etcd_key_slot("99999999999", 11), 0);
	assert_int_equal(etcd_key_slot("x", 1), 0);
	assert_int_equal(etcd_key_slot("", 0), 0);
}

static void test_keys_that_are_no_claims(void **state)
{
	static const char *const rests[] = {
		"", "read/", "c/694d8a1c2f3b5d07", "write/x/data", "write/x/", "/x"};
	struct claim_name claim;

	for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++)
		assert_null(etcd_key_claim_parse(rests[i], strlen(rests[i]), "", 0, 1, &claim));
	assert_true(etcd_key_is_data("write/x/data", strlen("write/x/data")));
	assert_false(etcd_key_is_data("data", strlen("data")));
}

static void test_names_that_are_none(void **state)
{
	static const char *const names[] = {
		"",
		"x",
		"x-mutex-",
		"x-mutex-123456789",
		"x-mutex-01234567890",
		"x-mutex-99999999999999999999",
		"x-other-0000000001",
		"%G0-mutex-0000000001",
		"%2-mutex-0000000001",
		"%2f-mutex-0000000001", /* the digits are upper case */
		"_c_00000000-0000-802a-8000-000100000001-__WRIT__0000000001", /* no slot */
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_null(etcd_key_of_claim(ROOT, "a", names[i]).key.bytes);
}

static void test_large_revisions(void **state)
{
	struct etcd_named named = etcd_key_of_claim(ROOT, "a", "x-mutex-9223372036854775807");
	struct claim_name claim;
	char *name;

	assert_int_equal(named.order, INT64_MAX);
	assert_key(&named.key, ROOT "/a/x");
	name = etcd_key_claim_parse("x", 1, "", 0, 12345678901, &claim);
	assert_string_equal(name, "x-mutex-12345678901");
	free(name);
}

static void test_data(void **state)
{
	struct etcd_key claim = {"k", 1}, key;

	assert_true(etcd_key_of_data(&key, &claim));
	assert_true(strcmp(key.bytes, "k0") < 0 && strcmp(key.bytes, "k") > 0);
	assert_key(&key, "k/data");
	assert_true(etcd_key_end_of_claim(&key, &claim));
	assert_key(&key, "k0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queues),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_files_beside_locks),
		cmocka_unit_test(test_values_of_files),
		cmocka_unit_test(test_private_keys),
		cmocka_unit_test(test_ends_of_ranges),
		cmocka_unit_test(test_claims_of_other_clients),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_own_claims),
		cmocka_unit_test(test_own_values_in_the_wrong_place),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_keys_that_are_no_claims),
		cmocka_unit_test(test_names_that_are_none),
		cmocka_unit_test(test_large_revisions),
		cmocka_unit_test(test_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
