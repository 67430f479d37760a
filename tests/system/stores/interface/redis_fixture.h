/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture of tests of stores, with what tests of the Redis store alone use besides: redis-cli,
 * for what other clients do.
 */
#ifndef DLOCKFS_REDIS_FIXTURE_H
#define DLOCKFS_REDIS_FIXTURE_H

#include "store_fixture.h"

/* A session timeout after which nothing ends while a test waits for it. */
#define KEPT_MS (3 * DEADLINE_MS)

/* Runs redis-cli with the words up to NULL. Returns what it printed, without the end of its last
 * line, until the next call. */
const char *redis_cli_with(const char *const *words);
#define redis_cli(...) redis_cli_with((const char *const[]){__VA_ARGS__, NULL})

/* The key of a lock, as anybody would write it. Until the next call. */
const char *redis_key(const char *path);

/* Its value, "" if there is none. Until the next call. */
const char *value_of(const char *path);

/* Whether the value is one of dlockfs. */
bool has_our_key(const char *path);

/* The queue as the host sees it, without asking the servers. */
size_t count_in(struct host *host, const char *path);

/* Whether the claim is a gate: it stands for whoever has the key elsewhere. */
bool is_gate(const struct claim_name *claim);

#endif
