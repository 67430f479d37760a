/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host says of itself: where it stands, and what is read of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "claim/host_entry.h"

static void test_path(void **state)
{
	char path[HOST_ENTRY_PATH_BYTES];

	host_entry_path(path, 0x10000c19ba40000);
	assert_string_equal(path, ".dlockfs/hosts//010000c19ba40000.host");
	host_entry_path(path, UINT64_MAX);
	assert_string_equal(path, ".dlockfs/hosts//ffffffffffffffff.host");
}

/* The lines that count, with a bar behind each. */
static const char *read(const char *text, size_t bytes)
{
	static char lines[512];
	const char *end = text + bytes, *line;
	char *to = lines;
	size_t length;

	while ((line = host_entry_next(&text, end, &length)) != NULL) {
		to = mempcpy(to, line, length);
		*to++ = '|';
	}
	*to = '\0';
	return lines;
}

static const char *read_text(const char *text)
{
	return read(text, strlen(text));
}

static void test_lines(void **state)
{
	assert_string_equal(read_text(""), "");
	assert_string_equal(read_text("host=web1 pid=1\nsetting=[locks]%20slots=1\n"),
			    "host=web1 pid=1|setting=[locks]%20slots=1|");
	assert_string_equal(read_text("host=web1\nmore=yes"), "host=web1|more=yes|");
}

static void test_malformed(void **state)
{
	static const char zero[] = "host=a\0b\nhost=c\n";

	assert_string_equal(
		read_text("\nhost=\nhost=a  pid=1\nhost=a \n host=a\n=a\nhost\nhost=a\n"),
		"host=a|");
	assert_string_equal(
		read_text("host=\033[2J\nhost=a\tb\nhost=\377\nhost=%zz\nhost=%2\nh=b\n"), "h=b|");
	assert_string_equal(read(zero, sizeof(zero) - 1), "host=c|");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
