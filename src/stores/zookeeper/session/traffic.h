/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes between ZooKeeper's client library and the servers. Without TLS the library sends by
 * send(2) and receives by recv(2); this program has functions of its own of these names, as it has
 * a connect(2) (socket.h), which call the C library's and show a wire (wire.h) what has passed.
 * What the library would not survive it does not get: recv(2) fails with EPROTO, which makes it
 * close the connection, and a line in the log says what was wrong, not again and again. With TLS
 * the library has the bytes from OpenSSL, of a server that has shown its certificate, and nothing
 * is checked here.
 *
 * The library sends and receives on one thread of each handle, on which it connects, too. All that
 * is kept is that thread's, and goes with it.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_TRAFFIC_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_TRAFFIC_H

#include <stdbool.h>
#include <sys/socket.h>

/* From now on the calling thread speaks with this server by this descriptor; what it knew of
 * another one is forgotten. Returns false when out of memory. */
bool zookeeper_traffic_begin(int descriptor, const struct sockaddr_storage *server);

#endif
