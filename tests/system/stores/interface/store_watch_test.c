/* SPDX-License-Identifier: Apache-2.0
 *
 * The watch on a claim in a store: its end, and the data that its owner changes. The attention to a
 * queue.
 */
#include "store_asker.h"

static void test_watch(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, second, gone, also_gone, missing;
	char name[CLAIM_NAME_BYTES];

	place(a, &first, "watch", 1);
	place(b, &second, "watch", 2);
	send_watch(b, &gone, "watch", first.name);
	send_watch(b, &also_gone, "watch", first.name);
	/* One that was placed, and is not there. */
	place(a, &missing, "watch", 3);
	strcpy(name, missing.name);
	assert_int_equal(withdraw(a, "watch", &missing), 0);
	send_watch(b, &missing, "watch", name);
	WAIT_FOR(missing.times);
	assert_int_equal(missing.error, 0);
	assert_int_equal(gone.times, 0);

	/* New data is no end; neither is what happens to others. */
	WAIT_FOR(gone.reads == 1 && also_gone.reads == 1);
	for (int i = 0; i < 3; i++) {
		change_data(b, "watch", first.name, "news", 4);
		WAIT_FOR(gone.reads == i + 2 && also_gone.reads == i + 2);
	}
	run_for(50);
	assert_int_equal(gone.reads, 4);
	assert_int_equal(withdraw(b, "watch", &second), 0);
	assert_int_equal(gone.times, 0);

	assert_int_equal(withdraw(a, "watch", &first), 0);
	WAIT_FOR(gone.times && also_gone.times);
	run_for(50);
	assert_int_equal(gone.times, 1);
	assert_int_equal(also_gone.times, 1);
	assert_int_equal(gone.error | also_gone.error, 0);
	send_watch(b, &missing, "no/such/lock", first.name);
	WAIT_FOR(missing.times);
	assert_int_equal(missing.error, 0);
}

static void test_amend(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, seen, also_seen, own, amends[3], withdrawn = {0};
	char text[8];

	place(a, &first, "amend", 1);
	send_watch(b, &seen, "amend", first.name);
	send_watch(b, &also_seen, "amend", first.name);
	send_watch(a, &own, "amend", first.name);
	WAIT_FOR(seen.reads == 1 && also_seen.reads == 1 && own.reads == 1);
	assert_string_equal(seen.text, "host=test\n");
	assert_string_equal(also_seen.text, "host=test\n");
	assert_string_equal(own.text, "host=test\n");

	for (int i = 1; i <= 20; i++) {
		snprintf(text, sizeof(text), "n=%d\n", i);
		assert_int_equal(amend(a, "amend", &first, text), 0);
		WAIT_FOR(seen.reads == i + 1 && also_seen.reads == i + 1 && own.reads == i + 1);
		assert_string_equal(seen.text, text);
		assert_string_equal(also_seen.text, text);
		assert_string_equal(own.text, text);
	}

	/* Data as others may leave it: none at all, or a NUL in it. */
	change_data(b, "amend", first.name, NULL, 0);
	WAIT_FOR(seen.reads == 22 && also_seen.reads == 22);
	assert_string_equal(seen.text, "");
	change_data(b, "amend", first.name, "ab\0cd", 5);
	WAIT_FOR(seen.reads == 23 && also_seen.reads == 23);
	assert_string_equal(seen.text, "ab");

	/* Changes that come faster than they are read: the last one is, and no older one after it.
	 * Answers come in the order of the calls. */
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "m=%d\n", i);
		send_amend(a, &amends[i], "amend", &first, text);
	}
	WAIT_FOR(amends[2].times && !strcmp(seen.text, "m=2\n") &&
		 !strcmp(also_seen.text, "m=2\n") && !strcmp(own.text, "m=2\n"));
	run_for(50);
	assert_string_equal(seen.text, "m=2\n");
	assert_string_equal(own.text, "m=2\n");
	assert_true(seen.reads <= 26);

	send_amend(a, &amends[0], "amend", &first, "last");
	a->store->ops->withdraw(a->store, nobody_is_told(), &withdrawn, "amend", first.name,
				first.order, false);
	send_amend(a, &amends[1], "amend", &first, "late");
	send_amend(a, &amends[2], "no/such/lock", &first, "late");
	WAIT_FOR(amends[1].times && amends[2].times);
	assert_int_equal(amends[0].error | withdrawn.error | amends[1].error | amends[2].error, 0);
	assert_true(withdrawn.turn > amends[0].turn);
	assert_true(amends[1].turn > withdrawn.turn);
	WAIT_FOR(seen.times && also_seen.times && own.times);
	assert_int_equal(seen.error | also_seen.error | own.error, 0);
}

static void test_attend(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, second, missing, come, also_come, gone, own, last;

	/* Where there is nothing yet it may be told at once. */
	attend(b, &missing, "attend", false);
	assert_int_equal(missing.error, 0);
	place(a, &first, "attend", 1);
	WAIT_FOR(missing.changes);
	attend(b, &come, "attend", true);
	attend(b, &also_come, "attend", false);
	attend(a, &own, "attend", false);
	assert_int_equal(come.error | also_come.error | own.error, 0);
	assert_int_equal(come.count, 1);
	assert_int_equal(own.count, 1);
	assert_int_equal(amend(a, "attend", &first, "new\n"), 0);
	place(a, &last, "attended", 1);
	run_for(50);
	assert_int_equal(come.changes | also_come.changes | own.changes, 0);

	place(b, &second, "attend", 2);
	WAIT_FOR(come.changes && also_come.changes && own.changes);
	attend(b, &gone, "attend", false);
	assert_int_equal(gone.count, 2);
	run_for(50);
	assert_int_equal(gone.changes, 0);
	assert_int_equal(withdraw(a, "attend", &first), 0);
	WAIT_FOR(gone.changes);

	/* Each is told once. */
	place(b, &last, "attend", 3);
	run_for(50);
	assert_int_equal(missing.changes, 1);
	assert_int_equal(come.changes, 1);
	assert_int_equal(also_come.changes, 1);
	assert_int_equal(own.changes, 1);
	assert_int_equal(gone.changes, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_watch, close_hosts),
		cmocka_unit_test_teardown(test_amend, close_hosts),
		cmocka_unit_test_teardown(test_attend, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_watch", tests, NULL, NULL));
}
