/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files in the ZooKeeper store, as far as that is its own: the quorum's log, znodes that are
 * no directories or no files, rights, and what ZooKeeper cannot check by itself.
 */
#include <unistd.h>

#include "store_asker.h"
#include "zookeeper_fixture.h"

/* Answers of the server go through here (ld --wrap). Before the next transaction is sent, the znode
 * changes its owner: */
static const char *stolen;

int __real_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t completion, const void *data);
int __wrap_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t completion, const void *data);

int __wrap_zoo_amulti(zhandle_t *handle, int count, const zoo_op_t *ops, zoo_op_result_t *results,
		      void_completion_t completion, const void *data)
{
	const char *steal = stolen;

	stolen = NULL;
	if (steal) {
		assert_int_equal(zoo_delete(raw, znode(steal), -1), ZOK);
		assert_int_equal(zoo_create(raw, znode(steal), "", 0, &ZOO_OPEN_ACL_UNSAFE,
					    ZOO_EPHEMERAL, NULL, 0),
				 ZOK);
	}
	return __real_zoo_amulti(handle, count, ops, results, completion, data);
}

/* What checks a file goes through the quorum's log, as does what changes nothing. */
static void test_log(void **state)
{
	struct host *a = open_host(0, server);
	struct Stat before, after;

	assert_int_equal(step(a, STEP_MAKE, "log//f", "text"), 0);
	assert_int_equal(zoo_exists(raw, znode("log/f"), 0, &before), ZOK);
	assert_int_equal(step(a, STEP_CHECK, "log//f", "text"), 0);
	assert_int_equal(step(a, STEP_CHECK, "log//none", "text"), -ENOENT);
	assert_int_equal(alter(a, NULL, 0), 0);
	assert_int_equal(step(a, STEP_MAKE, "log//g", "text"), 0);
	assert_int_equal(zoo_exists(raw, znode("log/g"), 0, &after), ZOK);
	assert_true(after.czxid >= before.czxid + 4);
	assert_true(before.ephemeralOwner == a->store->ops->session(a->store));
}

static void test_no_directory(void **state)
{
	struct host *a = open_host(0, server);

	assert_int_equal(step(a, STEP_MAKE, "none//f", "text"), 0);
	assert_int_equal(step(a, STEP_MAKE, "none/f//g", "text"), -ENOTDIR);
	assert_int_equal(step(a, STEP_TAKE, "none/f//g", "text"), -ENOTDIR);
	assert_int_equal(step(a, STEP_MAKE, "none/f/deep/er//g", "text"), -ENOTDIR);

	/* And what is no file. */
	assert_int_equal(
		zoo_create(raw, znode("none/kept"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
	assert_int_equal(
		zoo_create(raw, znode("none/kept/x"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
		ZOK);
	assert_int_equal(step(a, STEP_MAKE, "none//kept", "text"), -EEXIST);
	assert_int_equal(step(a, STEP_TAKE, "none//kept", "text"), -EEXIST);
	assert_int_equal(step(a, STEP_REMOVE, "none//kept", "text"), -EEXIST);
}

/* What is above may not be used: what is missing there is not made, what is there is used. */
static void test_rights(void **state)
{
	struct host *a = open_host(0, server);
	struct ACL none[] = {{ZOO_PERM_READ | ZOO_PERM_ADMIN, ZOO_ANYONE_ID_UNSAFE}};
	struct ACL_vector acl = {1, none};
	const struct store_step steps[] = {
		{STEP_MAKE, "rights/open/1//f", "", 0},
		{STEP_MAKE, "rights/open/2//f", "", 0},
	};

	assert_int_equal(step(a, STEP_MAKE, "rights/open//f", "text"), 0);
	assert_int_equal(zoo_set_acl(raw, znode("rights"), -1, &acl), ZOK);
	assert_int_equal(alter(a, steps, 2), 0);
	assert_int_equal(step(a, STEP_MAKE, "rights/new//f", "text"), -EACCES);
	assert_int_equal(step(a, STEP_MAKE, "rights//f", "text"), -EACCES);
	assert_int_equal(zoo_set_acl(raw, znode("rights"), -1, &ZOO_OPEN_ACL_UNSAFE), ZOK);
	assert_int_equal(step(a, STEP_MAKE, "rights/new//f", "text"), 0);
}

/* A file that is taken between the look at its owner and the transaction: whether the other steps
 * were done is to be found out. */
static void test_stolen(void **state)
{
	struct host *a = open_host(0, server);
	const struct store_step steps[] = {
		{STEP_CHECK, "stolen//f", NULL, 0},
		{STEP_MAKE, "stolen//g", "", 0},
	};

	assert_int_equal(step(a, STEP_MAKE, "stolen//f", "text"), 0);
	stolen = "stolen/f";
	assert_int_equal(step(a, STEP_CHECK, "stolen//f", "text"), -ENOENT);
	assert_int_equal(step(a, STEP_TAKE, "stolen//f", "text"), 0);
	stolen = "stolen/f";
	assert_int_equal(alter(a, steps, 2), -ECONNRESET);
	assert_int_equal(alter(a, steps, 2), -ENOENT);
}

/* What was answered in a session that is given up proves nothing of the next one. */
static void test_former_session(void **state)
{
	struct host *a = open_host(0, server);
	struct asker asker;

	assert_int_equal(step(a, STEP_MAKE, "former//other", "text"), 0);
	send_step(a, &asker, STEP_MAKE, "former//f", "");
	usleep(300000); /* the answer comes, and is not delivered */
	a->session = STORE_LOST;
	a->store->ops->renew(a->store, nobody_is_told());
	a->renewals = 0;
	WAIT_FOR(asker.times);
	assert_int_equal(asker.error, -ECONNRESET);
	WAIT_FOR(a->session == STORE_CONNECTED);
	assert_int_equal(a->renewals, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_log, close_hosts),
		cmocka_unit_test_teardown(test_no_directory, close_hosts),
		cmocka_unit_test_teardown(test_rights, close_hosts),
		cmocka_unit_test_teardown(test_stolen, close_hosts),
		cmocka_unit_test_teardown(test_former_session, close_hosts),
	};

	begin_tests(argc, argv, STORE_SCHEME_ZOOKEEPER);
	return end_tests(cmocka_run_group_tests_name("zookeeper_file", tests, NULL, NULL));
}
