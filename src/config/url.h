/* SPDX-License-Identifier: Apache-2.0
 *
 * The address of a store, as written after --store and `url =`:
 *
 *     local:                                        this process only
 *     zookeeper://host[:port][,host[:port]...]/path an ensemble and the znode that holds the locks
 *     etcd://host[:port][,host[:port]...]/path      a cluster, and what its keys of locks begin
 * with
 *     redis://[user:password@]host[:port]/path      a server, and what its keys begin with
 *     redis://[user:password@]host[:port],host[:port][,host[:port]...]/path
 *                                                   servers that do not know each other (Redlock)
 *     redis+sentinel://[user:password@]host[:port][,host[:port]...]/SERVICE/path
 *                                                   a server that Sentinels know
 *     rediss://..., rediss+sentinel://...           the same, by TLS
 *
 * IPv6 hosts stand in brackets. The port is 2181, etcd's 2379, Redis' 6379, a Sentinel's 26379,
 * unless given. User and password may be left out, or one of them; each byte of them may be written
 * as %XX, as those must be that have a meaning in an address. No message has a part of them. The
 * path may be left out: then it is /dlockfs; "/" alone is the server's root, or no prefix. The
 * names in ZooKeeper's path must be ones that znode_path_encode() leaves as they are; those in
 * etcd's and Redis' are printable.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_CONFIG_URL_H
#define DLOCKFS_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/secret.h"

/* What an address begins with, up to the colon. */
#define STORE_SCHEME_LOCAL     "local"
#define STORE_SCHEME_ZOOKEEPER "zookeeper"
#define STORE_SCHEME_ETCD      "etcd"
#define STORE_SCHEME_REDIS     "redis"

/* All of them, as messages and the help show them. */
#define STORE_URL_FORMS                                                                            \
	STORE_SCHEME_LOCAL ":, or " STORE_SCHEME_ZOOKEEPER "://, " STORE_SCHEME_ETCD               \
			   "://, " STORE_SCHEME_REDIS "://, " STORE_SCHEME_REDIS                   \
			   "s:// or " STORE_SCHEME_REDIS                                           \
			   "+sentinel:// with host[:port][,host[:port]...][/path]"

/* Whether this build can use it. */
extern const bool store_url_has_etcd;
extern const bool store_url_has_redis;

struct store_url {
	const char *scheme; /* one of these */
	char *servers; /* "host:port,host:port"; NULL for local. An IPv6 address stands in brackets,
			* as in "[::1]:2379"; but without them for ZooKeeper, whose zookeeper_init()
			* resolves no others: "::1:2181". Of Sentinels the service's name follows,
			* behind a slash */
	char *root; /* "/path" without a trailing slash, "" for the server's root; NULL for local */
	bool has_tls;		 /* the address says that connections are by TLS */
	char *user;		 /* NULL: none is in the address, nor */
	struct secret *password; /* a password */
};

/* Returns 0 and fills *ret, which store_url_finish() frees; or -EINVAL and one line in `why` that
 * says what is wrong and what would be right; or -ENOMEM. */
int store_url_parse(const char *text, struct store_url *ret, char *why, size_t why_bytes);

/* Whether both mean the same store, for whomever and in whatever way. */
bool store_url_equal(const struct store_url *a, const struct store_url *b);

/* Whether the servers are Sentinels. */
bool store_url_has_sentinels(const struct store_url *url);

/* Frees what store_url_parse() filled in. A zeroed struct is fine. */
void store_url_finish(struct store_url *url);

#endif
