/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS as a client, by OpenSSL. The files are read again when they have changed, so that
 * certificates can be renewed while the program runs. Loop thread.
 */
#ifndef DLOCKFS_STORES_NET_TLS_H
#define DLOCKFS_STORES_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include <openssl/ssl.h>

#include "config/access.h"

struct tls {
	const struct store_access *access;
	bool is_wanted;
	bool takes_any_name; /* a certificate need not be of the server's name; false */
	const char *protocol;
	SSL_CTX *context;
	struct stat files[3]; /* the three files, as they were when `context` was made of them */
};

/* `is_wanted`: connections are by TLS; the servers' certificates are signed by one of
 * access->tls_ca, or without that of those whom this host trusts. `protocol`: what is spoken over
 * it, by its name for ALPN, which a server then has to offer; NULL: that has none. A constant. */
void tls_init(struct tls *tls, const struct store_access *access, bool is_wanted,
	      const char *protocol);
void tls_finish(struct tls *tls);

/* Reads the files. Returns whether they can be used; else with one line in `why`. */
bool tls_check_files(const struct store_access *access, char *why, size_t why_bytes);

/* A session over the socket, which must be of that host (a name or a numeric address). Reads the
 * files first if need be. Returns NULL and one line in `why` if that is not possible. */
SSL *tls_open(struct tls *tls, int socket, const char *host, char *why, size_t why_bytes);

/* One line about what has failed with the session; `result` of SSL_get_error(3). */
void tls_explain(const SSL *session, int result, char *why, size_t why_bytes);

/* Whether the protocol was agreed upon. */
bool tls_has_protocol(const struct tls *tls, const SSL *session);

#endif
