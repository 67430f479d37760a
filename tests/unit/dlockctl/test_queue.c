/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl makes of the text of queues, also of one that somebody has tampered with; and how
 * it shows text that is not to be trusted.
 */
#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dlockctl/queue.h"
#include "dlockctl/text.h"

#define LINE "position=1 state=held mode=exclusive"

static struct queues parse(const char *text)
{
	char *copy = strdup(text);
	struct queues queues;
	assert_non_null(copy);
	queues_parse(copy, strlen(copy), &queues);
	free(copy);
	return queues;
}

static void test_whole(void **state)
{
	struct queues queues =
		parse("lock=cron/back%20up claims=2 holders=1\n"
		      "position=1 state=held mode=exclusive kind=flock host=web1 pid=4711 uid=0 "
		      "command=a%20b since=1795305254 client=dlockfs session=0x1 claim=_c_1\n"
		      "position=2 state=waiting mode=shared kind=record ranges=r0-63 client=other\n"
		      "lock=b claims=0 holders=0\n");
	assert_int_equal(queues.count, 2);
	assert_int_equal(queues.bad_lines, 0);
	const struct queue *queue = &queues.list[0];
	assert_string_equal(queue->name, "cron/back up");
	assert_string_equal(queue->name_encoded, "cron/back%20up");
	assert_int_equal(queue->count, 2);
	assert_int_equal(queue->holders, 1);
	const struct claim *claim = &queue->claims[0];
	assert_ptr_equal(queue_holder(queue), claim);
	assert_true(claim->held);
	assert_false(claim->shared);
	assert_string_equal(claim->kind, "flock");
	assert_string_equal(claim->host, "web1");
	assert_string_equal(claim->command, "a b");
	assert_string_equal(claim->session, "0x1");
	assert_string_equal(claim->claim, "_c_1");
	assert_int_equal(claim->pid, 4711);
	assert_int_equal(claim->uid, 0);
	assert_int_equal(claim->since, 1795305254);
	assert_null(claim->ranges);
	claim = &queue->claims[1];
	assert_false(claim->held);
	assert_true(claim->shared);
	assert_string_equal(claim->ranges, "r0-63");
	assert_null(claim->host);
	assert_int_equal(claim->pid, -1);
	assert_int_equal(claim->since, -1);
	assert_null(queue_holder(&queues.list[1]));
	queues_finish(&queues);
	(void)state;
}

static void test_kept(void **state)
{
	struct queues queues =
		parse("lock=a claims=2 holders=1 kept=1 followers=2\n"
		      "position=1 state=kept mode=shared\n"
		      "position=2 state=held maybe_kept=yes maybe_former=yes mode=shared\n"
		      "position=2.1 state=waiting mode=shared\n"
		      "position=2.12 state=waiting maybe_kept=no mode=shared\n"
		      "lock=b\nposition=1 state=waiting mode=shared\nposition=2 "
		      "state=kept mode=shared\n");
	const struct queue *queue = &queues.list[0];
	assert_int_equal(queues.bad_lines, 0);
	assert_int_equal(queue->count, 4);
	assert_int_equal(queue->holders, 1);
	assert_int_equal(queue->kept, 1);
	assert_int_equal(queue->waiters, 2);
	assert_true(queue->claims[0].kept);
	assert_false(queue->claims[0].held);
	assert_false(queue->claims[0].maybe_kept);
	assert_true(queue->claims[1].held);
	assert_true(queue->claims[1].maybe_kept);
	assert_true(queue->claims[1].maybe_former);
	assert_false(queue->claims[3].maybe_kept);
	assert_false(queue->claims[3].maybe_former);
	assert_int_equal(queue->claims[1].follower, 0);
	assert_int_equal(queue->claims[3].position, 2);
	assert_int_equal(queue->claims[3].follower, 12);
	assert_ptr_equal(queue_holder(queue), &queue->claims[1]);
	assert_ptr_equal(queue_holder(&queues.list[1]), &queues.list[1].claims[1]);
	queues_finish(&queues);
	(void)state;
}

static void test_resting(void **state)
{
	struct queues queues =
		parse("lock=a claims=2 holders=0 resting=1\n"
		      "position=1 state=resting mode=exclusive host=web1 delay_until=12 "
		      "client=dlockfs claim=_c_1\n"
		      "position=2 state=waiting mode=exclusive\n");
	const struct queue *queue = &queues.list[0];
	assert_int_equal(queues.bad_lines, 0);
	assert_int_equal(queue->holders, 0);
	assert_int_equal(queue->resting, 1);
	assert_int_equal(queue->waiters, 1);
	assert_true(queue->claims[0].resting);
	assert_false(claim_waits(&queue->claims[0]));
	assert_true(claim_waits(&queue->claims[1]));
	assert_int_equal(queue->claims[0].delay_until, 12);
	assert_ptr_equal(queue_holder(queue), &queue->claims[0]);
	queues_finish(&queues);
	(void)state;
}

static void test_lost(void **state)
{
	struct queues queues =
		parse("lock=a claims=2 holders=1 lost=1\n"
		      "position=1 state=lost mode=exclusive host=web1 since=5 lost_since=7 "
		      "delay_until=12 client=dlockfs claim=_c_1\n"
		      "position=2 state=waiting mode=exclusive\n"
		      "lock=b\nposition=1 state=kept mode=shared\nposition=2 state=lost "
		      "mode=shared\nposition=3 state=held mode=shared\n");
	const struct queue *queue = &queues.list[0];
	assert_int_equal(queues.bad_lines, 0);
	assert_int_equal(queue->holders, 0);
	assert_int_equal(queue->lost, 1);
	assert_int_equal(queue->waiters, 1);
	assert_true(queue->claims[0].lost);
	assert_int_equal(queue->claims[0].lost_since, 7);
	assert_int_equal(queue->claims[0].delay_until, 12);
	assert_int_equal(queue->claims[1].lost_since, -1);
	assert_int_equal(queue->claims[1].delay_until, -1);
	assert_ptr_equal(queue_holder(queue), &queue->claims[0]);
	assert_ptr_equal(queue_holder(&queues.list[1]), &queues.list[1].claims[2]);
	queues_finish(&queues);
	(void)state;
}

/* Text, how many locks, claims in the last of them, lines that make no sense. */
static const struct {
	const char *text;
	size_t locks, claims, bad;
} odd[] = {
	{"", 0, 0, 0},
	{"\n\n\n", 0, 0, 0},
	{"lock=a", 1, 0, 0}, /* cut off, but clear */
	{"lock=a\n" LINE, 1, 1, 0},
	{"lock=a\n" LINE " new=1 later= =x x\n", 1, 1, 0},
	{"lock=a\n  " LINE "\n", 1, 0, 1},
	{"lock=a\nposition=1  state=held   mode=shared \n", 1, 1, 0},
	{LINE "\n", 0, 0, 1},
	{"lock=\n" LINE "\n", 0, 0, 2},
	/* Never for the lock before. */
	{"lock=a\nlock= claims=1\n" LINE "\n", 1, 0, 2},
	{"lock=a\nloc\n" LINE "\n", 1, 0, 2},
	{"lock=a\nposition=1 state=held\n", 1, 0, 1},
	{"lock=a\nposition=1 state=both mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=1 state=held mode=other\n", 1, 0, 1},
	{"lock=a\nposition= state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=-1 state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=1x state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=1. state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=.1 state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=1.0 state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=1.2.3 state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=1.2 state=held mode=shared\n", 1, 1, 0},
	{"lock=a\nposition=9223372036854775808 state=held mode=shared\n", 1, 0, 1},
	{"lock=a\nposition=9223372036854775807 state=held mode=shared\n", 1, 1, 0},
	{"lock=a\n" LINE "\r\n", 1, 0, 1},
	{"\xff\xfe lock=a\n", 0, 0, 1},
};

static void test_odd(void **state)
{
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		struct queues queues = parse(odd[i].text);
		print_message("%s\n", odd[i].text);
		assert_int_equal(queues.count, odd[i].locks);
		assert_int_equal(queues.bad_lines, odd[i].bad);
		if (queues.count > 0)
			assert_int_equal(queues.list[queues.count - 1].count, odd[i].claims);
		queues_finish(&queues);
	}
	(void)state;
}

static void test_values(void **state)
{
	struct queues queues = parse("lock=a\n" LINE " pid=1 pid=2 host= command=%41%0a%4 uid=x "
				     "since=-5 client=%00%zz claim=a=b state=waiting\n");
	const struct claim *claim = &queues.list[0].claims[0];
	assert_int_equal(claim->pid, 1);
	assert_true(claim->held);
	assert_int_equal(claim->uid, -1);
	assert_int_equal(claim->since, -1);
	assert_string_equal(claim->host, "");
	assert_string_equal(claim->command, "A\n%4");
	assert_string_equal(claim->client, "%00%zz");
	assert_string_equal(claim->claim, "a=b");
	queues_finish(&queues);
	(void)state;
}

static void test_zeros(void **state)
{
	char text[] = "lock=a\n" LINE "\0 x\n" LINE "\nlock=b\0\n" LINE "\n";
	struct queues queues;
	queues_parse(text, sizeof(text) - 1, &queues);
	assert_int_equal(queues.count, 1);
	assert_int_equal(queues.list[0].count, 0);
	assert_int_equal(queues.bad_lines, 4);
	queues_finish(&queues);
	(void)state;
}

static void test_long(void **state)
{
	enum { LONG = 3 << 20, MANY = 10000 };
	char *text = malloc(LONG + MANY * sizeof(LINE) + 64), *to = text;
	assert_non_null(text);
	to += sprintf(to, "lock=");
	memset(to, 'x', LONG);
	to += LONG;
	*to++ = '\n';
	for (size_t i = 0; i < MANY; i++)
		to += sprintf(to, LINE "\n");
	struct queues queues;
	queues_parse(text, (size_t)(to - text), &queues);
	assert_int_equal(queues.count, 1);
	assert_int_equal(strlen(queues.list[0].name), LONG);
	assert_int_equal(queues.list[0].holders, MANY);
	queues_finish(&queues);
	free(text);
	(void)state;
}

/* Good text with bytes changed, and cut: nothing but the sanitizers judges it. */
static void test_mutations(void **state)
{
	static const char good[] = "lock=cron/x claims=1 holders=1\n" LINE
				   " kind=record ranges=w0-9 host=a%20b pid=1 uid=0 command=c "
				   "since=1 client=dlockfs session=0x1 claim=_c_%25\nlock=b\n";
	static const char bytes[] = "\0\n =%=%0Alock=position=\xff";
	uint64_t seed = 1;
	for (size_t round = 0; round < 20000; round++) {
		char text[sizeof(good)];
		memcpy(text, good, sizeof(good));
		for (size_t i = 0; i < 1 + round % 4; i++) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			text[(seed >> 33) % (sizeof(good) - 1)] =
				bytes[(seed >> 20) % (sizeof(bytes) - 1)];
		}
		size_t length = (seed >> 40) % sizeof(good);
		char *exact = malloc(length + 1); /* so that a byte too many is seen */
		assert_non_null(exact);
		memcpy(exact, text, length);
		struct queues queues;
		queues_parse(exact, length, &queues);
		queues_finish(&queues);
		free(exact);
	}
	(void)state;
}

static void check_printable(const char *text, const char *expected)
{
	char *printable = text_printable(text);
	assert_non_null(printable);
	assert_string_equal(printable, expected);
	free(printable);
}

static void test_printable(void **state)
{
	check_printable("", "");
	check_printable("cron/a b", "cron/a b");
	check_printable("a\\b", "a\\\\b");
	check_printable("\033[31m\n\x7f", "\\x1B[31m\\x0A\\x7F");
	check_printable("\xff\xc3", "\\xFF\\xC3");
	if (setlocale(LC_CTYPE, "C.UTF-8") != NULL) {
		check_printable("\xc3\xa4", "\xc3\xa4");
		check_printable("\xc3", "\\xC3");
		check_printable("\u202e", "\\xE2\\x80\\xAE"); /* turns the direction */
		check_printable("\xc2\x9b\u200b", "\\xC2\\x9B\\xE2\\x80\\x8B");
		check_printable("e\u0301", "e\u0301"); /* a letter with its mark */
		assert_int_equal(text_width("e\u0301"), 1);
		assert_int_equal(text_width("\xc3\xa4\xe6\xbc\xa2"), 3);
		setlocale(LC_CTYPE, "C");
		check_printable("\xc3\xa4", "\\xC3\\xA4");
	}
	(void)state;
}

static void check_cut(const char *text, size_t columns, const char *expected)
{
	char *copy = strdup(text);
	assert_non_null(copy);
	text_cut(copy, columns);
	assert_string_equal(copy, expected);
	free(copy);
}

static void test_cut(void **state)
{
	check_cut("", 0, "");
	check_cut("abc", 3, "abc");
	check_cut("abcd", 3, "ab~");
	check_cut("abcd", 1, "~");
	check_cut("abcd", 0, "");
	if (setlocale(LC_CTYPE, "C.UTF-8") != NULL) {
		check_cut("\xe6\xbc\xa2\xe6\xbc\xa2", 4, "\xe6\xbc\xa2\xe6\xbc\xa2");
		check_cut("\xe6\xbc\xa2\xe6\xbc\xa2", 3, "\xe6\xbc\xa2~");
		check_cut("\xe6\xbc\xa2\xe6\xbc\xa2", 2, "~");
		setlocale(LC_CTYPE, "C");
	}
	(void)state;
}

static void test_age(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} ages[] = {{-5, "0s"},	      {59, "59s"},	{60, "1m00s"},
		    {3599, "59m59s"}, {3600, "1h00m"},	{86399, "23h59m"},
		    {86400, "1d00h"}, {90000, "1d01h"}, {INT64_MAX, "106751991167300d15h"}};
	for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
		char age[TEXT_AGE_BYTES];
		text_age(ages[i].seconds, age);
		assert_string_equal(age, ages[i].text);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	  cmocka_unit_test(test_kept),
		cmocka_unit_test(test_resting),	  cmocka_unit_test(test_lost),
		cmocka_unit_test(test_odd),	  cmocka_unit_test(test_values),
		cmocka_unit_test(test_zeros),	  cmocka_unit_test(test_long),
		cmocka_unit_test(test_mutations), cmocka_unit_test(test_printable),
		cmocka_unit_test(test_cut),	  cmocka_unit_test(test_age),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
