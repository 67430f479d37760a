/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to and from a server: a TCP socket, with TLS or without. Nothing blocks. SIGPIPE must be
 * ignored. Loop thread.
 */
#ifndef DLOCKFS_STORES_NET_TRANSPORT_H
#define DLOCKFS_STORES_NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/socket.h>

#include "stores/net/tls.h"

enum transport_state { TRANSPORT_CLOSED, TRANSPORT_CONNECTING, TRANSPORT_TLS, TRANSPORT_OPEN };

struct transport {
	enum transport_state state;
	int socket; /* -1: closed */
	const struct tls *tls;
	SSL *session;	  /* NULL: without TLS */
	bool wants_write; /* something is to be written that the socket did not take */
	char why[256];	  /* after an error, for people */
};

void transport_init(struct transport *transport);

/* Begins to connect to the address; `host` is what the certificate must be of. Returns 0; or -EIO
 * and `why`. */
int transport_connect(struct transport *transport, const struct sockaddr *address,
		      socklen_t address_bytes, const char *host, struct tls *tls);

/* Goes on with it after an event of the socket. Returns 1 once it is open, 0 if it is not yet; or
 * -EIO and `why`. */
int transport_advance(struct transport *transport);

/* Reads what there is, up to `bytes`. Returns how many; or -EAGAIN; or -EIO and `why`, also when
 * the server has closed the connection. */
ssize_t transport_read(struct transport *transport, void *buffer, size_t bytes);

/* Whether more may be there after a transport_read() that gave `count` of `bytes`. */
bool transport_has_more(const struct transport *transport, size_t count, size_t bytes);

/* Writes what the socket takes. Returns how many bytes; or -EAGAIN; or -EIO and `why`. */
ssize_t transport_write(struct transport *transport, const void *data, size_t bytes);

void transport_close(struct transport *transport);

#endif
