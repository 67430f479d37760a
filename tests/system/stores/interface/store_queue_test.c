/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue in a store: claims that are placed, listed and withdrawn, under all names.
 */
#include "store_fixture.h"

static void test_order(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, second, third, all;

	send_place(a, &first, "order", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(first.times);
	send_place(b, &second, "order", 2, CLAIM_SHARED, true);
	WAIT_FOR(second.times);
	send_place(a, &third, "order", 3, CLAIM_EXCLUSIVE, false);
	WAIT_FOR(third.times);
	assert_int_equal(first.error | second.error | third.error, 0);
	assert_int_equal(first.count, 1);
	assert_int_equal(second.count, 2);
	assert_false(third.listed);
	assert_true(first.order < second.order && second.order < third.order);

	list(b, &all, "order", true);
	assert_int_equal(all.error, 0);
	assert_int_equal(all.count, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(all.claims[i].id.session == claim_id_session(1));
		assert_int_equal(all.claims[i].id.number, i + 1);
		assert_int_equal(all.claims[i].mode, i == 1 ? CLAIM_SHARED : CLAIM_EXCLUSIVE);
	}
	list(b, &all, "never/used", false);
	assert_int_equal(all.error, 0);
	assert_int_equal(all.count, 0);
	list(b, &all, "never/used", true);
	assert_int_equal(all.error, 0);
}

/* Other clients' claims stand in the queue, each as one of the whole file, of nobody here. */
static void test_foreign(void **state)
{
	static const enum claim_mode modes[] = {CLAIM_EXCLUSIVE, CLAIM_SHARED, CLAIM_EXCLUSIVE};
	struct call first, all;

	need_claims_in_service();
	struct host *a = open_host(0, server);
	place(a, &first, "foreign", 1);
	for (size_t i = 0; i < 3; i++)
		backend->make_claim("foreign", modes[i]);
	backend->make_other("foreign", "leases");
	list(a, &all, "foreign", true);
	assert_int_equal(all.count, 4);
	for (size_t i = 0; i < 3; i++) {
		const struct claim_name *claim = &all.claims[i + 1];

		assert_true(claim->id.session == 0);
		assert_int_equal(claim->id.owner | claim->id.number, 0);
		assert_int_equal(claim->mode, modes[i]);
		assert_false(claim->record || claim->sparse || claim->anchored);
		assert_true(claim->span.start == 0 && claim->span.end == INT64_MAX);
		assert_true(claim->order > all.claims[i].order);
	}
	backend->remove_other("foreign", "leases");
}

/* All that a name can say comes back from the server. */
static void test_spans(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct claim_name name = claim_of(1, CLAIM_EXCLUSIVE);
	struct call first = {0}, second = {0}, all;
	const struct claim_name *claim;

	name.record = true;
	name.span = (struct claim_span){100, 199};
	a->store->ops->place(a->store, &first, "spans", &name, "", true, NULL);
	name.id.number = UINT32_MAX;
	name.id.owner = CLAIM_OWNERS - 1;
	name.mode = CLAIM_SHARED;
	name.sparse = name.anchored = true;
	name.span = (struct claim_span){INT64_MAX - 1, INT64_MAX};
	name.anchor = claim_name_order(INT32_MIN);
	name.anchor_span = (struct claim_span){INT64_MAX, INT64_MAX};
	name.order = -1; /* not looked at */
	a->store->ops->place(a->store, &second, "spans", &name, "", true, NULL);
	WAIT_FOR(second.times);
	assert_int_equal(first.error | second.error, 0);
	assert_true(second.order > first.order);

	list(b, &all, "spans", true);
	assert_int_equal(all.count, 2);
	claim = &all.claims[0];
	assert_true(claim->id.session == name.id.session && claim->record && !claim->sparse);
	assert_true(claim->span.start == 100 && claim->span.end == 199 && !claim->anchored);
	assert_int_equal(claim->order, first.order);
	claim = &all.claims[1];
	assert_true(claim->id.session == name.id.session && claim->record && claim->sparse);
	assert_int_equal(claim->id.owner, name.id.owner);
	assert_int_equal(claim->id.number, name.id.number);
	assert_int_equal(claim->mode, CLAIM_SHARED);
	assert_true(claim->span.start == name.span.start && claim->span.end == INT64_MAX);
	assert_true(claim->anchored && claim->anchor == claim_name_order(INT32_MIN));
	assert_true(claim->anchor_span.start == INT64_MAX && claim->anchor_span.end == INT64_MAX);
	assert_int_equal(claim->order, second.order);
	assert_int_equal(withdraw(b, "spans", &second), 0);
}

#define MANY 1000

static void test_pipelined(void **state)
{
	static struct call calls[MANY];
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call all, answer = {0};

	place(a, &all, "many", 0);
	for (unsigned i = 0; i < MANY; i++)
		send_place(a, &calls[i], "many", i + 1, CLAIM_EXCLUSIVE, i % 100 == 0);
	WAIT_FOR(calls[MANY - 1].times);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(calls[i].times, 1);
		assert_int_equal(calls[i].error, 0);
		assert_int_equal(calls[i].turn, i + 1);
		assert_true(calls[i].order > (i > 0 ? calls[i - 1].order : all.order));
		assert_int_equal(calls[i].listed, i % 100 == 0);
		assert_true(!calls[i].listed || calls[i].count >= i + 2);
	}
	for (unsigned i = 0; i < MANY; i++)
		a->store->ops->withdraw(a->store, nobody_is_told(), &answer, "many", calls[i].name,
					calls[i].order, false);
	WAIT_FOR(answer.times == MANY);
	list(b, &all, "many", true);
	assert_int_equal(all.count, 1);
}

static void test_withdraw(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first;

	place(a, &first, "withdraw", 1);
	assert_int_equal(withdraw(b, "withdraw", &first), 0);
	assert_int_equal(withdraw(a, "withdraw", &first), 0);
	assert_int_equal(withdraw(a, "no/such/lock", &first), 0);
}

/* A claim goes if its heir stands, of whatever host, and else stays; its end is like any other. */
static void test_bequeath(void **state)
{
	struct host *a = open_host(0, server), *b = open_peer(a);
	struct call first, second, heir, all;

	if (a->store->ops->bequeath == NULL)
		skip();
	place(a, &first, "bequeath", 1);
	place(b, &heir, "bequeath", 2);
	place(a, &second, "bequeath", 3);
	assert_int_equal(bequeath(a, "bequeath", &first, heir.name), 0);
	assert_int_equal(bequeath(a, "bequeath", &first, heir.name), 0);
	list(b, &all, "bequeath", true);
	assert_int_equal(all.count, 2);
	assert_int_equal(withdraw(b, "bequeath", &heir), 0);
	/* The heir's place in the queue is free for another one, which is not the heir. */
	place(b, &first, "bequeath", 2);
	assert_int_equal(bequeath(a, "bequeath", &second, heir.name), -ESTALE);
	list(a, &all, "bequeath", true);
	assert_int_equal(all.count, 2);
	assert_string_equal(all.first, second.name);
	assert_int_equal(bequeath(a, "bequeath", &second, first.name), 0);
	assert_int_equal(bequeath(a, "bequeath", &second, heir.name), 0);
	list(b, &all, "bequeath", true);
	assert_int_equal(all.count, 1);
}

static void test_names(void **state)
{
	static struct call calls[256];
	struct host *a = open_host(0, server), *b = open_peer(a);
	char name[300];
	struct call all;

	for (int byte = 1; byte < 256; byte++) {
		snprintf(name, sizeof(name), "n/%c", byte);
		if (byte != '/')
			send_place(a, &calls[byte], name, (uint32_t)byte, CLAIM_EXCLUSIVE, true);
	}
	for (int byte = 1; byte < 256; byte++) {
		if (byte == '/')
			continue;
		WAIT_FOR(calls[byte].times);
		assert_int_equal(calls[byte].error, 0);
		assert_int_equal(calls[byte].count, 1);
		snprintf(name, sizeof(name), "n/%c", byte);
		list(b, &all, name, true);
		assert_int_equal(all.count, 1);
		assert_int_equal(all.claims[0].id.number, byte);
	}
	strcpy(name, "n/");
	for (int i = 0; i < 255; i++)
		name[2 + i] = (char)(i % 2 ? 0xff : 1);
	name[257] = '\0';
	place(a, &all, name, 1);
	place(a, &all, "n/..x", 2);
	place(a, &all, "zookeeper", 3);
	place(a, &all, "of 100%/%41/a", 4);
	list(b, &all, "of 100%/A/a", true);
	assert_int_equal(all.count, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_order, close_hosts),
		cmocka_unit_test_teardown(test_foreign, close_hosts),
		cmocka_unit_test_teardown(test_spans, close_hosts),
		cmocka_unit_test_teardown(test_pipelined, close_hosts),
		cmocka_unit_test_teardown(test_withdraw, close_hosts),
		cmocka_unit_test_teardown(test_bequeath, close_hosts),
		cmocka_unit_test_teardown(test_names, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_queue", tests, NULL, NULL));
}
