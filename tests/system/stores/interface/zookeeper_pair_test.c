/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of two znodes in the ZooKeeper store: they come and go as one, whatever becomes of the
 * connection, and a half is told as what it is.
 */
#include "zookeeper_fixture.h"

static void send_place_pair(struct host *host, struct call *call, const char *path, uint32_t number,
			    enum claim_mode mode)
{
	struct claim_name name = claim_of(number, mode);

	memset(call, 0, sizeof(*call));
	name.recipe = CLAIM_CURATOR_ANY;
	host->store->ops->place(host->store, call, path, &name, "", true, NULL);
}

static void place_pair(struct host *host, struct call *call, const char *path, uint32_t number,
		       enum claim_mode mode)
{
	send_place_pair(host, call, path, number, mode);
	WAIT_FOR(call->times);
	assert_int_equal(call->error, 0);
}

static size_t count_znodes(const char *path)
{
	struct String_vector children;
	size_t count;
	int code = zoo_get_children(raw, znode(path), 0, &children);

	if (code == ZNONODE)
		return 0;
	assert_int_equal(code, ZOK);
	count = (size_t)children.count;
	deallocate_String_vector(&children);
	return count;
}

/* The name of a placed claim's companion, below its lock. */
static const char *companion_of(const char *path, const struct call *placed)
{
	static char text[512];
	struct claim_name name;
	char companion[CLAIM_NAME_BYTES];

	assert_true(claim_name_parse(placed->name, &name));
	name = claim_name_companion(&name);
	claim_name_format_placed(companion, &name);
	snprintf(text, sizeof(text), "%s/%s", path, companion);
	return text;
}

static int prove_one(struct host *host, const char *path, const struct call *placed)
{
	struct store_proof proof = {path, placed->name, NULL, 0};
	struct call call = {0};

	host->store->ops->prove(host->store, &call, &proof, 1);
	WAIT_FOR(call.times);
	return call.error;
}

/* Also where the znodes above have to be made, and beside claims of one znode. */
static void test_one_claim(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, single, second, all;

	place_pair(a, &first, "pair/of/znodes", 1, CLAIM_SHARED);
	assert_int_equal(first.order, 1);
	assert_non_null(strstr(first.name, "-any-__READ__0000000001"));
	assert_int_equal(first.count, 1);
	assert_false(first.claims[0].companion);
	place(b, &single, "pair/of/znodes", 1);
	place_pair(b, &second, "pair/of/znodes", 2, CLAIM_EXCLUSIVE);
	assert_int_equal(second.order, 4);
	assert_int_equal(count_znodes("pair/of/znodes"), 5);

	list(a, &all, "pair/of/znodes", true);
	assert_int_equal(all.count, 3);
	assert_int_equal(all.claims[0].mode, CLAIM_SHARED);
	assert_int_equal(all.claims[1].order, 2);
	assert_int_equal(all.claims[2].order, 4);
	assert_int_equal(all.halves, 0);
	assert_int_equal(prove_one(a, "pair/of/znodes", &first), 0);
	assert_int_equal(withdraw(a, "pair/of/znodes", &first), 0);
	assert_int_equal(count_znodes("pair/of/znodes"), 3);
	assert_int_equal(withdraw(a, "pair/of/znodes", &first), 0); /* again */
}

struct stand {
	struct store_change change;
	int times, error;
};

static void on_stood(struct store_change *change, int error)
{
	struct stand *stand = (struct stand *)change;

	stand->times++;
	stand->error = error;
}

/* STEP_STAND of a claim whose data were never changed. */
static int stand(struct host *host, const char *path, const struct call *placed)
{
	const struct store_step step = {STEP_STAND, path, placed->name, 0};
	struct stand stand = {.change.done = on_stood};

	assert_int_equal(host->store->ops->alter(host->store, &stand.change, &step, 1), 0);
	WAIT_FOR(stand.times);
	return stand.error;
}

/* Somebody has deleted one of the two: no proof of it, but it can be withdrawn. */
static void test_half(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, second, all;
	char path[512];

	place_pair(a, &first, "half", 1, CLAIM_SHARED);
	place_pair(a, &second, "half", 2, CLAIM_SHARED);
	assert_int_equal(stand(a, "half", &first), 0);
	assert_int_equal(zoo_delete(raw, znode(companion_of("half", &first)), -1), ZOK);
	assert_int_equal(prove_one(a, "half", &first), -ENOENT);
	assert_int_equal(stand(a, "half", &first), -ENOENT);
	list(a, &all, "half", true);
	assert_int_equal(all.count, 2);
	assert_int_equal(all.halves, 1);
	assert_int_equal(all.claims[0].mode, CLAIM_SHARED);

	snprintf(path, sizeof(path), "half/%s", second.name);
	assert_int_equal(zoo_delete(raw, znode(path), -1), ZOK);
	assert_int_equal(prove_one(a, "half", &second), -ENOENT);
	list(a, &all, "half", true);
	assert_int_equal(all.count, 2);
	assert_int_equal(all.halves, 2);
	assert_true(all.claims[1].companion);
	assert_int_equal(all.claims[1].mode, CLAIM_EXCLUSIVE);

	assert_int_equal(count_znodes("half"), 2);
	assert_int_equal(withdraw(a, "half", &first), 0);
	assert_int_equal(withdraw(a, "half", &second), 0);
	assert_int_equal(count_znodes("half"), 0);
}

/* Answers of the server go through here (ld --wrap), and the next one may be told wrong: */
static zoo_op_t *misnumbered; /* the operation of a companion that is being created */
static bool misnumbers;
static void_completion_t completion;
static const void *completion_data;

int __real_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t done, const void *data);
int __wrap_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t done, const void *data);

static void on_misnumbered(int code, const void *data)
{
	char *path = misnumbered->create_op.buf;
	char *digit = path + strlen(path) - 1;

	*digit = *digit == '9' ? '0' : (char)(*digit + 1);
	completion(code, completion_data);
}

int __wrap_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t done, const void *data)
{
	if (!misnumbers)
		return __real_zoo_amulti(handle, count, ops, results, done, data);
	misnumbers = false;
	misnumbered = (zoo_op_t *)ops;
	completion = done;
	completion_data = data;
	return __real_zoo_amulti(handle, count, ops, results, on_misnumbered, NULL);
}

/* The two numbers do not fit each other: nothing is sure but that both znodes stand. */
static void test_misnumbered(void **state)
{
	struct host *a = open_host(0, server);
	struct call first, second, all;

	place_pair(a, &first, "misnumbered", 1, CLAIM_SHARED);
	misnumbers = true;
	send_place_pair(a, &second, "misnumbered", 2, CLAIM_SHARED);
	WAIT_FOR(second.times);
	assert_int_equal(second.error, -ECONNRESET);
	list(a, &all, "misnumbered", true);
	assert_int_equal(all.count, 2);
	assert_int_equal(all.claims[1].id.number, 2);
}

static int removed;

static void on_removed(struct store_change *change, int error)
{
	removed = error;
}

static int remove_claim(struct host *host, const char *path, const char *name)
{
	struct store_change change = {on_removed};

	removed = 1;
	assert_int_equal(host->store->ops->remove(host->store, &change, path, name, 0), 0);
	WAIT_FOR(removed != 1);
	return removed;
}

/* Who steers from outside takes both away, or what is left of them. */
static void test_remove(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call call;

	place_pair(a, &call, "remove", 1, CLAIM_EXCLUSIVE);
	assert_int_equal(remove_claim(b, "remove", call.name), 0);
	assert_int_equal(count_znodes("remove"), 0);
	assert_int_equal(remove_claim(b, "remove", call.name), -ENOENT);

	place_pair(a, &call, "remove", 2, CLAIM_EXCLUSIVE);
	assert_int_equal(zoo_delete(raw, znode(companion_of("remove", &call)), -1), ZOK);
	assert_int_equal(remove_claim(b, "remove", call.name), 0);

	place_pair(a, &call, "remove", 3, CLAIM_EXCLUSIVE);
	assert_int_equal(remove_claim(b, "remove", strchr(companion_of("remove", &call), '/') + 1),
			 0);
	assert_int_equal(remove_claim(b, "remove", call.name), 0);
	assert_int_equal(count_znodes("remove"), 0);
}

/* What was on the way when the connection broke has happened as a whole, or not at all. */
static void test_reconnect(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct call calls[20], all, gone;
	size_t placed;

	place_pair(b, &gone, "broken", 100, CLAIM_EXCLUSIVE);
	for (uint32_t i = 0; i < 20; i++) {
		send_place_pair(b, &calls[i], "broken", i, CLAIM_EXCLUSIVE);
		if (i == 10)
			break_links();
	}
	for (size_t i = 0; i < 20; i++) {
		WAIT_FOR(calls[i].times);
		assert_true(calls[i].error == 0 || calls[i].error == -ECONNRESET);
	}
	WAIT_FOR(b->session == STORE_CONNECTED);
	list(a, &all, "broken", true);
	placed = all.count;
	assert_int_equal(all.halves, 0);
	assert_int_equal(count_znodes("broken"), 2 * placed);

	set_link(LINK_SILENT);
	memset(&all, 0, sizeof(all));
	b->store->ops->withdraw(b->store, nobody_is_told(), &all, "broken", gone.name, gone.order,
				false);
	run_for(50);
	set_link(LINK_REFUSES);
	WAIT_FOR(all.times);
	assert_int_equal(all.error, -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_int_equal(withdraw(b, "broken", &gone), 0);
	assert_int_equal(count_znodes("broken"), 2 * placed - 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_one_claim, close_hosts),
		cmocka_unit_test_teardown(test_half, close_hosts),
		cmocka_unit_test_teardown(test_misnumbered, close_hosts),
		cmocka_unit_test_teardown(test_remove, close_hosts),
		cmocka_unit_test_teardown(test_reconnect, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_pair", tests, NULL, NULL));
}
