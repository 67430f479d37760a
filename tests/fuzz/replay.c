/* SPDX-License-Identifier: Apache-2.0
 *
 * In place of libFuzzer: calls the target with the content of every file that is named, or is in a
 * folder that is named.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

static size_t inputs;

static void fail(const char *path)
{
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	exit(2);
}

static void replay_file(const char *path, size_t bytes)
{
	FILE *file = fopen(path, "re");
	uint8_t *data = malloc(bytes + 1); /* a sanitizer sees what is read beyond the end */

	if (!file || !data || fread(data, 1, bytes, file) != bytes)
		fail(path);
	fclose(file);
	data = realloc(data, bytes > 0 ? bytes : 1);
	if (!data)
		fail(path);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(data, bytes);
	free(data);
	inputs++;
}

static void replay(const char *path);

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay_folder(const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_input, alphasort);

	if (count < 0)
		fail(folder);
	for (int i = 0; i < count; i++) {
		char *path;

		if (asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0)
			fail(folder);
		replay(path);
		free(path);
		free(entries[i]);
	}
	free(entries);
}

static void replay(const char *path)
{
	struct stat attr;

	if (stat(path, &attr) < 0)
		fail(path);
	if (S_ISDIR(attr.st_mode))
		replay_folder(path);
	else
		replay_file(path, (size_t)attr.st_size);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	if (inputs == 0)
		fprintf(stderr, "no input, expected files or folders\n");
	return inputs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
