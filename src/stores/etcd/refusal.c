/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the table of what servers of etcd answer: api/v3rpc/rpctypes/error.go of etcd 3.4 to 3.7;
 * and those errors of server/auth, server/lease and raft that api/v3rpc/util.go does not translate,
 * which come with the status "unknown" and the text that they have inside.
 */
#include "stores/etcd/refusal.h"

#include <stddef.h>
#include <string.h>

#include "stores/etcd/grpc/grpc.h"

/* The first row that fits counts. What no row has is in doubt, as what the connection makes of its
 * own end. */
static const struct {
	int status;
	const char *text; /* is part of it; NULL: any */
	enum etcd_meaning meaning;
} refusals[] = {
	{GRPC_OK, NULL, ETCD_DONE},

	/* A token of an earlier revision: with jwt after each change of users and roles, with
	 * simple ones if the change comes in between (authStore.isOpPermitted,
	 * EtcdServer.doSerialize). */
	{GRPC_INVALID_ARGUMENT, "revision of auth store is old", ETCD_STRANGER},
	/* No token, as when users are made to count while a host is connected. */
	{GRPC_INVALID_ARGUMENT, "user name is empty", ETCD_STRANGER},
	/* A token that has expired, is of a user who was changed, or was given by a server that has
	 * been started anew (authStore.AuthInfoFromCtx). */
	{GRPC_UNAUTHENTICATED, NULL, ETCD_STRANGER},
	{GRPC_FAILED_PRECONDITION, "authentication is not enabled", ETCD_NO_USERS},
	{GRPC_INVALID_ARGUMENT, "authentication failed", ETCD_DENIED},
	{GRPC_INVALID_ARGUMENT, "invalid auth management", ETCD_DENIED},
	{GRPC_FAILED_PRECONDITION, "user name not found", ETCD_DENIED},
	{GRPC_PERMISSION_DENIED, NULL, ETCD_DENIED},
	/* "password was given for no password user", "token signing attempted with verify-only key"
	 */
	{GRPC_UNKNOWN, "auth: ", ETCD_DENIED},

	{GRPC_NOT_FOUND, "requested lease not found", ETCD_LEASE_GONE},
	{GRPC_FAILED_PRECONDITION, "lease already exists", ETCD_LEASE_TAKEN},
	/* A member that leads no more, and does not know who does (EtcdServer.LeaseRenew). */
	{GRPC_UNKNOWN, "not a primary lessor", ETCD_IN_DOUBT},

	{GRPC_RESOURCE_EXHAUSTED, "database space exceeded", ETCD_FULL},
	{GRPC_RESOURCE_EXHAUSTED, "too many requests", ETCD_BUSY},
	/* --max-request-bytes, and gRPC's own limit of the server, which is a little above. */
	{GRPC_INVALID_ARGUMENT, "request is too large", ETCD_TOO_LARGE},
	{GRPC_RESOURCE_EXHAUSTED, "received message larger than max", ETCD_TOO_LARGE},
	{GRPC_RESOURCE_EXHAUSTED, NULL, ETCD_LONG}, /* call.c */

	/* "raft proposal dropped", as while the leader hands over to another member; "raft:
	 * stopped"
	 */
	{GRPC_UNKNOWN, "raft", ETCD_IN_DOUBT},
	{GRPC_FAILED_PRECONDITION, "not leader", ETCD_IN_DOUBT},
	{GRPC_FAILED_PRECONDITION, "rpc not supported for learner", ETCD_IN_DOUBT},

	{GRPC_INVALID_ARGUMENT, NULL, ETCD_WRONG},
	{GRPC_OUT_OF_RANGE, NULL, ETCD_WRONG},
	{GRPC_FAILED_PRECONDITION, NULL, ETCD_WRONG},
	{GRPC_UNKNOWN, NULL, ETCD_WRONG},
};

static enum etcd_meaning find(int status, const char *text)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		if (refusals[i].status == status &&
		    (refusals[i].text == NULL || strstr(text, refusals[i].text) != NULL))
			return refusals[i].meaning;
	}
	return ETCD_IN_DOUBT;
}

enum etcd_meaning etcd_refusal_meaning(int status, const char *text, bool has_user)
{
	enum etcd_meaning meaning = find(status, text);

	return meaning == ETCD_STRANGER && !has_user ? ETCD_DENIED : meaning;
}
