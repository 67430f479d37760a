/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the rules for what goes together. Any thread.
 */
#include "store_access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool copy_file(struct secret_file *to, const struct secret_file *from)
{
	if (!from->file)
		return true;
	to->file = strdup(from->file);
	to->secret = secret_copy(from->secret);
	return to->file && to->secret;
}

static void finish_file(struct secret_file *file)
{
	free(file->file);
	secret_destroy(file->secret);
}

int store_access_copy(struct store_access *ret, const struct store_access *access)
{
	*ret = (struct store_access){.acl = access->acl};
	if (copy_file(&ret->digest, &access->digest))
		return 0;
	store_access_finish(ret);
	return -ENOMEM;
}

void store_access_finish(struct store_access *access)
{
	finish_file(&access->digest);
	*access = (struct store_access){0};
}

bool store_access_has_identity(const struct store_access *access)
{
	return access->digest.secret;
}

enum store_acl store_access_acl(const struct store_access *access)
{
	if (access->acl != STORE_ACL_AUTO)
		return (enum store_acl)access->acl;
	return store_access_has_identity(access) ? STORE_ACL_CREATOR : STORE_ACL_OPEN;
}

bool store_access_check(const struct store_access *access, char *why, size_t why_bytes)
{
	bool open = store_access_acl(access) == STORE_ACL_OPEN;

	if (open || store_access_has_identity(access))
		return true;
	snprintf(why, why_bytes,
		 "acl = %s, but nothing says who the creator is, expected digest_file",
		 access->acl == STORE_ACL_PRIVATE ? "private" : "creator");
	return false;
}
