/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the handles of ZooKeeper's client library. The library has a function for each kind of
 * connection, but not all of them in every build: Debian 12's has neither TLS nor SASL
 * (HAVE_ZOOKEEPER_TLS, HAVE_ZOOKEEPER_SASL). The functions may block; any thread, one at a time for
 * each struct zookeeper_client.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_CLIENT_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_CLIENT_H

#include <stdbool.h>

#include <zookeeper/zookeeper.h>

#include "config/access.h"

struct zookeeper_client;

/* `access` must stay as it is until zookeeper_client_destroy(). Returns 0 and *ret; or -ENOMEM, or
 * -EIO if the library for SASL cannot be used. */
int zookeeper_client_create(const struct store_access *access, struct zookeeper_client **ret);

/* Begins to connect: by TLS or with SASL if `access` says so. The other parameters are those of
 * zookeeper_init2(). Returns NULL with errno set. The client must stay until the handle is closed.
 */
zhandle_t *zookeeper_client_open(struct zookeeper_client *client, const char *servers,
				 watcher_fn watcher, int timeout_ms, const clientid_t *id,
				 void *context);

/* Reads the files for TLS, with the rights of this process. Returns whether they can be used; else
 * with one line in `why`. With HAVE_ZOOKEEPER_TLS. */
bool zookeeper_client_check(const struct store_access *access, char *why, size_t why_bytes);

/* Wipes the secrets. NULL is fine. */
void zookeeper_client_destroy(struct zookeeper_client *client);

#endif
