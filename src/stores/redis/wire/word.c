/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the table of words. Any thread.
 */
#include "stores/redis/wire/word.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const struct word words[] = {
	{"NOAUTH", -EACCES, true,
	 "the server wants to know who we are: set redis_password_file, or user and password in "
	 "url"},
	{"WRONGPASS", -EACCES, true,
	 "the server refuses user and password: see redis_user and redis_password_file, or url"},
	{"NOPERM", -EACCES, false,
	 "the server does not allow its user what locks need: commands, keys or channels (ACL "
	 "LOG)"},
	{"DENIED", -EACCES, true,
	 "the server takes connections of its own host only (protected-mode)"},
	{"LOADING", -EAGAIN, true, "the server is loading its data"},
	{"READONLY", -EROFS, true, "the server is a replica, and takes no locks"},
	{"MASTERDOWN", -EAGAIN, true, "the server is a replica that has lost its primary"},
	{"NOREPLICAS", -EAGAIN, false,
	 "the server has too few replicas to write (min-replicas-to-write)"},
	{"MISCONF", -EAGAIN, false, "the server cannot write to its disk, and takes no locks"},
	{"OOM", -ENOMEM, false, "the server is full (maxmemory)"},
	{"BUSY", -EAGAIN, false, "a script of somebody keeps the server busy (SCRIPT KILL)"},
	{"MOVED", -EREMOTE, false, "the server is one of a cluster: locks need one without slots"},
	{"CROSSSLOT", -EREMOTE, false,
	 "the server is one of a cluster: locks need one without slots"},
	{"CLUSTERDOWN", -EREMOTE, false,
	 "the server is one of a cluster: locks need one without slots"},
	{"WRONGTYPE", -EBADMSG, false, NULL},
};

/* Whether the word stands there, and is a whole one. */
static const char *find_whole(const char *text, const char *word)
{
	size_t bytes = strlen(word);

	for (const char *at = text; (at = strstr(at, word)) != NULL; at += bytes) {
		if ((at == text || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[bytes]))
			return at;
	}
	return NULL;
}

const struct word *word_find(const char *error)
{
	const struct word *found = NULL;
	const char *first = NULL;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		const char *at = find_whole(error, words[i].text);

		if (at != NULL && (first == NULL || at < first))
			first = at, found = &words[i];
	}
	return found;
}

bool word_is_noscript(const char *error)
{
	return strncmp(error, "NOSCRIPT", strlen("NOSCRIPT")) == 0;
}
