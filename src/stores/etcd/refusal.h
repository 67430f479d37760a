/* SPDX-License-Identifier: Apache-2.0
 *
 * What a status of a server of etcd, and its text, mean for who has asked. Several of etcd's errors
 * have one status, so their texts tell them apart.
 *
 * Pure; any thread.
 */
#ifndef DLOCKFS_STORES_ETCD_REFUSAL_H
#define DLOCKFS_STORES_ETCD_REFUSAL_H

#include <stdbool.h>

enum etcd_meaning {
	ETCD_DONE,	  /* no refusal */
	ETCD_IN_DOUBT,	  /* nothing is decided, and the request may be carried out yet; or another
			     member can do it. To be asked on another connection */
	ETCD_STRANGER,	  /* not carried out: the server wants to be told who asks, once more */
	ETCD_DENIED,	  /* not carried out: who asks may not do that */
	ETCD_BUSY,	  /* not carried out: too much is under way */
	ETCD_FULL,	  /* there is no space left; may have been carried out (place.c) */
	ETCD_LONG,	  /* the answer is too long; may have been carried out */
	ETCD_TOO_LARGE,	  /* not carried out: the servers take no request as long as that */
	ETCD_WRONG,	  /* not carried out, and never will be */
	ETCD_LEASE_GONE,  /* not carried out: there is no such lease */
	ETCD_LEASE_TAKEN, /* not carried out: there is a lease of that number */
	ETCD_NO_USERS,	  /* the servers take everybody, and need not be told who asks */
};

/* `status` is one of gRPC's (grpc.h). To a host that is asked who it is, and has no user, that
 * means ETCD_DENIED, not ETCD_STRANGER. */
enum etcd_meaning etcd_refusal_meaning(int status, const char *text, bool has_user);

#endif
