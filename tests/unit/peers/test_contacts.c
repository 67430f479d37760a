/* SPDX-License-Identifier: Apache-2.0
 *
 * Who answers is not asked for answers again and again, and who is silent is not sent much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "peers/contacts.h"
#include "peers/senders.h"

static const struct packet_nonce first = {"a"}, second = {"b"};

struct seen {
	size_t count, silent;
	int64_t for_ms;
	char last[ADDRESS_TEXT_BYTES];
};

static void on_contact(void *context, const struct contact_state *contact)
{
	struct seen *seen = context;

	seen->count++;
	seen->silent += contact->is_silent;
	seen->for_ms = contact->for_ms;
	snprintf(seen->last, sizeof(seen->last), "%s", contact->address);
}

static struct seen look(const struct contacts *contacts, int64_t now_ms)
{
	struct seen seen = {0};

	contacts_each(contacts, now_ms, on_contact, &seen);
	return seen;
}

static union address address_of(unsigned number)
{
	union address address;
	char text[ADDRESS_TEXT_BYTES];

	snprintf(text, sizeof(text), "10.0.%u.%u:7263", number >> 8, number & 255);
	assert_true(address_parse(text, 0, &address));
	return address;
}

static void test_answers(void **state)
{
	struct contacts contacts = {0};
	union address a = address_of(1);

	assert_int_equal(contacts_ask(&contacts, &a, &first, 1000), CONTACTS_ANSWER);
	assert_int_equal(contacts_ask(&contacts, &a, &second, 1001), CONTACTS_PLAIN);
	assert_int_equal(look(&contacts, 1500).silent, 0);
	assert_false(contacts_hear(&contacts, &a, &second, 1500)); /* not that question's */
	assert_true(contacts_hear(&contacts, &a, &first, 1500));
	assert_int_equal(look(&contacts, 9000).silent, 0);
	assert_int_equal(look(&contacts, 9000).for_ms, 7500);
	assert_int_equal(contacts_ask(&contacts, &a, &second, 1000 + CONTACTS_HEARD_MS - 1),
			 CONTACTS_PLAIN);
	assert_int_equal(contacts_ask(&contacts, &a, &second, 1000 + CONTACTS_HEARD_MS),
			 CONTACTS_ANSWER);
	contacts_finish(&contacts);
}

static void test_is_silent(void **state)
{
	struct contacts contacts = {0};
	union address a = address_of(1), b = address_of(2);

	assert_int_equal(contacts_ask(&contacts, &a, &first, 0), CONTACTS_ANSWER);
	assert_int_equal(look(&contacts, CONTACTS_AGAIN_MS).silent, 1);
	for (int64_t ms = CONTACTS_AGAIN_MS; ms < 10 * CONTACTS_AGAIN_MS; ms++)
		assert_int_equal(contacts_ask(&contacts, &a, &second, ms),
				 ms % CONTACTS_AGAIN_MS == 0 ? CONTACTS_ANSWER : CONTACTS_NOT);
	assert_false(contacts_hear(&contacts, &b, &second, 10000));
	assert_true(contacts_hear(&contacts, &a, &second, 10000));
	assert_int_equal(contacts_ask(&contacts, &a, &first, 10001), CONTACTS_PLAIN);
	contacts_finish(&contacts);
}

static void test_is_bounded(void **state)
{
	struct contacts contacts = {0};
	union address a = address_of(0);

	for (unsigned i = 0; i <= CONTACTS_MAX; i++) {
		union address other = address_of(i);
		assert_int_equal(contacts_ask(&contacts, &other, &first, i), CONTACTS_ANSWER);
		/* The first one is asked again and again. */
		assert_int_equal(contacts_ask(&contacts, &a, &second, i) == CONTACTS_ANSWER,
				 i == CONTACTS_AGAIN_MS);
	}
	assert_int_equal(look(&contacts, 0).count, CONTACTS_MAX);
	assert_string_equal(look(&contacts, 0).last, "10.0.0.0:7263");
	contacts_finish(&contacts);
}

static void test_senders(void **state)
{
	static struct senders senders;
	union address a = address_of(1), port, v6, same;
	int passed = 0;

	assert_int_equal(senders_init(&senders), 0);
	while (senders_pass(&senders, &a, 1))
		passed++;
	assert_int_equal(passed, SENDERS_AT_ONCE);
	/* Another port is nobody else. */
	assert_true(address_parse("10.0.0.1:1", 0, &port));
	assert_false(senders_pass(&senders, &port, 1));
	/* Nor is another address of one network. */
	assert_true(address_parse("[2001:db8::1]:1", 0, &v6));
	assert_true(address_parse("[2001:db8::ffff:1]:1", 0, &same));
	while (senders_pass(&senders, &v6, 1))
		;
	assert_false(senders_pass(&senders, &same, 1));
	assert_true(senders_pass(&senders, &a, 2));
	/* Of a hundred others, nearly all have places of their own. */
	passed = 0;
	for (unsigned i = 100; i < 200; i++) {
		union address other = address_of(i);
		passed += senders_pass(&senders, &other, 2);
	}
	assert_in_range(passed, 98, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_is_silent),
		cmocka_unit_test(test_is_bounded),
		cmocka_unit_test(test_senders),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
