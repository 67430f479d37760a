/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "files/lockfile_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/lockfile_text.h"

/* Behind the id. The names of claims end in digits. */
#define SUFFIX ".file"

/* Whether the directory of that length is, or leads to, one that the configuration has made: names
 * in there are not of what is above. */
static bool is_configured(const struct config *config, const char *path, size_t bytes)
{
	for (char **directory = config->directories; directory != NULL && *directory != NULL;
	     directory++) {
		if (strncmp(*directory, path, bytes) == 0 &&
		    ((*directory)[bytes] == '\0' || (*directory)[bytes] == '/'))
			return true;
	}
	return false;
}

static bool keeps_files(const struct config *config, const char *path, size_t bytes)
{
	char *directory = strndup(path, bytes);
	bool keeps = directory != NULL && config_policy(config, directory).style == STYLE_FILE;

	free(directory);
	return keeps;
}

/* The length of the path of the directory of `style = file` which the path is in, or is itself;
 * SIZE_MAX: the path is in none. As the configuration says, whether or not this host has the
 * directory. */
static size_t top_bytes_of(const void *config, const char *path)
{
	size_t top_bytes = SIZE_MAX, bytes = 0;

	for (;;) {
		if (keeps_files(config, path, bytes) &&
		    (top_bytes == SIZE_MAX || is_configured(config, path, bytes)))
			top_bytes = bytes;
		if (path[bytes] == '\0')
			return top_bytes;
		bytes += path[bytes] == '/';
		bytes += strcspn(path + bytes, "/");
	}
}

/* NULL: out of memory. */
static char *store_path(const char *path, size_t top_bytes, const char *end)
{
	char *stored;
	int bytes = asprintf(&stored, "%.*s//%s%s", (int)top_bytes, path,
			     path + top_bytes + (top_bytes > 0), end);

	return bytes < 0 ? NULL : stored;
}

static bool is_lockfile(const char *path, size_t top_bytes)
{
	return top_bytes != SIZE_MAX && path[top_bytes] != '\0';
}

char *lockfile_view_queue_path(const struct config *config, const char *path)
{
	size_t bytes = top_bytes_of(config, path);
	return is_lockfile(path, bytes) ? store_path(path, bytes, "/") : strdup(path);
}

char *lockfile_view_file_path(const struct config *config, const char *path)
{
	size_t bytes = top_bytes_of(config, path);

	errno = ENOENT;
	return is_lockfile(path, bytes) ? store_path(path, bytes, "") : NULL;
}

bool lockfile_view_parse(const char *claim, char id[LOCKFILE_ID_BYTES])
{
	if (strlen(claim) != LOCKFILE_ID_BYTES - 1 + strlen(SUFFIX) ||
	    strcmp(claim + LOCKFILE_ID_BYTES - 1, SUFFIX) != 0)
		return false;
	memcpy(id, claim, LOCKFILE_ID_BYTES - 1);
	id[LOCKFILE_ID_BYTES - 1] = '\0';
	return true;
}

/* Returns false when out of memory. */
static bool copy(const char *text, char **ret)
{
	*ret = strdup(text);
	return *ret != NULL;
}

static int read_facts(const struct store_claim *claim, struct view_facts *ret)
{
	struct lockfile_facts facts;
	int error = lockfile_text_parse(claim, &facts);
	bool done = error == 0;

	*ret = (struct view_facts){.kind = "file", .uid = -1};
	if (error != 0)
		return error;
	snprintf(ret->name, sizeof(ret->name), "%s" SUFFIX, facts.id);
	ret->is_directory = S_ISDIR(facts.mode);
	if (ret->is_directory)
		ret->kind = "directory";
	if (S_ISLNK(facts.mode)) {
		ret->kind = "symlink";
		done = copy(facts.text != NULL ? facts.text : "", &ret->target);
	}
	if (facts.host[0] != '\0') {
		ret->pid = facts.maker;
		ret->uid = facts.uid;
		done = done && copy(facts.host, &ret->host) && copy(facts.command, &ret->command);
	}
	ret->queue = facts.queue;
	facts.queue = NULL;
	lockfile_text_finish(&facts);
	return done ? 0 : -ENOMEM;
}

const struct view_files lockfile_view_files = {.top_bytes = top_bytes_of, .read = read_facts};
