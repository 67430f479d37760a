/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue in the ZooKeeper store: claims that are placed, listed and withdrawn, under all names,
 * and the znodes that this needs.
 */
#include <stdatomic.h>

#include "zookeeper_fixture.h"

static void test_order(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
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
	static const struct {
		const char *name;
		enum claim_mode mode;
	} others[] = {
		{"lock-", CLAIM_EXCLUSIVE},
		{"_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-__READ__", CLAIM_SHARED},
		{"_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-lock-", CLAIM_EXCLUSIVE},
	};
	struct host *a = open_host(0, server);
	struct call first, all;
	char path[256];

	place(a, &first, "foreign", 1);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "foreign/%s", others[i].name);
		assert_int_equal(zoo_create(raw, znode(path), "", 0, &ZOO_OPEN_ACL_UNSAFE,
					    ZOO_EPHEMERAL_SEQUENTIAL, NULL, 0),
				 ZOK);
	}
	assert_int_equal(
		zoo_create(raw, znode("foreign/leases"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
		ZOK);
	list(a, &all, "foreign", true);
	assert_int_equal(all.count, 4);
	for (size_t i = 0; i < 3; i++) {
		const struct claim_name *claim = &all.claims[i + 1];

		assert_true(claim->id.session == 0);
		assert_int_equal(claim->id.owner | claim->id.number, 0);
		assert_int_equal(claim->mode, others[i].mode);
		assert_false(claim->record || claim->sparse || claim->anchored);
		assert_true(claim->span.start == 0 && claim->span.end == INT64_MAX);
		assert_int_equal(claim->order, first.order + 1 + (int)i);
	}
	assert_int_equal(zoo_delete(raw, znode("foreign/leases"), -1), ZOK);
}

/* All that a name can say comes back from the server. */
static void test_spans(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct claim_name name = claim_of(1, CLAIM_EXCLUSIVE);
	struct call first = {0}, second = {0}, all;
	const struct claim_name *claim;

	name.record = true;
	name.span = (struct claim_span){100, 199};
	a->store->ops->place(a->store, &first, "spans", &name, "", true);
	name.id.number = UINT32_MAX;
	name.id.owner = CLAIM_OWNERS - 1;
	name.mode = CLAIM_SHARED;
	name.sparse = name.anchored = true;
	name.span = (struct claim_span){INT64_MAX - 1, INT64_MAX};
	name.anchor = claim_name_order(INT32_MIN);
	name.anchor_span = (struct claim_span){INT64_MAX, INT64_MAX};
	name.order = -1; /* not looked at */
	a->store->ops->place(a->store, &second, "spans", &name, "", true);
	WAIT_FOR(second.times);
	assert_int_equal(first.error | second.error, 0);
	assert_int_equal(second.order, first.order + 1);

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
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call all, answer = {0};

	place(a, &all, "many", 0);
	for (unsigned i = 0; i < MANY; i++)
		send_place(a, &calls[i], "many", i + 1, CLAIM_EXCLUSIVE, i % 100 == 0);
	WAIT_FOR(calls[MANY - 1].times);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(calls[i].times, 1);
		assert_int_equal(calls[i].error, 0);
		assert_int_equal(calls[i].turn, i + 1);
		assert_int_equal(calls[i].order, all.order + (int)i + 1);
		assert_int_equal(calls[i].listed, i % 100 == 0);
		assert_true(!calls[i].listed || calls[i].count >= i + 2);
	}
	for (unsigned i = 0; i < MANY; i++)
		a->store->ops->withdraw(a->store, &answer, "many", calls[i].name, calls[i].order,
					false);
	WAIT_FOR(answer.times == MANY);
	list(b, &all, "many", true);
	assert_int_equal(all.count, 1);
}

static void test_withdraw(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first;

	place(a, &first, "withdraw", 1);
	assert_int_equal(withdraw(b, "withdraw", &first), 0);
	assert_int_equal(withdraw(a, "withdraw", &first), 0);
	assert_int_equal(withdraw(a, "no/such/lock", &first), 0);
}

static void test_parents(void **state)
{
	struct host *a = open_host(0, server);
	struct call calls[20];

	for (unsigned i = 0; i < 20; i++)
		send_place(a, &calls[i], "deep/er/and/deeper", i + 1, CLAIM_EXCLUSIVE, true);
	for (unsigned i = 0; i < 20; i++) {
		WAIT_FOR(calls[i].times);
		assert_int_equal(calls[i].error, 0);
		assert_int_equal(calls[i].order, i);
		assert_true(calls[i].count > i);
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(withdraw(a, "deep/er/and/deeper", &calls[i]), 0);

	/* Where the reaper took it. */
	assert_int_equal(zoo_delete(raw, znode("deep/er/and/deeper"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("deep/er/and"), -1), ZOK);
	place(a, calls, "deep/er/and/deeper", 1);
	assert_int_equal(calls->order, 0);
	assert_int_equal(calls->count, 1);
}

static void on_reaped(int code, const void *data)
{
	atomic_int *under_way = (atomic_int *)data;

	atomic_fetch_sub(under_way, 1);
}

/* A reaper that is always at it: whatever is idle for a moment is gone. */
static void test_reaper(void **state)
{
	static atomic_int under_way;
	struct host *a = open_host(0, server);
	struct call call;

	for (unsigned i = 0; i < 200; i++) {
		send_place(a, &call, "reaped", i + 1, CLAIM_EXCLUSIVE, true);
		while (!call.times) {
			if (under_way < 4) {
				under_way++;
				zoo_adelete(raw, znode("reaped"), -1, on_reaped, &under_way);
			}
			dispatch_hosts(1);
		}
		assert_int_equal(call.error, 0);
		assert_int_equal(withdraw(a, "reaped", &call), 0);
	}
	WAIT_FOR(under_way == 0);
}

static void test_names(void **state)
{
	static struct call calls[256];
	struct host *a = open_host(0, server), *b = open_host(1, server);
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
}

static void test_refused(void **state)
{
	struct ACL entries[] = {{ZOO_PERM_READ | ZOO_PERM_ADMIN, {"world", "anyone"}}};
	struct ACL_vector acl = {1, entries};
	struct host *a = open_host(0, server);
	struct call call, watched;
	char path[256];

	assert_int_equal(zoo_create(raw, znode("closed"), "", 0, &acl, 0, NULL, 0), ZOK);
	send_place(a, &call, "closed", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	send_place(a, &call, "closed/inner", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	assert_int_equal(zoo_delete(raw, znode("closed"), -1), ZOK);

	/* Nothing can stand below a claim. */
	assert_int_equal(zoo_create(raw, znode("short"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
				    NULL, 0),
			 ZOK);
	send_place(a, &call, "short/inner", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EIO);

	/* A claim that may only be read, then not even that. */
	place(a, &call, "mine", 1);
	snprintf(path, sizeof(path), "mine/%s", call.name);
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	assert_int_equal(amend(a, "mine", &call, "new"), -EACCES);
	send_watch(a, &watched, "mine", call.name);
	WAIT_FOR(watched.reads);
	assert_string_equal(watched.text, "host=test\n");
	entries[0].perms = ZOO_PERM_WRITE | ZOO_PERM_ADMIN;
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	send_watch(a, &watched, "mine", call.name);
	WAIT_FOR(watched.times);
	assert_int_equal(watched.reads, 0);
	assert_int_equal(watched.error, -EACCES);
}

static void test_counter(void **state)
{
	struct host *a = open_host(0, server);
	struct call call, other;

	assert_false(operation_wears_out_counter(0));
	assert_false(operation_wears_out_counter(1 << 30));
	assert_true(operation_wears_out_counter((1 << 30) + 1));
	assert_true(operation_wears_out_counter(INT32_MAX));
	assert_true(operation_wears_out_counter(claim_name_order(INT32_MIN)));
	assert_true(operation_wears_out_counter(claim_name_order(-1)));

	/* What the server shows of the counter, which is twice of it less the children, in 32 bits.
	 */
	struct Stat stat = {0};
	assert_int_equal(operation_next_order(&stat), 0);
	stat = (struct Stat){.cversion = 2 * 5 - 3, .numChildren = 3};
	assert_int_equal(operation_next_order(&stat), 5);
	stat = (struct Stat){.cversion = -2 - 7, .numChildren = 7};
	assert_int_equal(operation_next_order(&stat), INT32_MAX);

	/* A store that is told of such a number takes the empty queue away, and no other. */
	place(a, &call, "worn", 1);
	call.order = claim_name_order(INT32_MIN);
	send_place(a, &other, "worn", 2, CLAIM_EXCLUSIVE, false);
	assert_int_equal(withdraw(a, "worn", &call), 0);
	place(a, &call, "worn", 3);
	assert_int_equal(call.order, 2);
}

static void test_counter_restarts(void **state)
{
	struct host *a = open_host(0, server);
	struct call call;

	place(a, &call, "restarts", 1);
	assert_int_equal(withdraw(a, "restarts", &call), 0);
	place(a, &call, "restarts", 2);
	assert_int_equal(call.order, 1);
	call.order = (1 << 30) + 1;
	assert_int_equal(withdraw(a, "restarts", &call), 0);
	place(a, &call, "restarts", 3);
	assert_int_equal(call.order, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_order, close_hosts),
		cmocka_unit_test_teardown(test_foreign, close_hosts),
		cmocka_unit_test_teardown(test_spans, close_hosts),
		cmocka_unit_test_teardown(test_pipelined, close_hosts),
		cmocka_unit_test_teardown(test_withdraw, close_hosts),
		cmocka_unit_test_teardown(test_parents, close_hosts),
		cmocka_unit_test_teardown(test_reaper, close_hosts),
		cmocka_unit_test_teardown(test_names, close_hosts),
		cmocka_unit_test_teardown(test_refused, close_hosts),
		cmocka_unit_test_teardown(test_counter, close_hosts),
		cmocka_unit_test_teardown(test_counter_restarts, close_hosts),
	};

	begin_tests(argc, argv);
	return end_tests(cmocka_run_group_tests_name("zookeeper_queue", tests, NULL, NULL));
}
