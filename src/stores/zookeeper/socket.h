/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets through which ZooKeeper's client library talks: which one is whose, so that the
 * connection of one session can be broken and those of other sessions stay, whatever servers they
 * are at. The library neither tells its socket nor breaks a connection that hangs. So this program
 * has a connect(2) of its own, which the library calls, as malloc(3) is replaced; it passes on to
 * the C library's. It knows the caller by the name of its thread: a thread begins with the name of
 * the one that made it, so the library's threads have the name of the thread that made the handle.
 *
 * Any thread; but for connect(2) nothing blocks.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SOCKET_H
#define DLOCKFS_STORES_ZOOKEEPER_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ZOOKEEPER_THREAD_BYTES 16 /* of a thread's name, pthread_setname_np(3) */

/* The newest socket of the handles that one thread makes. */
struct zookeeper_socket {
	struct zookeeper_socket *next;
	char thread[ZOOKEEPER_THREAD_BYTES];
	int descriptor;
	uint64_t cookie; /* of the socket, SO_COOKIE; 0: there was none yet */
	struct sockaddr_storage server;
	int avoid;   /* so many attempts at the server are to fail, until another one is tried */
	bool refuse; /* any server */
};

/* From the first to the second it is known to connect(2). Zeroed by the first; belongs to the
 * caller. */
void zookeeper_socket_add(struct zookeeper_socket *socket);
void zookeeper_socket_remove(struct zookeeper_socket *socket);

/* The calling thread is about to make handles. */
void zookeeper_socket_name_thread(const struct zookeeper_socket *socket);

/* Breaks the connection, or the attempt to make one. With `avoid` some attempts to connect to the
 * same server fail at once, until another one is tried. */
void zookeeper_socket_break(struct zookeeper_socket *socket, bool avoid);

/* The same, and from now on each attempt fails at once; or not any more. */
void zookeeper_socket_refuse(struct zookeeper_socket *socket, bool refuse);

#endif
