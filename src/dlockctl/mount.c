/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/mount.h"

#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNT_TYPE "fuse.dlockfs"
#define QUEUE_PART "/.queue"

struct mount {
	char *folder;
	bool trusted; /* mounted by root or by the caller: other users must not decide which locks
			 the caller uses */
};

struct mounts {
	struct mount *list;
	size_t count;
};

static struct mount *mounts_get(const struct mounts *mounts, const char *folder)
{
	for (size_t i = 0; i < mounts->count; i++) {
		if (strcmp(mounts->list[i].folder, folder) == 0)
			return &mounts->list[i];
	}
	return NULL;
}

static bool is_trusted(const struct mntent *entry)
{
	const char *owner = hasmntopt(entry, "user_id");
	unsigned long uid = owner != NULL && owner[7] == '=' ? strtoul(owner + 8, NULL, 10) : 0;
	return uid == 0 || uid == geteuid();
}

static int mounts_read(struct mounts *mounts)
{
	struct mntent entry;
	char line[2 * PATH_MAX];
	FILE *file = setmntent("/proc/self/mounts", "re");
	if (file == NULL)
		return fail(EX_OSERR, "/proc/self/mounts: %s; /proc must be mounted",
			    strerror(errno));
	while (getmntent_r(file, &entry, line, sizeof(line)) != NULL) {
		if (strcmp(entry.mnt_type, MOUNT_TYPE) != 0)
			continue;
		/* A mount upon a dead one has the same folder. */
		struct mount *mount = mounts_get(mounts, entry.mnt_dir);
		if (mount == NULL) {
			mounts->list = must(reallocarray(mounts->list, mounts->count + 1,
							 sizeof(*mounts->list)));
			mount = &mounts->list[mounts->count++];
			mount->folder = must(strdup(entry.mnt_dir));
		}
		mount->trusted = is_trusted(&entry);
	}
	endmntent(file);
	return 0;
}

static void mounts_finish(struct mounts *mounts)
{
	for (size_t i = 0; i < mounts->count; i++)
		free(mounts->list[i].folder);
	free(mounts->list);
}

static int several(const struct mounts *mounts, size_t count)
{
	char *list = must(strdup(""));
	for (size_t i = 0; i < mounts->count; i++) {
		if (!mounts->list[i].trusted)
			continue;
		char *longer = must_format("%s%s%s", list, list[0] != '\0' ? " or " : "",
					   mounts->list[i].folder);
		free(list);
		list = longer;
	}
	int status = fail(EXIT_AMBIGUOUS,
			  "mount: there are %zu of dlockfs; choose with --mount: %s", count, list);
	free(list);
	return status;
}

/* Finds the only mount of root and the caller. */
static int only_mount(const struct mounts *mounts, char **ret_folder)
{
	const struct mount *found = NULL;
	size_t count = 0;
	for (size_t i = 0; i < mounts->count; i++) {
		if (!mounts->list[i].trusted)
			continue;
		found = &mounts->list[i];
		count++;
	}
	if (count > 1)
		return several(mounts, count);
	if (found == NULL)
		return fail(EXIT_NO_MOUNT,
			    "mount: no dlockfs is mounted%s; mount one, or name "
			    "its folder with --mount",
			    mounts->count > 0 ? " but those of other users" : "");
	*ret_folder = must(strdup(found->folder));
	return 0;
}

static bool has_tree(const char *folder)
{
	struct stat stat_buffer;
	char *tree = must_format("%s/.dlockfs", folder);
	bool found = stat(tree, &stat_buffer) == 0 && S_ISDIR(stat_buffer.st_mode);
	free(tree);
	return found;
}

/* Finds the mount of --mount: the folder as in the list of mounts, another name of it, or a folder
 * that looks like a mount. */
static int given_mount(const struct mounts *mounts, const char *given, char **ret_folder)
{
	char *folder = must(strdup(given));
	size_t length = strlen(folder);
	while (length > 1 && folder[length - 1] == '/')
		folder[--length] = '\0';
	if (mounts_get(mounts, folder) == NULL) {
		char *real = realpath(folder, NULL);
		if (real == NULL) {
			int error = errno;
			free(folder);
			return fail(error == ENOENT ? EXIT_NO_MOUNT : status_of_errno(error),
				    "--mount %s: %s; expected the folder of a mount of dlockfs",
				    given, strerror(error));
		}
		free(folder);
		folder = real;
	}
	if (mounts_get(mounts, folder) == NULL && !has_tree(folder)) {
		free(folder);
		return fail(EXIT_NO_MOUNT,
			    "--mount %s: is no mount of dlockfs; see: findmnt -t " MOUNT_TYPE,
			    given);
	}
	*ret_folder = folder;
	return 0;
}

/* The part of a path that is below the folder, or NULL. */
static const char *below(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	if (strncmp(path, folder, length) != 0 || path[length] != '/')
		return NULL;
	for (path += length; *path == '/'; path++)
		;
	return path;
}

/* The mount of an absolute path: the innermost. */
static const char *mount_of_path(const struct mounts *mounts, const char *path)
{
	const char *best = NULL;
	for (size_t i = 0; i < mounts->count; i++) {
		const char *folder = mounts->list[i].folder;
		if (below(path, folder) != NULL && (best == NULL || strlen(folder) > strlen(best)))
			best = folder;
	}
	return best;
}

static int choose(const struct context *context, const struct mounts *mounts, const char *name,
		  char **ret_folder)
{
	const char *of_path = name != NULL && name[0] == '/' ? mount_of_path(mounts, name) : NULL;

	if (context->mount != NULL)
		return given_mount(mounts, context->mount, ret_folder);
	if (of_path == NULL && name != NULL && name[0] == '/')
		return fail(EX_USAGE,
			    "%s: is not below a mount of dlockfs; expected the name of a lock, "
			    "without the mount",
			    name);
	if (of_path == NULL)
		return only_mount(mounts, ret_folder);
	*ret_folder = must(strdup(of_path));
	return 0;
}

/* Why a name cannot be that of a lock, or NULL. */
static const char *wrong_name(const char *name)
{
	if (name[0] == '\0')
		return "is empty";
	if (strlen(name) >= PATH_MAX)
		return "is too long";
	if (strcmp(name, ".dlockfs") == 0 || strncmp(name, ".dlockfs/", 9) == 0)
		return "is reserved";
	for (const char *part = name;; part++) {
		size_t length = strcspn(part, "/");
		if (length == 0)
			return "has an empty component";
		if (strncmp(part, "..", length) == 0 && length <= 2)
			return "has a component \".\" or \"..\"";
		part += length;
		if (*part == '\0')
			return NULL;
	}
}

static int take_name(const char *name, struct place *place)
{
	const char *rest = name;
	if (name[0] == '/') {
		rest = below(name, place->mount);
		if (rest == NULL)
			return fail(EX_USAGE, "%s: is not below %s; expected the name of a lock",
				    name, place->mount);
	}
	const char *why = wrong_name(rest);
	if (why != NULL)
		return fail(EX_USAGE, "%s: the name %s; expected one like cron/backup", name, why);
	place->name = must(strdup(rest));
	return 0;
}

int place_find(const struct context *context, const char *name, struct place *place)
{
	struct mounts mounts = {0};

	*place = (struct place){0};
	int status = mounts_read(&mounts);
	if (status == 0)
		status = choose(context, &mounts, name, &place->mount);
	if (status == 0 && name != NULL)
		status = take_name(name, place);
	mounts_finish(&mounts);
	return status;
}

bool place_has_queue(const struct place *place)
{
	const char *found = strstr(place->name, QUEUE_PART);
	while (found != NULL && found[strlen(QUEUE_PART)] != '/' &&
	       found[strlen(QUEUE_PART)] != '\0')
		found = strstr(found + 1, QUEUE_PART);
	return found == NULL;
}

int place_find_queue(const struct context *context, const char *name, struct place *place)
{
	int status = place_find(context, name, place);
	if (status == 0 && !place_has_queue(place))
		return fail(EX_USAGE,
			    "%s: the lock cannot be looked at by this name, as \".queue\" below "
			    "another one is the queue of that; see: dlockctl ls",
			    name);
	return status;
}

void place_finish(struct place *place)
{
	free(place->mount);
	free(place->name);
	*place = (struct place){0};
}
