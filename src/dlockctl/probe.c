/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "dlockctl/dlockctl.h"
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
