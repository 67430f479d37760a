/* SPDX-License-Identifier: Apache-2.0
 *
 * Pure functions, any thread.
 */
#include "claim/file_path.h"

#include <stdlib.h>
#include <string.h>

char *file_path_plain(const char *path)
{
	const char *rest = strstr(path, "//");
	char *plain = malloc(strlen(path) + 1);

	if (plain == NULL)
		return NULL;
	if (rest == NULL)
		return strcpy(plain, path);
	size_t top = (size_t)(rest - path);
	memcpy(plain, path, top);
	strcpy(plain + top, rest + (top == 0 ? 2 : 1));
	size_t bytes = strlen(plain);
	if (bytes > 0 && plain[bytes - 1] == '/')
		plain[bytes - 1] = '\0';
	return plain;
}
