/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"

int inside_open(const char *mount, const char *name, int flags, mode_t mode)
{
	const struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int folder = open(mount, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return -errno;
	int fd = (int)syscall(SYS_openat2, folder, name[0] != '\0' ? name : ".", &how, sizeof(how));
	int error = fd < 0 ? -errno : 0;
	close(folder);
	return error != 0 ? error : fd;
}

int inside_make_directory(const char *mount, const char *name, mode_t mode)
{
	const char *slash = strrchr(name, '/');
	char *above = must(strndup(name, slash != NULL ? (size_t)(slash - name) : 0));
	int folder = inside_open(mount, above, O_PATH | O_DIRECTORY, 0);
	int error = folder < 0 ? folder : 0;

	if (folder >= 0 && mkdirat(folder, slash != NULL ? slash + 1 : name, mode) < 0)
		error = -errno;
	if (folder >= 0)
		close(folder);
	free(above);
	return error;
}
