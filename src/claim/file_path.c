/* SPDX-License-Identifier: Apache-2.0
 *
 * Pure functions, any thread.
 */
#include "claim/file_path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *file_path_put_plain(char *to, const char *path)
{
	const char *rest = strstr(path, "//");
	char *end;

	if (rest == NULL)
		return stpcpy(to, path);
	end = mempcpy(to, path, (size_t)(rest - path));
	end = stpcpy(end, rest + (rest == path ? 2 : 1));
	if (end > to && end[-1] == '/')
		*--end = '\0';
	return end;
}

char *file_path_plain(const char *path)
{
	char *plain = malloc(strlen(path) + 1);

	if (plain != NULL)
		file_path_put_plain(plain, path);
	return plain;
}

static bool is_component(const char *name, size_t bytes)
{
	return bytes > 0 && bytes <= NAME_MAX && strncmp(name, ".", bytes) != 0 &&
	       (bytes != 2 || memcmp(name, "..", 2) != 0);
}

/* Components, each with one slash behind it. */
static bool are_components(const char *path, const char *end)
{
	while (path < end) {
		size_t bytes = strcspn(path, "/");
		if (!is_component(path, bytes))
			return false;
		path += bytes + 1;
	}
	return true;
}

bool file_path_is_queue(const char *path)
{
	const char *slashes = strstr(path, "//"), *end = path + strlen(path);

	if (slashes == NULL || slashes + 2 == end || end[-1] != '/' ||
	    end - path > FILE_QUEUE_BYTES_MAX)
		return false;
	return (slashes == path || are_components(path, slashes + 1)) &&
	       are_components(slashes + 2, end);
}
