/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the folder's path.
 */
#include "base/off_limits.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel's MAXSYMLINKS */

static char *off_limits; /* NULL: there is none */

int off_limits_set(const char *folder)
{
	char *copy = strdup(folder);

	if (copy == NULL)
		return -ENOMEM;
	free(off_limits);
	off_limits = copy;
	return 0;
}

/* Adds a component to the path, which has no symbolic links and no slash at its end. Returns false
 * if there is no room. */
static bool add(char path[PATH_MAX], const char *component, size_t bytes)
{
	size_t length = strlen(path);

	if (bytes == 0 || (bytes == 1 && component[0] == '.'))
		return true;
	if (bytes == 2 && component[0] == '.' && component[1] == '.') {
		char *slash = strrchr(path, '/');
		if (slash != NULL)
			*slash = '\0';
		return true;
	}
	if (length + 1 + bytes >= PATH_MAX)
		return false;
	path[length] = '/';
	memcpy(path + length + 1, component, bytes);
	path[length + 1 + bytes] = '\0';
	return true;
}

/* Puts the target of a symbolic link in front of the rest of the path. */
static bool put_in_front(char rest[PATH_MAX], const char *target)
{
	char joined[2 * PATH_MAX];
	int length = snprintf(joined, sizeof(joined), "%s/%s", target, rest);

	if (length < 0 || length >= PATH_MAX)
		return false;
	memcpy(rest, joined, (size_t)length + 1);
	return true;
}

/* Takes the path's next component off `rest`, and follows it. Returns false at an error. */
static bool step(char path[PATH_MAX], char rest[PATH_MAX], int *links)
{
	size_t bytes = strcspn(rest, "/"), before = strlen(path);
	char target[PATH_MAX];

	if (!add(path, rest, bytes))
		return false;
	bytes += rest[bytes] == '/';
	memmove(rest, rest + bytes, strlen(rest + bytes) + 1);
	if (strlen(path) <= before || strcmp(path, off_limits) == 0)
		return true;
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return true; /* no symbolic link; or there is nothing, and open(2) will say so */
	target[length] = '\0';
	path[target[0] == '/' ? 0 : before] = '\0';
	return ++*links <= LINKS_MAX && put_in_front(rest, target);
}

bool off_limits_has(const char *path)
{
	char at[PATH_MAX] = "", rest[PATH_MAX], folder[PATH_MAX];
	int links = 0;

	if (off_limits == NULL || strlen(path) >= sizeof(rest))
		return false;
	strcpy(rest, path);
	if (path[0] != '/' &&
	    (getcwd(folder, sizeof(folder)) == NULL || !put_in_front(rest, folder)))
		return false;
	while (rest[0] != '\0' && strcmp(at, off_limits) != 0) {
		if (!step(at, rest, &links))
			return false;
	}
	return strcmp(at, off_limits) == 0;
}

bool off_limits_refuses(const char *file, char *why, size_t why_bytes)
{
	if (!off_limits_has(file))
		return false;
	snprintf(why, why_bytes,
		 "%s: is below the mount point %s itself, expected a file elsewhere", file,
		 off_limits);
	return true;
}
