/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/commands/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/inside.h"

/* Makes missing directories: they are of this host only, so one that other hosts use may be missing
 * here. */
static void make_parents(const struct place *place)
{
	const char *slash = place->name;

	for (; (slash = strchr(slash, '/')) != NULL; slash++) {
		char *above = must(strndup(place->name, (size_t)(slash - place->name)));
		inside_make_directory(place->mount, above, 0777);
		free(above);
	}
}

/* A lock in use on this host is a file of the mount, and has nothing below it. */
static int fail_below_file(const struct place *place)
{
	size_t bytes = 0;
	int directory;

	do {
		bytes += strcspn(place->name + bytes + 1, "/") + 1;
		char *above = must(strndup(place->name, bytes));
		directory = inside_open(place->mount, above, O_PATH | O_DIRECTORY, 0);
		if (directory >= 0)
			close(directory);
		free(above);
	} while (place->name[bytes] != '\0' && directory >= 0);
	return fail(EX_NOINPUT,
		    "%s: %.*s is a lock in use on this host, and nothing can be below it; expected "
		    "another name",
		    place->name, (int)bytes, place->name);
}

static int open_failed(const struct place *place, int error)
{
	int status = status_of_errno(error);
	if (error == ENOTDIR)
		return fail_below_file(place);
	if (error == EISDIR)
		return fail(EX_NOINPUT,
			    "%s: is a directory, whose lock would be of this host only; expected "
			    "another name",
			    place->name);
	if (error == ELOOP || error == EXDEV)
		return fail(EX_NOINPUT,
			    "%s: a symbolic link, or another mount, is on the way, and may lead "
			    "anywhere; expected the name of a lock",
			    place->name);
	if (status == EXIT_NO_MOUNT)
		return fail(status, "%s: the mount is dead: %s; start dlockfs again", place->mount,
			    strerror(error));
	if (error == EROFS || error == ENOSPC)
		status = EX_CANTCREAT;
	else if (status != EX_NOPERM && status != EX_OSERR)
		status = EX_NOINPUT;
	return fail(status, "%s: cannot be opened: %s; expected the name of a lock", place->name,
		    strerror(error));
}

int opening_lock(const struct place *place, int *ret_fd)
{
	const int flags = O_RDONLY | O_CREAT | O_NOCTTY;
	int fd = inside_open(place->mount, place->name, flags, 0666);
	if (fd == -ENOENT) {
		make_parents(place);
		fd = inside_open(place->mount, place->name, flags, 0666);
	}
	if (fd < 0)
		return open_failed(place, -fd);
	*ret_fd = fd;
	return 0;
}
