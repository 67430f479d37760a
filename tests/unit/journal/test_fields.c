/* SPDX-License-Identifier: Apache-2.0
 *
 * What a table has written it reads as it was; a value or a missing key that it does not allow is
 * refused with one line; a key that it does not have is ignored.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "journal/fields.h"

enum colour { RED, GREEN, BLUE, YELLOW, WHITE };

/* BLUE has no word, and YELLOW that of GREEN. */
static const char *const colours[] = {
	[RED] = "red",
	[GREEN] = "green",
	[YELLOW] = "green",
	[WHITE] = "white",
};

struct thing {
	bool flag;
	int number;
	int64_t wide;
	unsigned int count;
	uint64_t serial;
	struct timespec time;
	enum colour colour;
	const char *text;
	char command[8];
	int limit;
	int64_t since_ms;
	unsigned int links;
	char *other;
};

static const struct field fields[] = {
	{"flag", FIELD_FLAG(struct thing, flag)},
	{"number", FIELD_NUMBER(struct thing, number, -5, INT32_MAX)},
	{"wide", FIELD_NUMBER(struct thing, wide, INT64_MIN, INT64_MAX)},
	{"count", FIELD_UNSIGNED(struct thing, count, UINT32_MAX)},
	{"serial", FIELD_UNSIGNED(struct thing, serial, UINT64_MAX)},
	{"time", FIELD_TIME(struct thing, time)},
	{"colour", FIELD_WORD(struct thing, colour, colours)},
	{"text", FIELD_TEXT(struct thing, text)},
	{"command", FIELD_CHARS(struct thing, command)},
	{"limit", FIELD_NUMBER(struct thing, limit, 0, 9), FIELD_OR(-1)},
	{"since_ms", FIELD_NUMBER(struct thing, since_ms, 0, INT64_MAX), FIELD_OR(INT64_MIN)},
	{"links", FIELD_UNSIGNED(struct thing, links, 100), FIELD_OR(1)},
	{"other", FIELD_TEXT(struct thing, other), FIELD_OR(0)},
	{0},
};

static const struct thing plain = {
	.text = "",
	.limit = -1,
	.since_ms = INT64_MIN,
	.links = 1,
};

static const char plain_line[] =
	"thing number=0 wide=0 count=0 serial=0 time=0 colour=red text= command=\n";

/* The line of the thing; to be freed. */
static char *line_of(const struct thing *thing)
{
	char *line;
	size_t bytes;
	FILE *out = open_memstream(&line, &bytes);

	assert_non_null(out);
	state_begin(out, "thing");
	fields_save(fields, thing, out);
	state_end(out);
	assert_int_equal(fclose(out), 0);
	return line;
}

static void assert_same(const struct thing *a, const struct thing *b)
{
	assert_int_equal(a->flag, b->flag);
	assert_int_equal(a->number, b->number);
	assert_true(a->wide == b->wide);
	assert_int_equal(a->count, b->count);
	assert_true(a->serial == b->serial);
	assert_true(a->time.tv_sec == b->time.tv_sec && a->time.tv_nsec == b->time.tv_nsec);
	assert_int_equal(a->colour, b->colour);
	assert_string_equal(a->text, b->text);
	assert_string_equal(a->command, b->command);
	assert_int_equal(a->limit, b->limit);
	assert_true(a->since_ms == b->since_ms);
	assert_int_equal(a->links, b->links);
	assert_true((a->other == NULL) == (b->other == NULL));
	if (a->other != NULL)
		assert_string_equal(a->other, b->other);
}

/* Reads the line. What it gives is to be the thing, and `why` what was wrong. */
static void assert_reads(const char *line, const struct thing *thing, const char *why)
{
	struct thing got;
	struct state_reader in;
	FILE *file = fmemopen((void *)line, strlen(line), "r");

	assert_non_null(file);
	memset(&got, 0xaa, sizeof(got));
	state_reader_init(&in, file);
	assert_int_equal(state_next(&in), 1);
	assert_int_equal(fields_restore(fields, &got, &in), *why != '\0' ? -EINVAL : 0);
	assert_string_equal(in.why, why);
	assert_same(&got, thing);
	state_reader_finish(&in);
	fclose(file);
}

static void assert_kept(const struct thing *thing)
{
	char *line = line_of(thing);
	assert_reads(line, thing, "");
	free(line);
}

static void test_nothing(void **state)
{
	char *line = line_of(&plain);

	assert_string_equal(line, plain_line);
	assert_reads(line, &plain, "");
	free(line);
}

static void test_limits(void **state)
{
	const struct thing least = {
		.flag = true,
		.number = -5,
		.wide = INT64_MIN,
		.time = {-1, 999999999},
		.colour = GREEN,
		.text = "a b=%41\n\xff",
		.command = "sh -c",
	};
	const struct thing most = {
		.number = INT32_MAX,
		.wide = INT64_MAX,
		.count = UINT32_MAX,
		.serial = UINT64_MAX,
		.time = {1 << 30, 1},
		.colour = WHITE,
		.text = "x",
		.command = "1234567",
		.limit = 9,
		.since_ms = INT64_MAX,
		.links = 100,
		.other = "",
	};

	assert_kept(&least);
	assert_kept(&most);
}

static void test_time_out_of_reach(void **state)
{
	struct thing thing = plain, past = plain;

	thing.time = (struct timespec){INT64_MAX, 0};
	past.time = (struct timespec){INT64_MIN, 0};
	char *line = line_of(&thing), *other = line_of(&past);
	thing.time = (struct timespec){9223372035, 0};
	past.time = (struct timespec){-9223372035, 0};
	assert_reads(line, &thing, "");
	assert_reads(other, &past, "");
	free(line);
	free(other);
}

/* The order of the keys is not the table's. */
static void test_order_and_unknown_key(void **state)
{
	struct thing thing = plain;

	thing.number = 3;
	thing.limit = 0;
	assert_reads("thing other_key=7 limit=0 command= text= colour=red time=0 serial=0 count=0 "
		     "wide=0 number=3 another=x\n",
		     &thing, "");
}

static void test_word_of_two(void **state)
{
	struct thing thing = plain;

	thing.colour = YELLOW;
	char *line = line_of(&thing);
	thing.colour = GREEN;
	assert_reads(line, &thing, "");
	free(line);
}

static void test_cut(void **state)
{
	struct thing thing = plain;

	strcpy(thing.command, "1234567");
	assert_reads("thing number=0 wide=0 count=0 serial=0 time=0 colour=red text= "
		     "command=123456789\n",
		     &thing, "");
}

/* A value that is not allowed counts as the least that is. */
static void test_refused(void **state)
{
	static const struct {
		const char *key, *value; /* NULL: the key is missing */
		const char *why;
	} cases[] = {
		{"flag", "2", "flag: expected a number from 0 to 1"},
		{"flag", "yes", "flag: expected a number from 0 to 1"},
		{"number", "-6", "number: expected a number from -5 to 2147483647"},
		{"number", "2147483648", "number: expected a number from -5 to 2147483647"},
		{"number", "0x1", "number: expected a number from -5 to 2147483647"},
		{"number", NULL, "number: expected a number from -5 to 2147483647"},
		{"count", "-1", "count: expected a number up to 4294967295"},
		{"count", "4294967296", "count: expected a number up to 4294967295"},
		{"serial", "18446744073709551616",
		 "serial: expected a number up to 18446744073709551615"},
		{"serial", NULL, "serial: expected a number up to 18446744073709551615"},
		{"colour", "blue", "colour: expected a word that is known"},
		{"colour", "", "colour: expected a word that is known"},
		{"colour", NULL, "colour: expected a value"},
		{"text", "a%00b", "text: expected text without a NUL"},
		{"text", NULL, "text: expected a value"},
		{"command", NULL, "command: expected a value"},
		{"limit", "-1", "limit: expected a number from 0 to 9"},
		{"links", "101", "links: expected a number up to 100"},
	};
	static const char *const keys[] = {"number", "wide",   "count", "serial",
					   "time",   "colour", "text",	"command"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char line[512] = "thing", why[512];
		for (size_t key = 0; key < sizeof(keys) / sizeof(*keys); key++) {
			if (strcmp(keys[key], cases[i].key) != 0)
				sprintf(line + strlen(line), " %s=%s", keys[key],
					strcmp(keys[key], "colour") == 0 ? "red"
					: key < 6			 ? "0"
									 : "");
		}
		if (cases[i].value != NULL)
			sprintf(line + strlen(line), " %s=%s", cases[i].key, cases[i].value);
		strcat(line, "\n");
		snprintf(why, sizeof(why), "line 1: thing: %s", cases[i].why);
		struct thing thing = plain;
		if (strcmp(cases[i].key, "number") == 0)
			thing.number = -5;
		if (strcmp(cases[i].key, "limit") == 0)
			thing.limit = 0;
		if (strcmp(cases[i].key, "links") == 0)
			thing.links = 0;
		assert_reads(line, &thing, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_time_out_of_reach),
		cmocka_unit_test(test_order_and_unknown_key),
		cmocka_unit_test(test_word_of_two),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
