/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the rules for keys that go together. Any thread.
 */
#include "config/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define MEMBER(name) offsetof(struct store_access, name)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The members of each kind. */
static const size_t texts[] = {MEMBER(tls_ca),	       MEMBER(tls_certificate), MEMBER(tls_key),
			       MEMBER(sasl_mechanism), MEMBER(sasl_user),	MEMBER(sasl_realm),
			       MEMBER(sasl_service),   MEMBER(sasl_host)};
static const size_t secrets[] = {MEMBER(digest), MEMBER(tls_password), MEMBER(sasl_password)};

static char **text_of(const struct store_access *access, size_t i)
{
	return (char **)((char *)access + texts[i]);
}

static struct secret_file *secret_of(const struct store_access *access, size_t i)
{
	return (struct secret_file *)((char *)access + secrets[i]);
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

/* Which keys do not go together, or NULL. */
static const char *judge(const struct store_access *access)
{
	bool has_sasl = access->sasl_user || access->sasl_password.file || access->sasl_realm ||
			access->sasl_service || access->sasl_host;

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
	if (has_sasl && !access->sasl_mechanism)
		return "a key for SASL without sasl_mechanism, expected it as well";
	return NULL;
}

bool store_access_check(const struct store_access *access, char *why, size_t why_bytes)
{
	const char *wrong = judge(access);

	if (wrong) {
		snprintf(why, why_bytes, "%s", wrong);
		return false;
	}
	if (store_access_acl(access) == STORE_ACL_OPEN || store_access_has_identity(access))
		return true;
	snprintf(why, why_bytes,
		 "acl = %s, but nothing says who the creator is, expected digest_file, "
		 "tls_certificate or sasl_mechanism",
		 access->acl == STORE_ACL_PRIVATE ? "private" : "creator");
	return false;
}
