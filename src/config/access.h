/* SPDX-License-Identifier: Apache-2.0
 *
 * The identity that the daemon shows to the servers of a store, and what others may do with what it
 * creates there. The keys of [store] fill the struct in, and the stores act on it.
 * store_access_check() knows which store has which member.
 *
 * A zeroed struct is nobody in particular, with everything open. No I/O; any thread.
 */
#ifndef DLOCKFS_CONFIG_ACCESS_H
#define DLOCKFS_CONFIG_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "config/url.h"

enum store_acl {
	STORE_ACL_AUTO,	   /* STORE_ACL_CREATOR if the daemon shows an identity, else open */
	STORE_ACL_OPEN,	   /* anybody may do anything */
	STORE_ACL_CREATOR, /* clients of the creator's identity may do anything, others may read */
	STORE_ACL_PRIVATE, /* clients of the creator's identity may do anything, others nothing */
};

/* A secret and the file that it was read from; both NULL: none. */
struct secret_file {
	char *file; /* first */
	struct secret *secret;
};

struct store_access {
	int64_t acl; /* enum store_acl */
	struct secret_file digest;
	/* NULL stands for nothing in all that follows. Names of files: */
	char *tls_ca; /* the connection is by TLS if there is one */
	char *tls_certificate;
	char *tls_key;
	struct secret_file tls_password; /* of the key */
	/* The connection begins with SASL if there is a mechanism. */
	char *sasl_mechanism;
	char *sasl_user;
	struct secret_file sasl_password;
	char *sasl_realm;
	char *sasl_service;
	char *sasl_host;
	char *user; /* of etcd, and its password: as `etcdctl --user` */
	struct secret_file password;
	char *redis_user; /* and its password; without a user that of the default user */
	struct secret_file redis_password;
	char *sentinel_user; /* likewise, of Sentinels */
	struct secret_file sentinel_password;
};

/* Copies into *ret, for store_access_finish(). Returns 0 or -ENOMEM. */
int store_access_copy(struct store_access *ret, const struct store_access *access);

/* Frees and wipes what it owns. */
void store_access_finish(struct store_access *access);

/* Whether ZooKeeper's servers are told who the daemon is. */
bool store_access_has_identity(const struct store_access *access);

/* The value that counts, never STORE_ACL_AUTO. */
enum store_acl store_access_acl(const struct store_access *access);

/* Whether the keys go together, and with the address of the store. STORE_SCHEME_LOCAL, which the
 * store has until an url is given, takes what any other scheme takes. Returns true; or false,
 * with one line in `why` (what is wrong, and what is expected), and in *ret_key the key that is to
 * be taken out, NULL if it is one of several. */
bool store_access_check(const struct store_access *access, const struct store_url *url,
			const char **ret_key, char *why, size_t why_bytes);

/* Keeps the secrets from the swap in a child of fork(2) too: secret_lock(). */
void store_access_lock(const struct store_access *access);

#endif
