/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the data that the client library needs as long as a handle lives. Must not know about
 * sessions. Its callbacks for SASL run on ZooKeeper's threads and only read.
 */
#ifdef HAVE_ZOOKEEPER_TLS
#define HAVE_OPENSSL_H 1 /* zookeeper.h declares zookeeper_init_ssl() */
#endif
#ifdef HAVE_ZOOKEEPER_SASL
#define HAVE_CYRUS_SASL_H 1 /* and zookeeper_init_sasl() */
#endif
#include "stores/zookeeper/session/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZOOKEEPER_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

#include "base/log.h"
#include "base/opener.h"
#include "stores/zookeeper/session/failure.h"

#define FLAGS ZOO_NO_LOG_CLIENTENV

struct zookeeper_client {
	const struct store_access *access;
#ifdef HAVE_ZOOKEEPER_TLS
	const char *unusable; /* the file that the log has named, or NULL */
	struct opener_loan ca, certificate, key;
	const char *ca_name, *certificate_name, *key_name; /* what the library is told */
#endif
#ifdef HAVE_ZOOKEEPER_SASL
	sasl_callback_t callbacks[5];
	sasl_secret_t *password;
	size_t password_bytes; /* of the struct */
#endif
};

static void on_client_log(const char *message)
{
	log_debug("zookeeper client: %s", message);
	zookeeper_failure_note(message);
}

#ifdef HAVE_ZOOKEEPER_TLS
/* OpenSSL asks only for a password that the key needs. */
static const char *key_password(const struct store_access *access)
{
	const struct secret *password = access->tls_password.secret;

	return password != NULL ? secret_next(password, NULL) : "none";
}

static void take_back_files(struct zookeeper_client *client)
{
	opener_take_back(&client->ca);
	opener_take_back(&client->certificate);
	opener_take_back(&client->key);
}

/* The files may be root's. The library opens them with each connection, on another thread. */
static void lend_files(struct zookeeper_client *client)
{
	const struct store_access *access = client->access;

	client->ca_name = opener_lend(access->tls_ca, &client->ca);
	client->certificate_name = opener_lend(access->tls_certificate, &client->certificate);
	client->key_name = opener_lend(access->tls_key, &client->key);
}

/* Which of the files cannot be used, or NULL. */
static const char *find_unusable(const struct zookeeper_client *client)
{
	const struct store_access *access = client->access;
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	const char *file = NULL;

	if (context == NULL)
		return access->tls_ca;
	SSL_CTX_set_default_passwd_cb_userdata(context, (void *)key_password(access));
	if (SSL_CTX_load_verify_locations(context, client->ca_name, NULL) != 1)
		file = access->tls_ca;
	else if (SSL_CTX_use_certificate_chain_file(context, client->certificate_name) != 1)
		file = access->tls_certificate;
	else if (SSL_CTX_use_PrivateKey_file(context, client->key_name, SSL_FILETYPE_PEM) != 1 ||
		 SSL_CTX_check_private_key(context) != 1)
		file = access->tls_key;
	SSL_CTX_free(context);
	return file;
}

/* Checked here, because ZooKeeper's client would try an unusable file again and again without a
 * pause. */
static bool check_files(struct zookeeper_client *client)
{
	const char *file = find_unusable(client);
	const char *reason = file != NULL ? ERR_reason_error_string(ERR_peek_last_error()) : NULL;

	if (file != NULL && file != client->unusable)
		log_error("TLS: cannot use %s: %s", file,
			  reason != NULL ? reason : "unknown reason");
	client->unusable = file;
	ERR_clear_error();
	return file == NULL;
}

bool zookeeper_client_check(const struct store_access *access, char *why, size_t why_bytes)
{
	const struct zookeeper_client client = {
		.access = access,
		.ca_name = access->tls_ca,
		.certificate_name = access->tls_certificate,
		.key_name = access->tls_key,
	};
	const char *file = find_unusable(&client);
	const char *reason = file != NULL ? ERR_reason_error_string(ERR_peek_last_error()) : NULL;

	if (file != NULL)
		snprintf(why, why_bytes, "TLS: %s: %s, expected certificates and their key as PEM",
			 file, reason != NULL ? reason : "unknown reason");
	ERR_clear_error();
	return file == NULL;
}

static zhandle_t *open_tls(struct zookeeper_client *client, const char *servers, watcher_fn watcher,
			   int timeout_ms, const clientid_t *id, void *context)
{
	/* The client splits the text by strtok(3). */
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	const struct store_access *access = client->access;
	char *certificates;
	zhandle_t *handle;
	int error;

	if (!check_files(client)) {
		errno = EINVAL;
		return NULL;
	}
	if (asprintf(&certificates, "%s,%s,%s,%s", client->ca_name, client->certificate_name,
		     client->key_name, key_password(access)) < 0) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&one);
	errno = 0;
	handle = zookeeper_init_ssl(servers, certificates, watcher, timeout_ms, id, context, FLAGS);
	error = errno;
	pthread_mutex_unlock(&one);
	if (handle != NULL)
		zoo_set_log_callback(handle, on_client_log);
	explicit_bzero(certificates, strlen(certificates));
	free(certificates);
	errno = error;
	return handle;
}
#endif

#ifdef HAVE_ZOOKEEPER_SASL
static int on_name(void *context, int id, const char **result, unsigned *bytes)
{
	const struct store_access *access = context;

	*result = access->sasl_user;
	if (bytes)
		*bytes = access->sasl_user != NULL ? (unsigned)strlen(access->sasl_user) : 0;
	return SASL_OK;
}

static int on_realm(void *context, int id, const char **realms, const char **result)
{
	const struct store_access *access = context;

	*result = access->sasl_realm;
	return SASL_OK;
}

static int on_password(sasl_conn_t *connection, void *context, int id, sasl_secret_t **result)
{
	const struct zookeeper_client *client = context;

	*result = client->password;
	return client->password != NULL ? SASL_OK : SASL_FAIL;
}

/* Casts by way of the function type that may be cast to any other. */
#define CALLBACK(function) ((int (*)(void))(void (*)(void))(function))

static int begin_sasl(struct zookeeper_client *client)
{
	const struct store_access *access = client->access;
	const sasl_callback_t callbacks[] = {
		{SASL_CB_USER, CALLBACK(on_name), (void *)access},
		{SASL_CB_AUTHNAME, CALLBACK(on_name), (void *)access},
		{SASL_CB_GETREALM, CALLBACK(on_realm), (void *)access},
		{SASL_CB_PASS, CALLBACK(on_password), client},
		{SASL_CB_LIST_END, NULL, NULL},
	};
	const char *password;

	memcpy(client->callbacks, callbacks, sizeof(callbacks));
	if (access->sasl_password.secret != NULL) {
		password = secret_next(access->sasl_password.secret, NULL);
		client->password_bytes = sizeof(*client->password) + strlen(password);
		client->password = calloc(1, client->password_bytes);
		if (client->password == NULL)
			return -ENOMEM;
		client->password->len = strlen(password);
		memcpy(client->password->data, password, client->password->len);
	}
	return sasl_client_init(NULL) == SASL_OK ? 0 : -EIO;
}

static zhandle_t *open_sasl(struct zookeeper_client *client, const char *servers,
			    watcher_fn watcher, int timeout_ms, const clientid_t *id, void *context)
{
	const struct store_access *access = client->access;
	zoo_sasl_params_t parameters = {
		.service = access->sasl_service != NULL ? access->sasl_service : "zookeeper",
		.host = access->sasl_host,
		.mechlist = access->sasl_mechanism,
		.callbacks = client->callbacks,
	};

	return zookeeper_init_sasl(servers, watcher, timeout_ms, id, context, FLAGS, on_client_log,
				   &parameters);
}
#endif

int zookeeper_client_create(const struct store_access *access, struct zookeeper_client **ret)
{
	struct zookeeper_client *client = calloc(1, sizeof(*client));
	int error = 0;

	if (client == NULL)
		return -ENOMEM;
	client->access = access;
#ifdef HAVE_ZOOKEEPER_TLS
	client->ca.descriptor = client->certificate.descriptor = client->key.descriptor = -1;
	if (access->tls_ca != NULL)
		lend_files(client);
#endif
#ifdef HAVE_ZOOKEEPER_SASL
	if (access->sasl_mechanism != NULL)
		error = begin_sasl(client);
#endif
	if (error)
		zookeeper_client_destroy(client);
	else
		*ret = client;
	return error;
}

void zookeeper_client_destroy(struct zookeeper_client *client)
{
#ifdef HAVE_ZOOKEEPER_SASL
	if (client != NULL && client->password != NULL) {
		explicit_bzero(client->password, client->password_bytes);
		free(client->password);
	}
#endif
#ifdef HAVE_ZOOKEEPER_TLS
	if (client != NULL)
		take_back_files(client);
#endif
	free(client);
}

zhandle_t *zookeeper_client_open(struct zookeeper_client *client, const char *servers,
				 watcher_fn watcher, int timeout_ms, const clientid_t *id,
				 void *context)
{
#ifdef HAVE_ZOOKEEPER_TLS
	if (client->access->tls_ca != NULL)
		return open_tls(client, servers, watcher, timeout_ms, id, context);
#endif
#ifdef HAVE_ZOOKEEPER_SASL
	if (client->access->sasl_mechanism != NULL)
		return open_sasl(client, servers, watcher, timeout_ms, id, context);
#endif
	errno = 0;
	return zookeeper_init2(servers, watcher, timeout_ms, id, context, FLAGS, on_client_log);
}
