/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the rules for keys that go together. Any thread.
 */
#include "config/access.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"

#ifdef HAVE_ZOOKEEPER_TLS
const bool store_access_has_tls = true;
#else
const bool store_access_has_tls = false;
#endif

#ifdef HAVE_ZOOKEEPER_SASL
const bool store_access_has_sasl = true;
#else
const bool store_access_has_sasl = false;
#endif

#define MEMBER(key, member, scheme)                                                                \
	{                                                                                          \
		key, offsetof(struct store_access, member), scheme                                 \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A key of [store], the member that it fills in, and which stores alone have it; NULL: all. */
struct member {
	const char *key;
	size_t offset;
	const char *scheme;
};

/* The members of each kind. */
static const struct member texts[] = {
	MEMBER("tls_ca", tls_ca, NULL),
	MEMBER("tls_certificate", tls_certificate, NULL),
	MEMBER("tls_key", tls_key, NULL),
	MEMBER("sasl_mechanism", sasl_mechanism, STORE_SCHEME_ZOOKEEPER),
	MEMBER("sasl_user", sasl_user, STORE_SCHEME_ZOOKEEPER),
	MEMBER("sasl_realm", sasl_realm, STORE_SCHEME_ZOOKEEPER),
	MEMBER("sasl_service", sasl_service, STORE_SCHEME_ZOOKEEPER),
	MEMBER("sasl_host", sasl_host, STORE_SCHEME_ZOOKEEPER),
	MEMBER("etcd_user", user, STORE_SCHEME_ETCD),
};
static const struct member secrets[] = {
	MEMBER("digest_file", digest, STORE_SCHEME_ZOOKEEPER),
	MEMBER("tls_password_file", tls_password, NULL),
	MEMBER("sasl_password_file", sasl_password, STORE_SCHEME_ZOOKEEPER),
	MEMBER("etcd_password_file", password, STORE_SCHEME_ETCD),
};

static char **text_of(const struct store_access *access, size_t i)
{
	return (char **)((char *)access + texts[i].offset);
}

static struct secret_file *secret_of(const struct store_access *access, size_t i)
{
	return (struct secret_file *)((char *)access + secrets[i].offset);
}

static bool copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return *to || !from;
}

static bool copy_secret(struct secret_file *to, const struct secret_file *from)
{
	to->secret = secret_copy(from->secret);
	return copy_text(&to->file, from->file) && (to->secret || !from->secret);
}

int store_access_copy(struct store_access *ret, const struct store_access *access)
{
	bool done = true;

	*ret = (struct store_access){.acl = access->acl};
	for (size_t i = 0; i < COUNT(texts); i++)
		done &= copy_text(text_of(ret, i), *text_of(access, i));
	for (size_t i = 0; i < COUNT(secrets); i++)
		done &= copy_secret(secret_of(ret, i), secret_of(access, i));
	if (done)
		return 0;
	store_access_finish(ret);
	return -ENOMEM;
}

void store_access_finish(struct store_access *access)
{
	for (size_t i = 0; i < COUNT(texts); i++)
		free(*text_of(access, i));
	for (size_t i = 0; i < COUNT(secrets); i++) {
		free(secret_of(access, i)->file);
		secret_destroy(secret_of(access, i)->secret);
	}
	*access = (struct store_access){0};
}

void store_access_lock(const struct store_access *access)
{
	for (size_t i = 0; i < COUNT(secrets); i++)
		secret_lock(secret_of(access, i)->secret);
}

bool store_access_has_identity(const struct store_access *access)
{
	return access->digest.secret || access->tls_certificate || access->sasl_mechanism;
}

enum store_acl store_access_acl(const struct store_access *access)
{
	if (access->acl != STORE_ACL_AUTO)
		return (enum store_acl)access->acl;
	return store_access_has_identity(access) ? STORE_ACL_CREATOR : STORE_ACL_OPEN;
}

/* What is wrong. */
struct fault {
	const char *key; /* that is to go; NULL: several */
	char why[256];
};

__attribute__((format(printf, 3, 4))) static bool accuse(struct fault *fault, const char *key,
							 const char *format, ...)
{
	va_list arguments;

	fault->key = key;
	va_start(arguments, format);
	vsnprintf(fault->why, sizeof(fault->why), format, arguments);
	va_end(arguments);
	return false;
}

/* The first key that is set and is not one of that scheme, or NULL. */
static const char *find_foreign(const struct store_access *access, const char *scheme)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (*text_of(access, i) && texts[i].scheme && strcmp(texts[i].scheme, scheme) != 0)
			return texts[i].key;
	}
	for (size_t i = 0; i < COUNT(secrets); i++) {
		if (secret_of(access, i)->file && secrets[i].scheme &&
		    strcmp(secrets[i].scheme, scheme) != 0)
			return secrets[i].key;
	}
	return access->acl != STORE_ACL_AUTO && strcmp(scheme, STORE_SCHEME_ZOOKEEPER) != 0 ? "acl"
											    : NULL;
}

/* The first key that begins so and is set, or NULL. */
static const char *find_set(const struct store_access *access, const char *prefix)
{
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (*text_of(access, i) && strncmp(texts[i].key, prefix, strlen(prefix)) == 0)
			return texts[i].key;
	}
	for (size_t i = 0; i < COUNT(secrets); i++) {
		if (secret_of(access, i)->file &&
		    strncmp(secrets[i].key, prefix, strlen(prefix)) == 0)
			return secrets[i].key;
	}
	return NULL;
}

/* Which keys do not go together, or NULL. */
static const char *judge_zookeeper(const struct store_access *access)
{
	if (!access->tls_ca != !access->tls_certificate || !access->tls_ca != !access->tls_key)
		return "not all of tls_ca, tls_certificate and tls_key, expected all or none";
	if (access->tls_password.file && !access->tls_key)
		return "tls_password_file without tls_key, expected it as well";
	if (access->tls_password.secret &&
	    strchr(secret_next(access->tls_password.secret, NULL), ','))
		return "a password with a comma in tls_password_file, expected one that "
		       "ZooKeeper's "
		       "library takes: without";
	if (access->tls_ca && access->sasl_mechanism)
		return "tls_ca and sasl_mechanism, expected one of them: ZooKeeper's library does "
		       "not do both";
	if (find_set(access, "sasl_") && !access->sasl_mechanism)
		return "a key for SASL without sasl_mechanism, expected it as well";
	return NULL;
}

static bool check_zookeeper(const struct store_access *access, struct fault *fault)
{
	const char *foreign = find_foreign(access, STORE_SCHEME_ZOOKEEPER);
	const char *tls = find_set(access, "tls_"), *sasl = find_set(access, "sasl_");
	const char *wrong;

	if (foreign)
		return accuse(fault, foreign,
			      "%s is for etcd, expected it left out where ZooKeeper is the store",
			      foreign);
	if ((tls && !store_access_has_tls) || (sasl && !store_access_has_sasl))
		return accuse(fault, tls && !store_access_has_tls ? tls : sasl,
			      "%s: the ZooKeeper library of this build has no %s, expected one "
			      "that has, or this key left out",
			      tls && !store_access_has_tls ? tls : sasl,
			      tls && !store_access_has_tls ? "TLS" : "SASL");
	wrong = judge_zookeeper(access);
	if (wrong)
		return accuse(fault, NULL, "%s", wrong);
	if (store_access_acl(access) == STORE_ACL_OPEN || store_access_has_identity(access))
		return true;
	return accuse(fault, NULL,
		      "acl = %s, but nothing says who the creator is, expected digest_file, "
		      "tls_certificate or sasl_mechanism",
		      access->acl == STORE_ACL_PRIVATE ? "private" : "creator");
}

/* As etcdctl has them: the servers' certificates are always checked, a certificate of one's own is
 * not needed. */
static bool check_etcd(const struct store_access *access, struct fault *fault)
{
	const char *foreign = find_foreign(access, STORE_SCHEME_ETCD);
	const char *lone = NULL, *other = NULL;

	if (foreign)
		return accuse(fault, foreign,
			      "%s is for ZooKeeper, expected it left out where etcd is the store",
			      foreign);
	if (access->tls_password.file && !access->tls_key)
		lone = "tls_password_file", other = "tls_key";
	else if (!access->tls_certificate != !access->tls_key)
		lone = access->tls_key ? "tls_key" : "tls_certificate",
		other = access->tls_key ? "tls_certificate" : "tls_key";
	else if (access->tls_certificate && !access->tls_ca)
		lone = "tls_certificate", other = "tls_ca";
	else if (!access->user != !access->password.file)
		lone = access->user ? "etcd_user" : "etcd_password_file",
		other = access->user ? "etcd_password_file" : "etcd_user";
	return !lone || accuse(fault, NULL, "%s without %s, expected it as well", lone, other);
}

bool store_access_check(const struct store_access *access, const char *scheme, const char **ret_key,
			char *why, size_t why_bytes)
{
	struct fault fault, other;
	bool is_right;

	if (strcmp(scheme, STORE_SCHEME_ETCD) == 0)
		is_right = check_etcd(access, &fault);
	else
		is_right = check_zookeeper(access, &fault) ||
			   (strcmp(scheme, STORE_SCHEME_LOCAL) == 0 && check_etcd(access, &other));
	if (is_right)
		return true;
	*ret_key = fault.key;
	snprintf(why, why_bytes, "%s", fault.why);
	return false;
}
