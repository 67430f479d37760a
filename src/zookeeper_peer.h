/* SPDX-License-Identifier: Apache-2.0
 *
 * Which servers the sessions of this process are connected to, so that the connections of one of
 * them can be broken: the client library does not tell its sockets. Any thread; nothing blocks.
 */
#ifndef DLOCKFS_ZOOKEEPER_PEER_H
#define DLOCKFS_ZOOKEEPER_PEER_H

#include <sys/socket.h>

#include <zookeeper/zookeeper.h>

/* The server that a keeper's newest session is connected to. */
struct zookeeper_peer {
	struct zookeeper_peer *next;
	struct sockaddr_storage address;
	socklen_t address_bytes; /* 0: not connected */
};

/* From the first to the second the others know of it. It belongs to the caller, and is zeroed. */
void zookeeper_peer_add(struct zookeeper_peer *peer);
void zookeeper_peer_remove(struct zookeeper_peer *peer);

/* The handle is connected now; NULL: not any more. */
void zookeeper_peer_note(struct zookeeper_peer *peer, zhandle_t *handle);

/* Breaks all connections to servers but those to the servers of others. One that another session is
 * just making may be broken as well, and so is one to the server that this session is connected to:
 * the client library tells the server's address, but neither the socket nor its own port, and
 * which of two sockets came with which session is not known of those that connect at the same time.
 * The other session is kept, and connected anew at once. */
void zookeeper_peer_break(const struct zookeeper_peer *self);

#endif
