/* SPDX-License-Identifier: Apache-2.0
 *
 * Hosts with the Redis store, and other clients, contend for keys: what each sees of the others is
 * a gate in its own queue.
 */
#include "base/clock.h"
#include "redis_fixture.h"
#include "store_asker.h"

static struct store_proof proof_of(const char *path, const struct call *placed, const char *text)
{
	return (struct store_proof){path, placed->name, text, STORE_ANY_VERSION};
}

static int64_t stamp_of(struct host *host, const char *path, const struct call *placed)
{
	const struct store_proof proof = proof_of(path, placed, "stamped");
	struct call call;

	assert_int_equal(prove(host, &call, &proof, 1), 0);
	return call.stamp;
}

/* One number for what is changed in the lock, whichever of the claims it is. */
static void test_stamps(void **state)
{
	struct host *a = open_host(0, server);
	struct store_proof proofs[2];
	struct call first, second, call;
	int64_t stamp;

	place(a, &first, "stamps", 1);
	place(a, &second, "stamps", 2);
	stamp = stamp_of(a, "stamps", &first);
	proofs[0] = proof_of("stamps", &first, NULL);
	proofs[1] = proof_of("stamps", &second, "stamped");
	assert_int_equal(prove(a, &call, proofs, 2), 0);
	assert_true(call.stamp > stamp);
}

/* The key goes from one host to the next, and takes the stamps along. */
static void test_hosts(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, gone, come, all;
	int64_t stamp;

	place(a, &first, "hosts", 1);
	assert_int_equal(first.count, 1);
	assert_true(has_our_key("hosts"));
	place(b, &second, "hosts", 2);
	assert_int_equal(second.count, 2);
	assert_true(is_gate(&second.claims[0]));
	assert_int_equal(second.claims[1].id.number, 2);
	assert_int_equal(second.order, second.claims[1].order);
	send_watch(b, &gone, "hosts", second.first);
	attend(b, &come, "hosts", false);
	assert_int_equal(come.count, 2);
	WAIT_FOR(gone.reads == 1 && strstr(gone.text, "host="));
	assert_int_equal(count_in(a, "hosts"), 1);
	stamp = stamp_of(a, "hosts", &first);
	assert_true(stamp > 0);

	run_for(100);
	assert_int_equal(gone.times | come.changes, 0);
	assert_int_equal(withdraw(a, "hosts", &first), 0);
	WAIT_FOR(gone.times && come.changes);
	assert_int_equal(gone.error, 0);
	assert_true(gone.turn < come.changed_turn);
	assert_int_equal(count_in(b, "hosts"), 1);
	assert_true(has_our_key("hosts"));
	assert_true(stamp_of(b, "hosts", &second) > stamp);
	list(a, &all, "hosts", true);
	assert_true(all.count == 1 && is_gate(&all.claims[0]));

	assert_int_equal(withdraw(b, "hosts", &second), 0);
	WAIT_FOR(*value_of("hosts") == '\0');
	run_for(50);
	assert_int_equal(gone.times, 1);
	assert_int_equal(come.changes, 1);
	list(a, &all, "hosts", true);
	assert_int_equal(all.count, 0);
}

/* Behind a turn stand the others, and then the host's next claims. */
static void test_turns(void **state)
{
	struct host *a, *b;
	struct call claims[3], other, all;

	host_contention.turn_grants = 2;
	a = open_host(0, server);
	b = open_host(1, server);
	for (unsigned i = 0; i < 3; i++)
		place(a, &claims[i], "turns", i + 1);
	assert_int_equal(claims[2].count, 4);
	assert_true(is_gate(&claims[2].claims[2]));
	assert_int_equal(claims[2].claims[3].id.number, 3);
	place(b, &other, "turns", 4);
	assert_int_equal(other.count, 2);

	assert_int_equal(withdraw(a, "turns", &claims[0]), 0);
	run_for(100);
	assert_int_equal(count_in(b, "turns"), 2);
	assert_int_equal(withdraw(a, "turns", &claims[1]), 0);
	WAIT_FOR(count_in(b, "turns") == 1);
	run_for(300);
	list(a, &all, "turns", false);
	assert_true(all.count == 2 && is_gate(&all.claims[0]));
	assert_int_equal(withdraw(b, "turns", &other), 0);
	WAIT_FOR(count_in(a, "turns") == 1);
	assert_int_equal(withdraw(a, "turns", &claims[2]), 0);
}

/* Who has the key is shown, also when that is another one by now, and nobody's key is deleted. */
static void test_other_clients(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, gone;

	redis_cli("SET", redis_key("other"), "one", "NX", "PX", "60000");
	place(a, &first, "other", 1);
	assert_true(first.count == 2 && is_gate(&first.claims[0]));
	send_watch(a, &gone, "other", first.first);
	WAIT_FOR(gone.reads == 1 && strstr(gone.text, "command=one"));
	redis_cli("SET", redis_key("other"), "two", "PX", "60000");
	WAIT_FOR(strstr(gone.text, "command=two"));
	assert_int_equal(gone.times, 0);
	redis_cli("DEL", redis_key("other"));
	WAIT_FOR(gone.times);
	assert_int_equal(gone.error, 0);
	assert_int_equal(count_in(a, "other"), 1);
	assert_true(has_our_key("other"));

	/* In place of ours. */
	redis_cli("SET", redis_key("other"), "three", "PX", "60000");
	assert_int_equal(withdraw(a, "other", &first), 0);
	place(a, &first, "other", 2);
	assert_int_equal(first.count, 2);
	assert_string_equal(value_of("other"), "three");
	redis_cli("DEL", redis_key("other"));
	redis_cli("HSET", redis_key("other"), "id:1", "1");
	run_for(300);
	redis_cli("HGET", redis_key("other"), "id:1");
	assert_int_equal(withdraw(a, "other", &first), 0);
	place(a, &first, "other", 3);
	assert_true(first.count == 2 && is_gate(&first.claims[0]));
	assert_string_equal(redis_cli("HGET", redis_key("other"), "id:1"), "1");
	redis_cli("DEL", redis_key("other"));
	WAIT_FOR(count_in(a, "other") == 1);
}

/* A key that was taken away: the claims that it stood for have gone, and those that wait stay. */
static void test_loss(void **state)
{
	struct host *a, *b;
	struct call first, second, waiting, other, gone, proof, come, all;
	struct store_proof proofs[2];

	host_contention.turn_grants = 2;
	a = open_host(0, server);
	b = open_host(1, server);
	place(a, &other, "kept", 1);
	place(a, &first, "loss", 1);
	place(a, &second, "loss", 2);
	place(a, &waiting, "loss", 3);
	place(b, &all, "loss", 4);
	send_watch(a, &gone, "loss", first.name);
	attend(a, &come, "loss", false);
	assert_int_equal(come.count, 4);
	redis_cli("SET", redis_key("loss"), "stolen", "PX", "60000");
	beat(a);
	assert_string_equal(a->missing, "loss");
	WAIT_FOR(gone.times && come.changes);
	assert_int_equal(gone.error, -EOWNERDEAD);
	list(a, &all, "loss", false);
	assert_int_equal(all.count, 2);
	assert_true(is_gate(&all.claims[0]));
	assert_int_equal(all.claims[1].id.number, 3);
	proofs[0] = proof_of("kept", &other, NULL);
	proofs[1] = proof_of("loss", &second, NULL);
	assert_int_equal(prove(a, &proof, proofs, 1), 0);
	assert_int_equal(prove(a, &proof, proofs, 2), -ENOENT);
	assert_string_equal(proof.text, "loss");

	/* Only that lock is lost, and only once. */
	beat(a);
	assert_string_equal(a->missing, "");
	assert_true(lease_of(a).grants);
	assert_true(has_our_key("kept"));
	assert_int_equal(withdraw(a, "loss", &first), 0);
	assert_int_equal(withdraw(a, "loss", &second), 0);
	assert_string_equal(value_of("loss"), "stolen");
	redis_cli("DEL", redis_key("loss"));
	WAIT_FOR(count_in(a, "loss") == 1 || count_in(b, "loss") == 1);
	assert_true(has_our_key("loss"));
	assert_int_equal(a->changes[STORE_LOST] + b->changes[STORE_LOST], 0);
}

/* What is asked of one lock is done, and answered, in the order of asking, also where the servers
 * have to be asked for the first of it. */
static void test_order(void **state)
{
	struct host *a = open_host(0, server);
	struct store_ops const *ops = a->store->ops;
	struct call early[3], first, proved, amended = {0}, listed = {0}, gone, withdrawn = {0};
	struct call next;
	struct store_proof proof;

	for (unsigned i = 0; i < 3; i++)
		send_place(a, &early[i], "early", i, CLAIM_EXCLUSIVE, true);
	ops->list(a->store, &listed, "early", false, false);
	WAIT_FOR(listed.times);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(early[i].error, 0);
		assert_int_equal(early[i].turn, i);
	}
	assert_int_equal(listed.turn, 3);
	assert_int_equal(listed.count, 3);

	place(a, &first, "ordered", 1);
	memset(&listed, 0, sizeof(listed));
	proof = proof_of("ordered", &first, "proved");
	proof.version = ops->first_version;
	send_prove(a, &proved, &proof, 1);
	ops->amend(a->store, &amended, "ordered", first.name, "amended", ops->first_version + 1);
	ops->list(a->store, &listed, "ordered", true, false);
	send_watch(a, &gone, "ordered", first.name);
	ops->withdraw(a->store, nobody_is_told(), &withdrawn, "ordered", first.name, first.order,
		      false);
	send_place(a, &next, "ordered", 2, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(next.times);
	assert_int_equal(proved.error | amended.error | listed.error | withdrawn.error | next.error,
			 0);
	assert_true(proved.stamp > 0);
	assert_int_equal(listed.count, 1);
	assert_string_equal(gone.text, "amended");
	assert_true(proved.turn < amended.turn && amended.turn < listed.turn);
	assert_true(listed.turn < withdrawn.turn && withdrawn.turn < next.turn);
	WAIT_FOR(gone.times);
	assert_int_equal(next.claims[next.count - 1].id.number, 2);
	run_for(50);
	assert_int_equal(proved.times + amended.times + listed.times + withdrawn.times + next.times,
			 5);
}

/* Each lock has a key of its own, which others write as the lock is called. */
static void test_names(void **state)
{
	static const char plain[] = " \n\t%*?[]{}\\\"'$:\xff\x80\x01";
	static struct call calls[256];
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call all, answer = {0};
	char name[300];

	for (int byte = 1; byte < 256; byte++) {
		snprintf(name, sizeof(name), "n/%c", byte);
		if (byte != '/')
			send_place(a, &calls[byte], name, (uint32_t)byte, CLAIM_EXCLUSIVE, true);
	}
	WAIT_FOR(calls[255].times);
	for (const char *at = plain; *at; at++) {
		snprintf(name, sizeof(name), "n/%c", *at);
		assert_true(has_our_key(name));
	}
	for (int byte = 1; byte < 256; byte += 2) {
		snprintf(name, sizeof(name), "n/%c", byte);
		if (byte != '/')
			a->store->ops->withdraw(a->store, nobody_is_told(), &answer, name,
						calls[byte].name, calls[byte].order, false);
	}
	WAIT_FOR(answer.times == 127);
	beat(a); /* behind what was given back */
	for (int byte = 1; byte < 256; byte++) {
		snprintf(name, sizeof(name), "n/%c", byte);
		if (byte == '/')
			continue;
		list(b, &all, name, true);
		assert_int_equal(all.error, 0);
		assert_int_equal(all.count, byte % 2 == 0);
	}

	strcpy(name, "n/");
	for (int i = 0; i < 255; i++)
		name[2 + i] = (char)(i % 2 ? 0xff : 1);
	name[257] = '\0';
	place(a, &all, name, 1);
	assert_true(has_our_key(name));
	name[256] = 2;
	list(b, &all, name, true);
	assert_int_equal(all.count, 0);
}

/* What stands beside a key has the name of no lock. */
static void test_beside(void **state)
{
	static const char *const paths[] = {"beside", "beside/stamps", "beside/released",
					    "beside//stamps/", "beside//released/"};
	enum { PATHS = sizeof(paths) / sizeof(*paths) };
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call calls[PATHS], waiting;
	int64_t stamp;

	for (int i = 0; i < PATHS; i++)
		place(a, &calls[i], paths[i], 1);
	place(b, &waiting, "beside", 2); /* and listens */
	stamp = stamp_of(a, "beside", &calls[0]);
	for (int i = 0; i < PATHS; i++) {
		assert_true(has_our_key(paths[i]));
		assert_int_equal(stamp_of(a, paths[i], &calls[i]), i == 0 ? stamp + 1 : 1);
	}
	for (int i = 1; i < PATHS; i++)
		assert_int_equal(withdraw(a, paths[i], &calls[i]), 0);
	run_for(300);
	assert_int_equal(count_in(b, "beside"), 2);
	assert_int_equal(stamp_of(a, "beside", &calls[0]), stamp + 2);
}

/* As many keys as a busy host may have: all are renewed by one heartbeat, and given back at its
 * end.
 */
static void test_many(void **state)
{
	enum { MANY = 2000 };
	static struct call calls[MANY];
	struct host *a, *b;
	char name[32];
	struct call all;
	int64_t begin_ms;

	host_timeout_ms = 10 * TIMEOUT_MS; /* close() may be too short for a busy server */
	a = open_host(0, server);
	b = open_host(1, server);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		send_place(a, &calls[i], name, 1, CLAIM_EXCLUSIVE, true);
	}
	WAIT_FOR(a->events == MANY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(calls[i].error, 0);
	begin_ms = clock_now_ms();
	beat(a);
	assert_string_equal(a->missing, "");
	assert_true(lease_of(a).proven_ms >= begin_ms);
	list(b, &all, name, true);
	assert_true(all.count == 1 && is_gate(&all.claims[0]));
	begin_ms = now_ms();
	close_host(a);
	do
		list(b, &all, name, true);
	while (all.count > 0 && now_ms() - begin_ms < DEADLINE_MS);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		list(b, &all, name, true);
		assert_int_equal(all.error, 0);
		assert_int_equal(all.count, 0);
	}
}

static int after(void **state)
{
	host_timeout_ms = KEPT_MS;
	host_contention.turn_grants = 1000000;
	return close_hosts(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_stamps, after),
		cmocka_unit_test_teardown(test_hosts, after),
		cmocka_unit_test_teardown(test_turns, after),
		cmocka_unit_test_teardown(test_other_clients, after),
		cmocka_unit_test_teardown(test_loss, after),
		cmocka_unit_test_teardown(test_order, after),
		cmocka_unit_test_teardown(test_names, after),
		cmocka_unit_test_teardown(test_beside, after),
		cmocka_unit_test_teardown(test_many, after),
	};

	host_timeout_ms = KEPT_MS;
	begin_tests(argc, argv, STORE_SCHEME_REDIS);
	return end_tests(cmocka_run_group_tests_name("redis_lock", tests, NULL, NULL));
}
