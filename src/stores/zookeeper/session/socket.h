/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets of ZooKeeper's client library, by session: so that the connection of one session can
 * be broken while those of other sessions stay, even to the same server. The library neither
 * reports its socket nor breaks a connection that hangs. So this program has a connect(2) of its
 * own, which the library calls instead of the C library's, in the way that malloc(3) can be
 * replaced; it then calls the C library's. It knows the session by the name of the calling thread:
 * a thread begins with the name of its creator, so the library's threads have the name of the
 * thread that made the handle.
 *
 * What else there is in libzookeeper_mt (3.7 to 3.9) does not do:
 *
 *  - zookeeper_get_connected_host() and zoo_get_current_server() tell addresses. Two sessions may
 *    be connected to one server, and of an attempt that hangs nothing is told. The handle is
 *    opaque, and differs from version to version.
 *  - zookeeper_interest() tells the descriptor, but sends pings, and connects: it is for the
 *    library's own thread (do_io() in mt_adaptor.c), beside which nobody else may call it. A
 *    function here of that name would know the handle, but the library calls it only if it calls
 *    its own functions by way of the dynamic linker: not where it was linked with
 *    -Bsymbolic-functions, as in Ubuntu (dpkg-buildflags(1)). Calls of the C library always come.
 *  - Nothing of this program runs on that thread and knows the handle: watchers and answers come on
 *    the library's other thread, and the callback of zoo_set_log_callback() is given a text only.
 *  - libzookeeper_st has no threads, and leaves zookeeper_interest() to the caller. All requests,
 *    answers and pings would be the loop's then: another store, and another package to build with,
 *    which Debian does not install beside this one.
 *  - A proxy on loopback would own both sockets, at the price of two more threads or turns of the
 *    loop in each round trip. To put another socket in the place of the library's (dup2(2)) may hit
 *    any other file, as the library may close its descriptor at any moment.
 *
 * Any thread; but for connect(2) nothing blocks.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_SOCKET_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ZOOKEEPER_THREAD_BYTES 16 /* of a thread's name, pthread_setname_np(3) */

/* The newest socket of the handles that one thread makes. */
struct zookeeper_socket {
	struct zookeeper_socket *next;
	char thread[ZOOKEEPER_THREAD_BYTES];
	int descriptor;
	uint64_t cookie;  /* of the socket, SO_COOKIE; 0: there was none yet */
	int64_t since_ms; /* when connect(2) was called for it, clock_now_ms(); INT64_MIN: never */
	struct sockaddr_storage server;
	socklen_t server_bytes;
	int avoid; /* how many attempts at that server are to fail, until another server is tried */
	bool refuse; /* attempts at any server fail */
};

/* Between the two calls connect(2) knows the socket. The first one zeroes it; it belongs to the
 * caller. */
void zookeeper_socket_add(struct zookeeper_socket *socket);
void zookeeper_socket_remove(struct zookeeper_socket *socket);

/* The calling thread is about to make handles. */
void zookeeper_socket_name_thread(const struct zookeeper_socket *socket);

/* When the newest attempt was begun: what the library is given after that can be answered over that
 * connection or a later one only. clock_now_ms(); INT64_MIN: there was none. */
int64_t zookeeper_socket_since(const struct zookeeper_socket *socket);
void zookeeper_socket_forget_since(struct zookeeper_socket *socket);

/* The server of that. Returns how many bytes the address has; 0: there is none. */
socklen_t zookeeper_socket_server(const struct zookeeper_socket *socket,
				  struct sockaddr_storage *ret_server);

/* Whether nothing passes the connection, or the attempt to make one, that has lasted for
 * `patience_ms` by now (link_is_stuck()). */
bool zookeeper_socket_is_stuck(const struct zookeeper_socket *socket, int64_t patience_ms);

/* Whether the library has no socket now: it pauses. */
bool zookeeper_socket_is_closed(const struct zookeeper_socket *socket);

/* Breaks the connection, or the attempt to make one. With `avoid` some attempts to connect to the
 * same server fail at once, until another one is tried. */
void zookeeper_socket_break(struct zookeeper_socket *socket, bool avoid);

/* With `refuse` breaks the connection, or the attempt, and lets each further attempt fail at once,
 * until the call without. */
void zookeeper_socket_refuse(struct zookeeper_socket *socket, bool refuse);

#endif
