/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS as a client of HTTP/2 by OpenSSL. The files are read again when they have changed, so that
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
	SSL_CTX *context;
	struct stat files[3]; /* the three files, as they were when `context` was made of them */
};

void tls_init(struct tls *tls, const struct store_access *access);
void tls_finish(struct tls *tls);

/* Whether connections are by TLS. */
bool tls_is_wanted(const struct tls *tls);

/* A session over the socket, which must be of that host (a name or a numeric address). Reads the
 * files first if need be. Returns NULL and one line in `why` if that is not possible. */
SSL *tls_open(struct tls *tls, int socket, const char *host, char *why, size_t why_bytes);

/* One line about what has failed with the session; `result` of SSL_get_error(3). */
void tls_explain(const SSL *session, int result, char *why, size_t why_bytes);

/* Whether HTTP/2 was agreed upon. */
bool tls_has_http2(const SSL *session);

#endif
