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

/* Whether this build's library for ZooKeeper can do that. The others have TLS in any build. */
#ifdef HAVE_ZOOKEEPER_TLS
static const bool has_tls = true;
#else
static const bool has_tls = false;
#endif
#ifdef HAVE_ZOOKEEPER_SASL
static const bool has_sasl = true;
#else
static const bool has_sasl = false;
#endif

#define TEXT(member)   offsetof(struct store_access, member), false
#define SECRET(member) offsetof(struct store_access, member), true
#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))

/* A key of [store], the member that it fills in, a text or a struct secret_file, and which stores
 * alone have it; NULL: all. */
static const struct member {
	const char *key;
	size_t offset;
	bool is_secret;
	const char *scheme;
} members[] = {
	{"tls_ca", TEXT(tls_ca), NULL},
	{"tls_certificate", TEXT(tls_certificate), NULL},
	{"tls_key", TEXT(tls_key), NULL},
	{"sasl_mechanism", TEXT(sasl_mechanism), STORE_SCHEME_ZOOKEEPER},
	{"sasl_user", TEXT(sasl_user), STORE_SCHEME_ZOOKEEPER},
	{"sasl_realm", TEXT(sasl_realm), STORE_SCHEME_ZOOKEEPER},
	{"sasl_service", TEXT(sasl_service), STORE_SCHEME_ZOOKEEPER},
	{"sasl_host", TEXT(sasl_host), STORE_SCHEME_ZOOKEEPER},
	{"etcd_user", TEXT(user), STORE_SCHEME_ETCD},
	{"digest_file", SECRET(digest), STORE_SCHEME_ZOOKEEPER},
	{"tls_password_file", SECRET(tls_password), NULL},
	{"sasl_password_file", SECRET(sasl_password), STORE_SCHEME_ZOOKEEPER},
	{"etcd_password_file", SECRET(password), STORE_SCHEME_ETCD},
	{"redis_user", TEXT(redis_user), STORE_SCHEME_REDIS},
	{"redis_password_file", SECRET(redis_password), STORE_SCHEME_REDIS},
	{"sentinel_user", TEXT(sentinel_user), STORE_SCHEME_REDIS},
	{"sentinel_password_file", SECRET(sentinel_password), STORE_SCHEME_REDIS},
};

/* The text, or the file of the secret. */
static char **text_of(const struct store_access *access, size_t i)
{
	return (char **)((char *)access + members[i].offset);
}

/* NULL: the member is a text. */
static struct secret_file *secret_of(const struct store_access *access, size_t i)
{
	return members[i].is_secret ? (struct secret_file *)text_of(access, i) : NULL;
}

/* Returns false when out of memory. */
static bool copy_member(struct store_access *to, const struct store_access *from, size_t i)
{
	const struct secret_file *secret = secret_of(from, i);
	const char *text = *text_of(from, i);

	*text_of(to, i) = text != NULL ? strdup(text) : NULL;
	if (secret != NULL)
		secret_of(to, i)->secret = secret_copy(secret->secret);
	return (text == NULL || *text_of(to, i) != NULL) &&
	       (secret == NULL || secret->secret == NULL || secret_of(to, i)->secret != NULL);
}

int store_access_copy(struct store_access *ret, const struct store_access *access)
{
	bool done = true;

	*ret = (struct store_access){.acl = access->acl};
	for (size_t i = 0; i < COUNT(members); i++)
		done &= copy_member(ret, access, i);
	if (done)
		return 0;
	store_access_finish(ret);
	return -ENOMEM;
}

void store_access_finish(struct store_access *access)
{
	for (size_t i = 0; i < COUNT(members); i++) {
		free(*text_of(access, i));
		if (members[i].is_secret)
			secret_destroy(secret_of(access, i)->secret);
	}
	*access = (struct store_access){0};
}

void store_access_lock(const struct store_access *access)
{
	for (size_t i = 0; i < COUNT(members); i++) {
		if (members[i].is_secret)
			secret_lock(secret_of(access, i)->secret);
	}
}

bool store_access_has_identity(const struct store_access *access)
{
	return access->digest.secret != NULL || access->tls_certificate != NULL ||
	       access->sasl_mechanism != NULL;
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

/* As people call it. */
static const char *title_of(const char *scheme)
{
	return strcmp(scheme, STORE_SCHEME_ZOOKEEPER) == 0 ? "ZooKeeper"
	       : strcmp(scheme, STORE_SCHEME_ETCD) == 0	   ? "etcd"
							   : "Redis";
}

/* Whether no key is set that is of another store than that of the scheme. */
static bool check_own(const struct store_access *access, const char *scheme, struct fault *fault)
{
	const char *key = NULL, *its = NULL;

	for (size_t i = 0; i < COUNT(members) && key == NULL; i++) {
		its = members[i].scheme;
		if (*text_of(access, i) != NULL && its != NULL && strcmp(its, scheme) != 0)
			key = members[i].key;
	}
	if (key == NULL && access->acl != STORE_ACL_AUTO &&
	    strcmp(scheme, STORE_SCHEME_ZOOKEEPER) != 0)
		key = "acl", its = STORE_SCHEME_ZOOKEEPER;
	return key == NULL ||
	       accuse(fault, key, "%s is for %s, expected it left out where %s is the store", key,
		      title_of(its), title_of(scheme));
}

/* The first key that begins so and is set, or NULL. */
static const char *find_set(const struct store_access *access, const char *prefix)
{
	for (size_t i = 0; i < COUNT(members); i++) {
		if (*text_of(access, i) != NULL &&
		    strncmp(members[i].key, prefix, strlen(prefix)) == 0)
			return members[i].key;
	}
	return NULL;
}

/* Which keys do not go together, or NULL. */
static const char *judge_zookeeper(const struct store_access *access)
{
	if ((access->tls_ca == NULL) != (access->tls_certificate == NULL) ||
	    (access->tls_ca == NULL) != (access->tls_key == NULL))
		return "not all of tls_ca, tls_certificate and tls_key, expected all or none";
	if (access->tls_password.file != NULL && access->tls_key == NULL)
		return "tls_password_file without tls_key, expected it as well";
	if (access->tls_password.secret != NULL &&
	    strchr(secret_next(access->tls_password.secret, NULL), ',') != NULL)
		return "a password with a comma in tls_password_file, expected one that "
		       "ZooKeeper's "
		       "library takes: without";
	if (access->tls_ca != NULL && access->sasl_mechanism != NULL)
		return "tls_ca and sasl_mechanism, expected one of them: ZooKeeper's library does "
		       "not do both";
	if (find_set(access, "sasl_") != NULL && access->sasl_mechanism == NULL)
		return "a key for SASL without sasl_mechanism, expected it as well";
	return NULL;
}

static bool check_zookeeper(const struct store_access *access, struct fault *fault)
{
	const char *tls = find_set(access, "tls_"), *sasl = find_set(access, "sasl_");
	const char *wrong;

	if (!check_own(access, STORE_SCHEME_ZOOKEEPER, fault))
		return false;
	if ((tls != NULL && !has_tls) || (sasl != NULL && !has_sasl))
		return accuse(fault, tls != NULL && !has_tls ? tls : sasl,
			      "%s: the ZooKeeper library of this build has no %s, expected one "
			      "that has, or this key left out",
			      tls != NULL && !has_tls ? tls : sasl,
			      tls != NULL && !has_tls ? "TLS" : "SASL");
	wrong = judge_zookeeper(access);
	if (wrong != NULL)
		return accuse(fault, NULL, "%s", wrong);
	if (store_access_acl(access) == STORE_ACL_OPEN || store_access_has_identity(access))
		return true;
	return accuse(fault, NULL,
		      "acl = %s, but nothing says who the creator is, expected digest_file, "
		      "tls_certificate or sasl_mechanism",
		      access->acl == STORE_ACL_PRIVATE ? "private" : "creator");
}

/* A key that is set, and needs another one that is not. */
struct lone {
	const char *key, *needed; /* NULL: there is none */
};

static void note_lone(struct lone *lone, const char *key, bool has_key, const char *needed,
		      bool has_needed)
{
	if (lone->key == NULL && has_key && !has_needed)
		*lone = (struct lone){key, needed};
}

/* Of what is the same for all that use our TLS. */
static struct lone find_lone_of_tls(const struct store_access *access)
{
	struct lone lone = {0};
	bool has_certificate = access->tls_certificate != NULL, has_key = access->tls_key != NULL;

	note_lone(&lone, "tls_password_file", access->tls_password.file != NULL, "tls_key",
		  has_key);
	note_lone(&lone, "tls_key", has_key, "tls_certificate", has_certificate);
	note_lone(&lone, "tls_certificate", has_certificate, "tls_key", has_key);
	return lone;
}

static bool check_lone(const struct lone *lone, struct fault *fault)
{
	return lone->key == NULL ||
	       accuse(fault, NULL, "%s without %s, expected it as well", lone->key, lone->needed);
}

/* As etcdctl has them: the servers' certificates are always checked, a certificate of one's own is
 * not needed. */
static bool check_etcd(const struct store_access *access, struct fault *fault)
{
	struct lone lone = find_lone_of_tls(access);
	bool has_password = access->password.file != NULL;

	note_lone(&lone, "tls_certificate", access->tls_certificate != NULL, "tls_ca",
		  access->tls_ca != NULL);
	note_lone(&lone, "etcd_user", access->user != NULL, "etcd_password_file", has_password);
	note_lone(&lone, "etcd_password_file", has_password, "etcd_user", access->user != NULL);
	return check_own(access, STORE_SCHEME_ETCD, fault) && check_lone(&lone, fault);
}

/* As redis-cli has them. That connections are by TLS is said by the address. */
static bool check_redis(const struct store_access *access, const struct store_url *url,
			struct fault *fault)
{
	struct lone lone = find_lone_of_tls(access);
	const char *tls = find_set(access, "tls_"), *own = find_set(access, "redis_");
	const char *sentinel = find_set(access, "sentinel_");
	bool is_redis = strcmp(url->scheme, STORE_SCHEME_REDIS) == 0;

	note_lone(&lone, "redis_user", access->redis_user != NULL, "redis_password_file",
		  access->redis_password.file != NULL);
	note_lone(&lone, "sentinel_user", access->sentinel_user != NULL, "sentinel_password_file",
		  access->sentinel_password.file != NULL);
	if (!check_own(access, STORE_SCHEME_REDIS, fault) || !check_lone(&lone, fault))
		return false;
	if (is_redis && sentinel != NULL && !store_url_has_sentinels(url))
		return accuse(fault, sentinel, "%s, but url has no +sentinel, expected it there",
			      sentinel);
	if (is_redis && tls != NULL && !url->has_tls)
		return accuse(fault, tls, "%s, but url is redis://, expected rediss://", tls);
	return own == NULL || (url->user == NULL && url->password == NULL) ||
	       accuse(fault, own, "%s, and a user or password in url as well, expected one of them",
		      own);
}

bool store_access_check(const struct store_access *access, const struct store_url *url,
			const char **ret_key, char *why, size_t why_bytes)
{
	struct fault fault, other;
	bool is_right;

	if (strcmp(url->scheme, STORE_SCHEME_ETCD) == 0)
		is_right = check_etcd(access, &fault);
	else if (strcmp(url->scheme, STORE_SCHEME_REDIS) == 0)
		is_right = check_redis(access, url, &fault);
	else
		is_right = check_zookeeper(access, &fault) ||
			   (strcmp(url->scheme, STORE_SCHEME_LOCAL) == 0 &&
			    (check_etcd(access, &other) || check_redis(access, url, &other)));
	if (is_right)
		return true;
	*ret_key = fault.key;
	snprintf(why, why_bytes, "%s", fault.why);
	return false;
}
