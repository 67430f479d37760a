/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of servers for ZooKeeper's client library. May block, for names.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_SERVERS_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_SERVERS_H

#include <stdbool.h>

/* `servers` as people write them: each IPv6 address in brackets, which it has none of in
 * store_url.servers. To be freed; NULL: out of memory. */
char *zookeeper_servers_show(const char *servers);

/* `servers`, "host:port[,host:port...]", with or without brackets of IPv6 addresses, changed so
 * that the library tries each of their addresses, even if a name has several. *several: whether
 * there is more than one. *ret_error: why there is none, as getaddrinfo(3) says it; 0: there is
 * one. Returns NULL when out of memory; else it is to be freed. */
char *zookeeper_servers_list(const char *servers, bool *several, int *ret_error);

#endif
