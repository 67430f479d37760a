/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs that measure ZooKeeper itself share: a client that is connected. What fails
 * ends the program with a message.
 */
#ifndef BENCH_CLIENT_H
#define BENCH_CLIENT_H

#include <zookeeper/zookeeper.h>

/* Ends the program unless the code of ZooKeeper's client is ZOK. `what` failed. */
void client_check(int code, const char *what);

/* Waits until the client is connected, for 30 seconds at most, and that the node `path` is there.
 * The caller closes it. */
zhandle_t *client_connect(const char *servers, const char *path);

#endif
