/* SPDX-License-Identifier: Apache-2.0
 *
 * Markers in a store: what outlives a claim, what does not, and what others see.
 */
#include "claim/marker.h"
#include "store_fixture.h"

static int mark(struct host *host, const char *path, const struct call *placed)
{
	struct call call = {0};

	host->store->ops->mark(host->store, &call, path, placed->name, "host=test\n", 0);
	WAIT_FOR(call.times);
	return call.error;
}

static int withdraw_marked(struct host *host, const char *path, const struct call *placed)
{
	struct call call = {0};

	host->store->ops->withdraw(host->store, nobody_is_told(), &call, path, placed->name,
				   placed->order, true);
	WAIT_FOR(call.times);
	return call.error;
}

static void test_released(void **state)
{
	struct host *a = open_host(0, server);
	struct call claim, other, all;

	place(a, &claim, "released", 1);
	place(a, &other, "released", 2);
	assert_int_equal(mark(a, "released", &claim), 0);
	assert_int_equal(mark(a, "released", &claim), 0);
	list(a, &all, "released", true);
	assert_int_equal(all.count, 2);
	assert_int_equal(all.orphans, 0);
	assert_int_equal(backend->count("released"), 3);
	assert_int_equal(withdraw_marked(a, "released", &claim), 0);
	assert_int_equal(backend->count("released"), 1);
	/* There is none. */
	assert_int_equal(withdraw_marked(a, "released", &other), 0);
}

static void test_orphan(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call claim, next, all;

	place(a, &claim, "orphan", 1);
	place(b, &next, "orphan", 2);
	assert_int_equal(mark(a, "orphan", &claim), 0);
	backend->remove("orphan", claim.name);
	assert_int_equal(mark(a, "orphan", &claim), -ENOENT);
	list(b, &all, "orphan", true);
	assert_int_equal(all.count, 2);
	assert_int_equal(all.orphans, 1);
	assert_int_equal(all.claims[0].order, claim.order);
	assert_true(all.claims[0].id.session == claim_id_session(1));
	assert_int_equal(withdraw_marked(b, "orphan", &claim), 0);
	list(b, &all, "orphan", true);
	assert_int_equal(all.count, 1);
	assert_int_equal(all.orphans, 0);
}

/* The end of the session takes the claim, and not its marker. A later claim has a greater number,
 * though the lock had no claim. */
static void test_session(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call claim, next;

	place(a, &claim, "session", 1);
	assert_int_equal(mark(a, "session", &claim), 0);
	close_host(a);
	send_place(b, &next, "session", 2, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(next.times);
	assert_int_equal(next.count, 2);
	assert_int_equal(next.orphans, 1);
	assert_true(next.order > claim.order);
	assert_int_equal(withdraw_marked(b, "session", &claim), 0);
}

/* Who knows the queue up to a claim of its own, and does not ask for the rest, is told that
 * something came between: a claim that stands, or an orphan. */
static void test_between(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, lost, next;

	place(a, &first, "between", 1);
	place(b, &lost, "between", 2);
	assert_int_equal(mark(b, "between", &lost), 0);
	send_place(a, &next, "between", 3, CLAIM_EXCLUSIVE, false);
	WAIT_FOR(next.times);
	assert_true(next.after >= lost.order);
	assert_int_equal(withdraw(a, "between", &next), 0);
	backend->remove("between", lost.name);
	send_place(a, &next, "between", 4, CLAIM_EXCLUSIVE, false);
	WAIT_FOR(next.times);
	assert_true(next.after >= lost.order);
	assert_int_equal(withdraw(a, "between", &next), 0);
	assert_int_equal(withdraw_marked(b, "between", &lost), 0);
}

/* How old the marker is; or the error. */
static int64_t age(struct host *host, const char *path, const struct call *placed)
{
	struct call call = {0};

	host->store->ops->age(host->store, &call, path, placed->name);
	WAIT_FOR(call.times);
	assert_true(call.error != 0 || strcmp(call.text, "host=test\n") == 0);
	return call.error != 0 ? call.error : call.stamp;
}

/* Another host learns how old a marker is, by the clock of the service: never more than it is, and
 * less by no more than the seconds in which etcd counts. So it does when the time that was asked
 * for is over. */
static void test_age(void **state)
{
	enum { LONGEST_MS = 3000, ROUNDED_MS = 1100, CLOCKS_DIFFER_MS = 100 };
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call claim, marked = {0};
	int64_t begin_ms = now_ms(), sent_ms, told_ms;

	place(a, &claim, "age", 1);
	a->store->ops->mark(a->store, &marked, "age", claim.name, "host=test\n", LONGEST_MS);
	WAIT_FOR(marked.times);
	assert_int_equal(marked.error, 0);
	int64_t marked_ms = now_ms();
	do {
		sent_ms = now_ms();
		told_ms = age(b, "age", &claim);
		assert_in_range(told_ms, 0, now_ms() - begin_ms + CLOCKS_DIFFER_MS);
		if (sent_ms - marked_ms <= LONGEST_MS)
			assert_true(told_ms >= sent_ms - marked_ms - ROUNDED_MS);
		run_for(200);
	} while (told_ms < LONGEST_MS);
	backend->remove("age", claim.name);
	assert_true(age(b, "age", &claim) >= LONGEST_MS);
	assert_int_equal(withdraw_marked(b, "age", &claim), 0);
	assert_int_equal(age(b, "age", &claim), -ENOENT);
	/* Of one that was left without that, only the text is known. */
	place(a, &claim, "age", 2);
	assert_int_equal(mark(a, "age", &claim), 0);
	assert_true(age(b, "age", &claim) >= 0);
	assert_int_equal(withdraw_marked(a, "age", &claim), 0);
	assert_int_equal(backend->count("age"), 0);
}

/* A lock of such a name is no marker. */
static void test_lock_name(void **state)
{
	char marker[CLAIM_MARKER_BYTES], below[512];
	struct host *a = open_host(0, server);
	struct call claim, all, other;

	place(a, &claim, "name", 1);
	assert_true(claim_marker_format(marker, claim.name));
	snprintf(below, sizeof(below), "name/%s", marker);
	assert_int_equal(withdraw(a, "name", &claim), 0);
	place(a, &other, below, 2);
	list(a, &all, "name", true);
	assert_int_equal(all.count, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_released, close_hosts),
		cmocka_unit_test_teardown(test_orphan, close_hosts),
		cmocka_unit_test_teardown(test_session, close_hosts),
		cmocka_unit_test_teardown(test_between, close_hosts),
		cmocka_unit_test_teardown(test_age, close_hosts),
		cmocka_unit_test_teardown(test_lock_name, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_mark", tests, NULL, NULL));
}
