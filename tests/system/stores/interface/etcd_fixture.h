/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture of tests of stores, with what tests of the etcd store alone use besides: etcdctl, for
 * what other clients and operators do.
 */
#ifndef DLOCKFS_ETCD_FIXTURE_H
#define DLOCKFS_ETCD_FIXTURE_H

#include "store_fixture.h"

#include "stores/etcd/state.h"
#include "stores/etcd/store.h"

/* Runs etcdctl, with that on its standard input, and the words up to NULL. It has to end well,
 * unless etcdctl_may_fail. Returns what it printed, until the next call. */
const char *etcdctl_with(const char *input, size_t bytes, const char *const *words);
#define ETCDCTL_WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define etcdctl(...)	   etcdctl_with("", 0, ETCDCTL_WORDS(__VA_ARGS__))

extern bool etcdctl_may_fail;

/* The key of a lock, or of what stands below it. */
const char *key_of(const char *path);

/* A lease of another client, in the form of etcdctl. Until the next call. */
const char *grant_lease(const char *seconds);

bool is_connected_by(struct host *host, const char *address);

/* A host that knows the server, and the proxy in front of it, and is connected by that one. */
struct host *open_host_by_proxy(int i);

#endif
