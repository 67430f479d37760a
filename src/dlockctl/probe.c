/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/inside.h"
#include "dlockctl/look.h"
#include "dlockctl/tree.h"

static int ask_root(const void *mount, char **ret_text, size_t *ret_bytes)
{
	struct statfs system;
	struct stat *attr = must(calloc(1, sizeof(*attr)));

	if (statfs(mount, &system) < 0 || stat(mount, attr) < 0) {
		int error = -errno;
		free(attr);
		return error;
	}
	*ret_text = (char *)attr;
	*ret_bytes = sizeof(*attr);
	return 0;
}

/* Whether a process was started, and the mount has answered. */
static bool answered(int error)
{
	return error != LOOK_NO_ANSWER && error != LOOK_TOO_LATE;
}

int probe_mount(const char *mount, const char *file, struct probe *ret)
{
	struct stat attr;
	char *text = NULL;
	size_t bytes;

	*ret = (struct probe){0};
	int error = look(NULL, ask_root, mount, &text, &bytes);
	if (error == -ENOMEM || error == -EAGAIN || error == -EMFILE || error == -ENFILE)
		return error;
	ret->mount_answered = answered(error);
	ret->mount_error = error;
	if (!ret->mount_answered)
		return 0;
	if (error == 0) {
		memcpy(&attr, text, sizeof(attr));
		ret->mode = attr.st_mode;
		ret->device = attr.st_dev;
		free(text);
	}
	error = tree_read(mount, file, &ret->text, &bytes);
	ret->file_answered = answered(error);
	ret->file_error = error;
	return 0;
}

/* A directory of the mount; its name is "" for the root. */
struct directory {
	const char *mount;
	const char *name;
};

/* Makes a name in the directory, and takes it away. In the child of a look. */
static int ask_names(const void *what, char **ret_text, size_t *ret_bytes)
{
	const struct directory *directory = what;
	const struct dirent *entry;
	int folder = inside_open(directory->mount, directory->name, O_RDONLY | O_DIRECTORY, 0);
	char *name = must_format(".doctor.%d", (int)getpid());
	int error = folder < 0 ? folder : 0;
	int fd = folder < 0 ? -1
			    : openat(folder, name,
				     O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);

	if (folder >= 0 && (fd < 0 || close(fd) < 0 || unlinkat(folder, name, 0) < 0))
		error = -errno;
	free(name);
	DIR *stream = error == 0 ? fdopendir(folder) : NULL;
	FILE *out = must(open_memstream(ret_text, ret_bytes));
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			fwrite(entry->d_name, 1, strlen(entry->d_name) + 1, out);
	}
	if (stream != NULL)
		closedir(stream);
	else if (folder >= 0)
		close(folder);
	fclose(out);
	return error;
}

int probe_names(const char *mount, const char *name, char **ret_text, size_t *ret_bytes)
{
	const struct directory directory = {mount, name};

	return look(NULL, ask_names, &directory, ret_text, ret_bytes);
}
