/* SPDX-License-Identifier: Apache-2.0
 *
 * Why no server of ZooKeeper can be reached, as the client library says it in its own messages: it
 * calls nobody back with that. Each reason is told once, until there is a connection
 * (base/outage.h). Any thread; one mutex guards what was told.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_FAILURE_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_FAILURE_H

#include <errno.h>

/* Of an attempt that this program lets fail itself (socket.c): it is not told. */
#define ZOOKEEPER_FAILURE_OWN ECANCELED

/* A message of the library: handle_socket_error_msg() of zookeeper.c writes "...: Socket SERVER zk
 * retcode=N, errno=N(TEXT): TEXT", with brackets around the server before 3.5. Others are fine. */
void zookeeper_failure_note(const char *message);

/* A server has made a session, or goes on with it. */
void zookeeper_failure_end(void);

#endif
