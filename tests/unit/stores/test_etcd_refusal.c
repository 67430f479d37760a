/* SPDX-License-Identifier: Apache-2.0
 *
 * What etcd's errors mean: all of api/v3rpc/rpctypes/error.go that those who are no administrators
 * can get.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stores/etcd/grpc/grpc.h"
#include "stores/etcd/refusal.h"

static const struct {
	int status;
	const char *text;
	enum etcd_meaning meaning;
} errors[] = {
	{GRPC_INVALID_ARGUMENT, "etcdserver: key is not provided", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: key not found", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: value is provided", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: lease is provided", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: too many operations in txn request", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: invalid client api version", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: invalid sort option", ETCD_WRONG},
	{GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted", ETCD_WRONG},
	{GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision", ETCD_WRONG},
	{GRPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", ETCD_FULL},
	{GRPC_NOT_FOUND, "etcdserver: requested lease not found", ETCD_LEASE_GONE},
	{GRPC_FAILED_PRECONDITION, "etcdserver: lease already exists", ETCD_LEASE_TAKEN},
	{GRPC_OUT_OF_RANGE, "etcdserver: too large lease TTL", ETCD_WRONG},
	{GRPC_CANCELLED, "etcdserver: watch canceled", ETCD_IN_DOUBT},
	{GRPC_FAILED_PRECONDITION, "etcdserver: cluster ID mismatch", ETCD_WRONG},
	{GRPC_INVALID_ARGUMENT, "etcdserver: request is too large", ETCD_TOO_LARGE},
	{GRPC_RESOURCE_EXHAUSTED, "etcdserver: too many requests", ETCD_BUSY},
	{GRPC_INVALID_ARGUMENT, "etcdserver: user name is empty", ETCD_STRANGER},
	{GRPC_FAILED_PRECONDITION, "etcdserver: user name not found", ETCD_DENIED},
	{GRPC_INVALID_ARGUMENT, "etcdserver: authentication failed, invalid user ID or password",
	 ETCD_DENIED},
	{GRPC_PERMISSION_DENIED, "etcdserver: permission denied", ETCD_DENIED},
	{GRPC_FAILED_PRECONDITION, "etcdserver: authentication is not enabled", ETCD_NO_USERS},
	{GRPC_UNAUTHENTICATED, "etcdserver: invalid auth token", ETCD_STRANGER},
	{GRPC_INVALID_ARGUMENT, "etcdserver: invalid auth management", ETCD_DENIED},
	{GRPC_INVALID_ARGUMENT, "etcdserver: revision of auth store is old", ETCD_STRANGER},
	{GRPC_UNAVAILABLE, "etcdserver: no leader", ETCD_IN_DOUBT},
	{GRPC_FAILED_PRECONDITION, "etcdserver: not leader", ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "etcdserver: leader changed", ETCD_IN_DOUBT},
	{GRPC_FAILED_PRECONDITION, "etcdserver: not capable", ETCD_WRONG},
	{GRPC_UNAVAILABLE, "etcdserver: server stopped", ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "etcdserver: request timed out", ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "etcdserver: request timed out, possibly due to previous leader failure",
	 ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost",
	 ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE,
	 "etcdserver: request timed out, waiting for the applied index took too long",
	 ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "etcdserver: unhealthy cluster", ETCD_IN_DOUBT},
	{15, "etcdserver: corrupt cluster", ETCD_IN_DOUBT},
	{GRPC_FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", ETCD_IN_DOUBT},
	{GRPC_CANCELLED, "etcdserver: request canceled", ETCD_IN_DOUBT},
	{GRPC_DEADLINE_EXCEEDED, "etcdserver: context deadline exceeded", ETCD_IN_DOUBT},
	/* Of earlier versions. */
	{GRPC_UNAVAILABLE, "etcdserver: not capable", ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "etcdserver: rpc not supported for learner", ETCD_IN_DOUBT},
	/* What api/v3rpc/util.go does not translate. */
	{GRPC_UNKNOWN, "raft proposal dropped", ETCD_IN_DOUBT},
	{GRPC_UNKNOWN, "raft: stopped", ETCD_IN_DOUBT},
	{GRPC_UNKNOWN, "not a primary lessor", ETCD_IN_DOUBT},
	{GRPC_UNKNOWN, "auth: authentication failed, password was given for no password user",
	 ETCD_DENIED},
	{GRPC_UNKNOWN, "auth: token signing attempted with verify-only key", ETCD_DENIED},
	{GRPC_UNKNOWN, "what nobody knows", ETCD_WRONG},
	/* Of gRPC. */
	{GRPC_RESOURCE_EXHAUSTED, "the answer has 70000000 bytes, expected at most 67108864",
	 ETCD_LONG},
	{GRPC_UNIMPLEMENTED, "unknown service etcdserverpb.KV", ETCD_IN_DOUBT},
	{GRPC_INTERNAL, "the answer has no status", ETCD_IN_DOUBT},
	{GRPC_UNAVAILABLE, "", ETCD_IN_DOUBT},
	{GRPC_UNAUTHENTICATED, "HTTP status 401, expected 200", ETCD_STRANGER},
	{99, "", ETCD_IN_DOUBT},
	{GRPC_OK, "", ETCD_DONE},
};

static void test_meanings(void **state)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		enum etcd_meaning found =
			etcd_refusal_meaning(errors[i].status, errors[i].text, true);

		if (found != errors[i].meaning)
			fail_msg("%d %s: expected %d, found %d", errors[i].status, errors[i].text,
				 (int)errors[i].meaning, (int)found);
	}
}

/* Who has no user cannot say who it is. */
static void test_nobody(void **state)
{
	assert_int_equal(etcd_refusal_meaning(GRPC_INVALID_ARGUMENT,
					      "etcdserver: user name is empty", false),
			 ETCD_DENIED);
	assert_int_equal(etcd_refusal_meaning(GRPC_UNAUTHENTICATED, "", false), ETCD_DENIED);
	assert_int_equal(etcd_refusal_meaning(GRPC_UNAVAILABLE, "", false), ETCD_IN_DOUBT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
