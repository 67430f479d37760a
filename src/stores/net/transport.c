/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the socket and the session of TLS. Must not know what goes over them. Loop thread.
 *
 * | state      | event                  | next       |
 * |------------|------------------------|------------|
 * | CLOSED     | transport_connect()    | CONNECTING |
 * | CONNECTING | connected, TLS wanted  | TLS        |
 * | CONNECTING | connected              | OPEN       |
 * | TLS        | the handshake is done  | OPEN       |
 * | any        | transport_close()      | CLOSED     |
 */
#include "stores/net/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>

void transport_init(struct transport *transport)
{
	*transport = (struct transport){.socket = -1};
}

void transport_close(struct transport *transport)
{
	/* Peers need not be told: to them it is as if the process had ended. */
	SSL_free(transport->session);
	if (transport->socket >= 0)
		close(transport->socket);
	transport->state = TRANSPORT_CLOSED;
	transport->socket = -1;
	transport->session = NULL;
	transport->wants_write = false;
}

static int fail(struct transport *transport, int error)
{
	snprintf(transport->why, sizeof(transport->why), "%s", strerror(error));
	return -EIO;
}

int transport_connect(struct transport *transport, const struct sockaddr *address,
		      socklen_t address_bytes, const char *host, struct tls *tls)
{
	const int on = 1;

	transport->socket =
		socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (transport->socket < 0)
		return fail(transport, errno);
	transport->state = TRANSPORT_CONNECTING;
	if (setsockopt(transport->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
		return fail(transport, errno);
	if (tls->is_wanted) {
		transport->tls = tls;
		transport->session = tls_open(tls, transport->socket, host, transport->why,
					      sizeof(transport->why));
		if (transport->session == NULL)
			return -EIO;
	}
	if (connect(transport->socket, address, address_bytes) != 0 && errno != EINPROGRESS)
		return fail(transport, errno);
	transport->wants_write = true;
	return 0;
}

/* What a call of OpenSSL that gave `result` means: -EAGAIN, or -EIO and `why`. */
static int judge(struct transport *transport, int result)
{
	int error = SSL_get_error(transport->session, result);

	switch (error) {
	case SSL_ERROR_WANT_READ:
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		transport->wants_write = true;
		return -EAGAIN;
	default:
		tls_explain(transport->session, error, transport->why, sizeof(transport->why));
		return -EIO;
	}
}

/* A server that does not expect TLS may end the connection. Returns 0 or -EIO. */
static int judge_handshake(struct transport *transport, int result)
{
	static const char closed[] = "the server has closed the connection";

	if (judge(transport, result) == -EAGAIN)
		return 0;
	if (strcmp(transport->why, closed) == 0)
		snprintf(transport->why, sizeof(transport->why), "%s (is it without TLS?)", closed);
	return -EIO;
}

static int shake_hands(struct transport *transport)
{
	int result;

	transport->wants_write = false;
	ERR_clear_error();
	errno = 0;
	result = SSL_do_handshake(transport->session);
	if (result != 1)
		return judge_handshake(transport, result);
	if (!tls_has_protocol(transport->tls, transport->session)) {
		snprintf(transport->why, sizeof(transport->why),
			 "TLS: the server does not offer %s", transport->tls->protocol);
		return -EIO;
	}
	transport->state = TRANSPORT_OPEN;
	return 1;
}

int transport_advance(struct transport *transport)
{
	struct sockaddr_storage peer;
	socklen_t peer_bytes = sizeof(peer);
	int error = 0;
	socklen_t bytes = sizeof(error);

	switch (transport->state) {
	case TRANSPORT_CONNECTING:
		if (getsockopt(transport->socket, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
			error = errno;
		if (error)
			return fail(transport, error);
		/* An event may be one of before connect(2). */
		if (getpeername(transport->socket, (struct sockaddr *)&peer, &peer_bytes) != 0)
			return errno == ENOTCONN ? 0 : fail(transport, errno);
		transport->wants_write = false;
		if (transport->session == NULL) {
			transport->state = TRANSPORT_OPEN;
			return 1;
		}
		transport->state = TRANSPORT_TLS;
		return shake_hands(transport);
	case TRANSPORT_TLS:
		return shake_hands(transport);
	case TRANSPORT_OPEN:
		return 1;
	case TRANSPORT_CLOSED:
		break;
	}
	return 0;
}

ssize_t transport_read(struct transport *transport, void *buffer, size_t bytes)
{
	ssize_t count;

	if (transport->session != NULL) {
		int result;

		ERR_clear_error();
		errno = 0;
		result = SSL_read(transport->session, buffer, (int)bytes);
		return result > 0 ? result : judge(transport, result);
	}
	count = recv(transport->socket, buffer, bytes, 0);
	if (count > 0)
		return count;
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (count < 0)
		return fail(transport, errno);
	snprintf(transport->why, sizeof(transport->why), "the server has closed the connection");
	return -EIO;
}

bool transport_has_more(const struct transport *transport, size_t count, size_t bytes)
{
	/* Of TLS only the next read tells, as the rest of a record may be in OpenSSL's buffer. */
	return transport->session != NULL || count == bytes;
}

ssize_t transport_write(struct transport *transport, const void *data, size_t bytes)
{
	ssize_t count;

	transport->wants_write = false;
	if (transport->session != NULL) {
		int result;

		ERR_clear_error();
		errno = 0;
		result = SSL_write(transport->session, data, (int)bytes);
		return result > 0 ? result : judge(transport, result);
	}
	count = send(transport->socket, data, bytes, MSG_NOSIGNAL);
	if (count >= 0)
		return count;
	if (errno == EAGAIN || errno == EINTR) {
		transport->wants_write = true;
		return -EAGAIN;
	}
	return fail(transport, errno);
}
