/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns OpenSSL's context and the words for its errors. Must not do I/O with servers. Loop thread.
 */
#include "stores/net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "base/opener.h"

void tls_init(struct tls *tls, const struct store_access *access, bool is_wanted,
	      const char *protocol)
{
	*tls = (struct tls){.access = access, .is_wanted = is_wanted, .protocol = protocol};
}

void tls_finish(struct tls *tls)
{
	SSL_CTX_free(tls->context);
	tls->context = NULL;
}

/* The reason of the first error since ERR_clear_error(3). */
static const char *reason(void)
{
	unsigned long error = ERR_peek_error();
	const char *text = error == 0		     ? NULL
			   : ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error))
						     : ERR_reason_error_string(error);

	return text != NULL ? text : "unknown error";
}

static int give_password(char *buffer, int bytes, int writes, void *context)
{
	const struct store_access *access = context;
	const struct secret *secret = access->tls_password.secret;
	const char *password = secret != NULL ? secret_next(secret, NULL) : NULL;
	size_t length = password != NULL ? strlen(password) : 0;

	if (length > (size_t)bytes)
		return -1;
	if (length > 0)
		memcpy(buffer, password, length);
	return (int)length;
}

static bool load_authorities(SSL_CTX *context, const char *file)
{
	return SSL_CTX_load_verify_locations(context, file, NULL) == 1;
}

static bool load_certificate(SSL_CTX *context, const char *file)
{
	return SSL_CTX_use_certificate_chain_file(context, file) == 1;
}

static bool load_key(SSL_CTX *context, const char *file)
{
	return SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM) == 1 &&
	       SSL_CTX_check_private_key(context) == 1;
}

/* Which may be root's. */
static bool load_file(SSL_CTX *context, bool (*load)(SSL_CTX *, const char *), const char *file)
{
	struct opener_loan loan;
	bool loaded = load(context, opener_lend(file, &loan));

	opener_take_back(&loan);
	return loaded;
}

/* Loads the files. Returns the name of the one that is not right; NULL: all are. */
static const char *load(SSL_CTX *context, const struct store_access *access)
{
	if (access->tls_ca == NULL && SSL_CTX_set_default_verify_paths(context) != 1)
		return "the certificates that this host trusts";
	if (access->tls_ca != NULL && !load_file(context, load_authorities, access->tls_ca))
		return access->tls_ca;
	if (access->tls_certificate == NULL)
		return NULL;
	if (!load_file(context, load_certificate, access->tls_certificate))
		return access->tls_certificate;
	return load_file(context, load_key, access->tls_key) ? NULL : access->tls_key;
}

/* Offers the protocol, if it has a name: as ALPN has it, behind its length. */
static bool offer(SSL_CTX *context, const char *protocol)
{
	unsigned char names[1 + UINT8_MAX];
	size_t bytes = protocol != NULL ? strlen(protocol) : 0;

	if (bytes == 0)
		return true;
	names[0] = (unsigned char)bytes;
	memcpy(names + 1, protocol, bytes);
	return SSL_CTX_set_alpn_protos(context, names, (unsigned)bytes + 1) == 0;
}

static SSL_CTX *make_context(const struct tls *tls, char *why, size_t why_bytes)
{
	const struct store_access *access = tls->access;
	SSL_CTX *context;
	const char *file;

	ERR_clear_error();
	context = SSL_CTX_new(TLS_client_method());
	if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
	    !offer(context, tls->protocol)) {
		snprintf(why, why_bytes, "TLS: %s", reason());
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(context,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	/* One read(2) for a record and its header. */
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set_default_passwd_cb(context, give_password);
	SSL_CTX_set_default_passwd_cb_userdata(context, (void *)access);
	file = load(context, access);
	if (file != NULL) {
		snprintf(why, why_bytes, "TLS: %s: %s", file, reason());
		SSL_CTX_free(context);
		return NULL;
	}
	return context;
}

bool tls_check_files(const struct store_access *access, char *why, size_t why_bytes)
{
	const struct tls tls = {.access = access, .is_wanted = true};
	SSL_CTX *context = make_context(&tls, why, why_bytes);
	size_t used = strnlen(why, why_bytes);

	if (context == NULL)
		snprintf(why + used, why_bytes - used,
			 ", expected certificates and their key as PEM");
	SSL_CTX_free(context);
	return context != NULL;
}

/* What the file is now. One that may not be looked at, or that nobody opens for us, is as it was.
 */
static void look_at(const char *file, struct stat *ret)
{
	int descriptor = opener_open(file, O_NONBLOCK | O_NOCTTY);

	if (descriptor < 0 && (errno == EACCES || errno == ETIMEDOUT || errno == ENOTCONN))
		return;
	if (descriptor < 0 || fstat(descriptor, ret) != 0)
		*ret = (struct stat){0};
	if (descriptor >= 0)
		close(descriptor);
}

/* Whether the files are still those that the context was made of; notes how they are now. */
static bool note_files(struct tls *tls)
{
	const char *names[] = {tls->access->tls_ca, tls->access->tls_certificate,
			       tls->access->tls_key};
	bool is_same = true;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct stat now = tls->files[i], *old = &tls->files[i];

		if (names[i] != NULL)
			look_at(names[i], &now);
		is_same &= now.st_ino == old->st_ino && now.st_dev == old->st_dev &&
			   now.st_size == old->st_size &&
			   now.st_ctim.tv_sec == old->st_ctim.tv_sec &&
			   now.st_ctim.tv_nsec == old->st_ctim.tv_nsec;
		*old = now;
	}
	return is_same;
}

/* The certificate must be of that host. */
static bool expect_host(SSL *session, const char *host)
{
	struct in6_addr address;

	if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host) == 1;
	/* By the names that it is issued for, and no other text in it (RFC 9525, section 2). */
	SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
					   X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	return SSL_set1_host(session, host) == 1 && SSL_set_tlsext_host_name(session, host) == 1;
}

SSL *tls_open(struct tls *tls, int socket, const char *host, char *why, size_t why_bytes)
{
	SSL *session;

	if (!note_files(tls) || tls->context == NULL) {
		tls_finish(tls);
		tls->context = make_context(tls, why, why_bytes);
		if (tls->context == NULL)
			return NULL;
	}
	ERR_clear_error();
	session = SSL_new(tls->context);
	if (session == NULL || SSL_set_fd(session, socket) != 1 ||
	    (!tls->takes_any_name && !expect_host(session, host))) {
		snprintf(why, why_bytes, "TLS: %s", reason());
		SSL_free(session);
		return NULL;
	}
	SSL_set_connect_state(session);
	return session;
}

/* What an alert says, behind the version of the protocol that its number is of. */
static const char *alert(void)
{
	const char *text = reason(), *told = strstr(text, " alert ");

	return told != NULL ? told + strlen(" alert ") : text;
}

/* Servers may say no more than that the certificate is bad. */
static const char *own_fault(const SSL *session)
{
	const X509 *own = SSL_get_certificate(session);

	if (own == NULL)
		return "; tls_certificate is not set";
	return X509_cmp_current_time(X509_get0_notAfter(own)) < 0 ? "; tls_certificate has expired"
								  : "";
}

/* What OpenSSL makes of a text in place of a record. */
static bool is_plain(int reason)
{
	return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
	       reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_TOO_SMALL;
}

void tls_explain(const SSL *session, int result, char *why, size_t why_bytes)
{
	int system = errno;
	unsigned long error = ERR_peek_error();
	long verified = SSL_get_verify_result(session);

	if (result == SSL_ERROR_ZERO_RETURN ||
	    (result == SSL_ERROR_SYSCALL && error == 0 && system == 0) ||
	    ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		snprintf(why, why_bytes, "the server has closed the connection");
	else if (result == SSL_ERROR_SYSCALL && error == 0)
		snprintf(why, why_bytes, "%s", strerror(system));
	else if (verified != X509_V_OK)
		snprintf(why, why_bytes, "TLS: the server's certificate is refused: %s",
			 X509_verify_cert_error_string(verified));
	else if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET)
		snprintf(why, why_bytes, "TLS: the server refuses us: %s%s", alert(),
			 own_fault(session));
	else if (ERR_GET_LIB(error) == ERR_LIB_SSL && is_plain(ERR_GET_REASON(error)))
		snprintf(why, why_bytes,
			 "the server answers without TLS, expected its port by TLS, or none in "
			 "[store]");
	else
		snprintf(why, why_bytes, "TLS: %s", reason());
}

bool tls_has_protocol(const struct tls *tls, const SSL *session)
{
	const unsigned char *name = NULL;
	unsigned bytes = 0;

	if (tls->protocol == NULL)
		return true;
	SSL_get0_alpn_selected(session, &name, &bytes);
	return bytes == strlen(tls->protocol) && memcmp(name, tls->protocol, bytes) == 0;
}
