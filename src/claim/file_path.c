/* SPDX-License-Identifier: Apache-2.0
 *
 * Pure functions, any thread.
 */
#include "claim/file_path.h"

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
