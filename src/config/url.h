/* SPDX-License-Identifier: Apache-2.0
 *
 * The address of a store, as written after --store and `url =`:
 *
 *     local:                                        this process only
 *     zookeeper://host[:port][,host[:port]...]/path an ensemble and the znode that holds the locks
 *
 * IPv6 hosts stand in brackets. The port is 2181 unless given. The path may be left out: then it is
 * /dlockfs; "/" alone is the server's root. Its names must be ones that znode_path_encode() leaves
 * as they are.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_CONFIG_URL_H
#define DLOCKFS_CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

/* What an address begins with, up to the colon. */
#define STORE_SCHEME_LOCAL     "local"
#define STORE_SCHEME_ZOOKEEPER "zookeeper"

struct store_url {
	const char *scheme; /* one of these */
	char *servers; /* "host:port,host:port" as zookeeper_init() takes it, which resolves an IPv6
			* address only without its brackets: "::1:2181"; NULL for local */
	char *root; /* "/path" without a trailing slash, "" for the server's root; NULL for local */
};

/* Returns 0 and fills *ret, which store_url_finish() frees; or -EINVAL and one line in `why` that
 * says what is wrong and what would be right; or -ENOMEM. */
int store_url_parse(const char *text, struct store_url *ret, char *why, size_t why_bytes);

/* Whether both mean the same store. */
bool store_url_equal(const struct store_url *a, const struct store_url *b);

/* Frees what store_url_parse() filled in. A zeroed struct is fine. */
void store_url_finish(struct store_url *url);

#endif
