/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/mount.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlockctl/look.h"
#include "dlockctl/mounts.h"
#include "dlockctl/private_mount.h"
#include "dlockctl/service.h"

#define DEFAULT_FOLDER "/run/dlocks" /* of dlockfs.service */
#define VARIABLE       "DLOCKFS_MOUNT"
#define QUEUE_PART     "/.queue"

/* The mounts among which one is chosen if none is named: of each file system one, the first, or
 * that at DEFAULT_FOLDER. */
struct candidates {
	const struct mount **list;
	size_t count;
};

static void add_candidate(struct candidates *candidates, const struct mount *mount)
{
	bool preferred = strcmp(mount->folder, DEFAULT_FOLDER) == 0;

	for (size_t i = 0; i < candidates->count; i++) {
		if (strcmp(candidates->list[i]->device, mount->device) != 0)
			continue;
		if (preferred)
			candidates->list[i] = mount;
		return;
	}
	candidates->list = must(
		reallocarray(candidates->list, candidates->count + 1, sizeof(*candidates->list)));
	candidates->list[candidates->count++] = mount;
}

/* Those of root and the caller. A mount of a directory has no .dlockfs: only if there is no other.
 */
static struct candidates find_candidates(const struct mounts *mounts)
{
	struct candidates candidates = {0};

	for (size_t i = 0; i < mounts->count; i++) {
		if (mounts->list[i].trusted && mount_is_whole(&mounts->list[i]))
			add_candidate(&candidates, &mounts->list[i]);
	}
	for (size_t i = 0; candidates.count == 0 && i < mounts->count; i++) {
		if (mounts->list[i].trusted)
			add_candidate(&candidates, &mounts->list[i]);
	}
	return candidates;
}

static int several(const struct candidates *candidates)
{
	char *list = must(strdup(""));

	for (size_t i = 0; i < candidates->count; i++) {
		char *longer = must_format("%s%s%s", list, list[0] != '\0' ? " or " : "",
					   candidates->list[i]->folder);
		free(list);
		list = longer;
	}
	int status =
		fail(EXIT_AMBIGUOUS,
		     "mount: there are %zu of dlockfs; choose with --mount or " VARIABLE ": %s",
		     candidates->count, list);
	free(list);
	return status;
}

static int none(const struct mounts *mounts)
{
	char *words = service_words();
	int status = fail(EXIT_NO_MOUNT,
			  "mount: no dlockfs is mounted%s%s; mount one, or name its folder with "
			  "--mount",
			  mounts->count > 0 ? " but those of other users" : "", words);

	free(words);
	return status;
}

/* Finds the mount that is meant if none is named. */
static int default_mount(const struct mounts *mounts, char **ret_folder)
{
	struct candidates candidates = find_candidates(mounts);
	const struct mount *found = candidates.count == 1 ? candidates.list[0] : NULL;
	int status = 0;

	for (size_t i = 0; found == NULL && i < candidates.count; i++) {
		if (strcmp(candidates.list[i]->folder, DEFAULT_FOLDER) == 0)
			found = candidates.list[i];
	}
	if (found != NULL)
		*ret_folder = must(strdup(found->folder));
	else if (candidates.count > 0)
		status = several(&candidates);
	else
		status = none(mounts);
	free(candidates.list);
	return status;
}

/* The real path of a folder, and behind it another zero if there is a tree. In the child of a look.
 */
static int ask_folder(const void *folder, char **ret_text, size_t *ret_bytes)
{
	struct stat attr;
	char *real = realpath(folder, NULL);

	if (real == NULL)
		return -errno;
	char *tree = must_format("%s/.dlockfs", real);
	bool found = stat(tree, &attr) == 0 && S_ISDIR(attr.st_mode);
	free(tree);
	*ret_text = must_format("%s", real); /* with its zero */
	*ret_bytes = strlen(real) + (found ? 1 : 0);
	free(real);
	return 0;
}

/* Finds the mount that `option` names: the folder as in the list of mounts, another name of it, or
 * a folder that looks like a mount. */
static int given_mount(const struct mounts *mounts, const char *option, const char *given,
		       char **ret_folder)
{
	char *folder = must(strdup(given));
	size_t length = strlen(folder);
	while (length > 1 && folder[length - 1] == '/')
		folder[--length] = '\0';
	bool has_tree = true;
	if (mounts_at(mounts, folder) == NULL) {
		char *real = NULL;
		size_t bytes = 0;
		int error = look(NULL, ask_folder, folder, &real, &bytes);
		free(folder);
		if (error != 0)
			return fail(error == -ENOENT ? EXIT_NO_MOUNT : status_of_errno(error),
				    "%s %s: %s; expected the folder of a mount of dlockfs", option,
				    given, look_words(error));
		folder = real;
		has_tree = bytes > strlen(real);
	}
	if (mounts_at(mounts, folder) == NULL && !has_tree) {
		free(folder);
		return fail(EXIT_NO_MOUNT,
			    "%s %s: is no mount of dlockfs; see: findmnt -t fuse.dlockfs", option,
			    given);
	}
	*ret_folder = folder;
	return 0;
}

/* The mount of an absolute path decides, unless --mount does. */
static int choose(const struct context *context, const struct mounts *mounts, const char *name,
		  char **ret_folder)
{
	const char *variable = getenv(VARIABLE);
	bool is_path = name != NULL && name[0] == '/';
	const struct mount *above = is_path ? mounts_above(mounts, name) : NULL;

	if (context->mount != NULL)
		return given_mount(mounts, "--mount", context->mount, ret_folder);
	if (above != NULL) {
		const struct mount *whole = mounts_whole(mounts, above);
		*ret_folder = must(strdup(whole != NULL ? whole->folder : above->folder));
		return 0;
	}
	if (variable != NULL && variable[0] != '\0')
		return given_mount(mounts, VARIABLE, variable, ret_folder);
	if (is_path)
		return fail(EX_USAGE,
			    "%s: is not below a mount of dlockfs; expected the name of a lock, "
			    "without the mount",
			    name);
	return default_mount(mounts, ret_folder);
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

/* The name of a lock in the mount at `folder`, from its path in that or in another mount of the
 * same file system. NULL: it is in neither. */
static char *name_of_path(const struct mounts *mounts, const char *path, const char *folder)
{
	const struct mount *above = mounts_above(mounts, path), *in = mounts_at(mounts, folder);
	const char *rest = path_below(path, folder);

	if (above == NULL || in == NULL || above == in || strcmp(above->device, in->device) != 0)
		return rest != NULL ? must(strdup(rest)) : NULL;
	rest = path_below(path, above->folder);
	if (strcmp(above->root, in->root) == 0)
		return must(strdup(rest));
	return mount_is_whole(in) ? must_format("%s/%s", above->root + 1, rest) : NULL;
}

/* Whose mount it is, who may have let no others use it: even root is refused then. */
static int check_owner(const struct mounts *mounts, struct place *place)
{
	const struct mount *mount = mounts_at(mounts, place->mount);

	place->is_foreign = mount == NULL || !mount->trusted;
	if (mount == NULL || !mount->is_private)
		return 0;
	return fail(EX_NOPERM,
		    "%s: was mounted by the user %s, without allow_other: nobody else may look at "
		    "it, not even root; run dlockctl as that user",
		    place->mount, mount->owner);
}

static int take_name(const struct mounts *mounts, const char *name, struct place *place)
{
	place->name =
		name[0] == '/' ? name_of_path(mounts, name, place->mount) : must(strdup(name));
	if (place->name == NULL)
		return fail(EX_USAGE, "%s: is not below %s; expected the name of a lock", name,
			    place->mount);
	const char *why = wrong_name(place->name);
	if (why != NULL)
		return fail(EX_USAGE, "%s: the name %s; expected one like cron/backup", name, why);
	return 0;
}

int place_find(const struct context *context, const char *name, struct place *place)
{
	struct mounts mounts;

	*place = (struct place){0};
	int status = mounts_read(&mounts);
	if (status == 0 && is_of_store(context))
		status = private_mount_begin(context, &place->mount);
	else if (status == 0)
		status = choose(context, &mounts, name, &place->mount);
	place->shown = context->store != NULL	 ? context->store
		       : context->config != NULL ? context->config
						 : place->mount;
	if (status == 0)
		status = check_owner(&mounts, place);
	if (status == 0 && name != NULL)
		status = take_name(&mounts, name, place);
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
