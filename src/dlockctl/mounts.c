/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"

#define LIST	   "/proc/self/mountinfo"
#define MOUNT_TYPE "fuse.dlockfs"

/* The fields of proc_pid_mountinfo(5) that have a fixed place: "36 35 0:47 /root /folder options",
 * then any number of others, "-", type, source, options of the file system. */
enum { FIELD_DEVICE = 2, FIELD_ROOT, FIELD_FOLDER, FIELDS };

/* Undoes what the kernel does with spaces, tabs, newlines and backslashes: \040 and so on. */
static char *decode(const char *text)
{
	char *result = must(strdup(text)), *out = result;

	for (const char *at = text; *at != '\0'; out++) {
		unsigned int byte;
		if (*at == '\\' && sscanf(at + 1, "%3o", &byte) == 1) {
			*out = (char)byte;
			at += 4;
		} else {
			*out = *at++;
		}
	}
	*out = '\0';
	return result;
}

/* Who has mounted it, from the options "rw,user_id=0,...". */
static unsigned long owner_of(const char *options)
{
	static const char key[] = "user_id=";
	const char *owner = strstr(options, key);

	return owner != NULL ? strtoul(owner + strlen(key), NULL, 10) : 0;
}

/* Whether the kernel lets root use mounts of others (fuse_allow_current_process() of Linux 6.0). */
static bool root_is_let_in(void)
{
	int letter = 'N';
	FILE *file = fopen("/sys/module/fuse/parameters/allow_sys_admin_access", "re");

	if (file != NULL) {
		letter = fgetc(file);
		fclose(file);
	}
	return letter == 'Y';
}

/* Whether the kernel refuses the caller. */
static bool is_private(const char *options)
{
	return owner_of(options) != geteuid() && strstr(options, ",allow_other") == NULL &&
	       (geteuid() != 0 || !root_is_let_in());
}

static struct mount *find(const struct mounts *mounts, const char *folder)
{
	for (size_t i = 0; i < mounts->count; i++) {
		if (strcmp(mounts->list[i].folder, folder) == 0)
			return &mounts->list[i];
	}
	return NULL;
}

static void mount_finish(struct mount *mount)
{
	free(mount->folder);
	free(mount->root);
	free(mount->device);
	free(mount->owner);
}

/* A mount upon another one, such as a dead one, hides that. */
static void add(struct mounts *mounts, const struct mount *fresh)
{
	struct mount *former = find(mounts, fresh->folder);

	if (former != NULL) {
		mount_finish(former);
		memmove(former, former + 1,
			(size_t)(mounts->list + mounts->count - (former + 1)) * sizeof(*former));
		mounts->count--;
	}
	mounts->list = must(reallocarray(mounts->list, mounts->count + 1, sizeof(*mounts->list)));
	mounts->list[mounts->count++] = *fresh;
}

/* Adds the mount of a line if it is one of dlockfs. */
static void read_line(struct mounts *mounts, char *line)
{
	char *fields[FIELDS], *rest = line, *word;

	for (size_t i = 0; i < FIELDS; i++)
		fields[i] = strsep(&rest, " \n");
	while ((word = strsep(&rest, " \n")) != NULL && strcmp(word, "-") != 0)
		;
	const char *type = strsep(&rest, " \n");
	strsep(&rest, " \n"); /* the source */
	const char *options = strsep(&rest, " \n");
	if (options == NULL || strcmp(type, MOUNT_TYPE) != 0)
		return;
	struct mount mount = {
		.folder = decode(fields[FIELD_FOLDER]),
		.root = decode(fields[FIELD_ROOT]),
		.device = must(strdup(fields[FIELD_DEVICE])),
		.trusted = owner_of(options) == 0 || owner_of(options) == geteuid(),
		.owner = must_format("%lu", owner_of(options)),
		.is_private = is_private(options),
	};
	add(mounts, &mount);
}

int mounts_read(struct mounts *mounts)
{
	FILE *file = fopen(LIST, "re");
	char *line = NULL;
	size_t room = 0;

	*mounts = (struct mounts){0};
	if (file == NULL)
		return fail(EX_OSERR, LIST ": %s; /proc must be mounted", strerror(errno));
	while (getline(&line, &room, file) > 0)
		read_line(mounts, line);
	fclose(file);
	free(line);
	return 0;
}

const struct mount *mounts_at(const struct mounts *mounts, const char *folder)
{
	return find(mounts, folder);
}

const struct mount *mounts_above(const struct mounts *mounts, const char *path)
{
	const struct mount *best = NULL;

	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount *mount = &mounts->list[i];
		if (path_below(path, mount->folder) != NULL &&
		    (best == NULL || strlen(mount->folder) > strlen(best->folder)))
			best = mount;
	}
	return best;
}

const struct mount *mounts_whole(const struct mounts *mounts, const struct mount *part)
{
	if (mount_is_whole(part))
		return part;
	for (size_t i = 0; i < mounts->count; i++) {
		const struct mount *mount = &mounts->list[i];
		if (mount_is_whole(mount) && strcmp(mount->device, part->device) == 0)
			return mount;
	}
	return NULL;
}

void mounts_finish(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++)
		mount_finish(&mounts->list[i]);
	free(mounts->list);
}

bool mount_is_whole(const struct mount *mount)
{
	return strcmp(mount->root, "/") == 0;
}

const char *path_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	if (strncmp(path, folder, length) != 0 || path[length] != '/')
		return NULL;
	for (path += length; *path == '/'; path++)
		;
	return path;
}
