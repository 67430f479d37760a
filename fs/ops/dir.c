/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing a directory: the names in use on this host; of lock files, all. They are taken when a
 * process begins to read, by its first READDIR, or after rewinddir(3): not by OPENDIR, as a program
 * may make a name after that and want to know who else has. Entries come with their attributes
 * (readdirplus), which puts them into the kernel's cache of names: a lookup would not find them.
 * .dlockfs is not among them, so that programs that list, search or clear the directory do not meet
 * it. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/looked.h"
#include "files/user.h"
#include "handles/handle.h"
#include "ops/asking.h"
#include "ops/calls.h"
#include "ops/ops.h"
#include "status/status.h"

struct listing {
	UT_hash_handle hh;	 /* in calls->listings, by number */
	uint64_t number;	 /* the file handle that the kernel knows */
	struct inode *directory; /* held, also without a name: opendir(3) asks for its attributes */
	struct user *user;	 /* of whose USER_FILES it takes this many shares: */
	size_t shares;
	uid_t uid; /* that user's */
	bool taken;
	size_t count;
	const char **names; /* once they are taken */
	char *text;	    /* the bytes of the names */
};

static void free_names(struct listing *listing)
{
	free(listing->names);
	free(listing->text);
	listing->names = NULL;
	listing->text = NULL;
	listing->count = 0;
	listing->taken = false;
}

/* Names, as they are going to be listed. */
struct names {
	const char **list;
	size_t count, capacity;
	size_t bytes; /* of them, each with its NUL */
	bool starved; /* one of them is missing */
};

static void note_name(struct names *names, const char *name)
{
	if (names->count == names->capacity) {
		size_t capacity = 2 * names->capacity + 16;
		const char **list = reallocarray(names->list, capacity, sizeof(*list));
		if (list == NULL) {
			names->starved = true;
			return;
		}
		names->list = list;
		names->capacity = capacity;
	}
	names->list[names->count++] = name;
	names->bytes += strlen(name) + 1;
}

/* "." and "..", and what is known of the directory here. names->list is to be freed. */
static void collect_known(const struct inode *directory, struct names *names)
{
	const struct inode *child;

	note_name(names, ".");
	note_name(names, "..");
	for (child = directory->children; child != NULL; child = child->by_name.next)
		note_name(names, child->name);
}

/* What a listing takes. */
static size_t shares_of(const struct names *names)
{
	return user_shares_of(names->bytes + names->count * sizeof(char *));
}

/* Returns 0 or -ENOMEM. */
static int copy_names(struct listing *listing, const struct names *names)
{
	free_names(listing);
	if (names->starved)
		return -ENOMEM;
	listing->names = calloc(names->count + 1, sizeof(char *));
	listing->text = malloc(names->bytes + 1);
	if (listing->names == NULL || listing->text == NULL) {
		free_names(listing);
		return -ENOMEM;
	}
	char *to = listing->text;
	for (size_t i = 0; i < names->count; i++) {
		listing->names[listing->count++] = to;
		to = stpcpy(to, names->list[i]) + 1;
	}
	listing->taken = true;
	return 0;
}

static void close_listing(struct filesystem *filesystem, struct listing *listing)
{
	HASH_DEL(filesystem->calls->listings, listing);
	user_leave(filesystem->users, listing->user, USER_FILES, listing->shares);
	inode_let_go(filesystem, listing->directory);
	free_names(listing);
	free(listing);
}

void op_dir_finish(struct filesystem *filesystem)
{
	while (filesystem->calls->listings != NULL)
		close_listing(filesystem, filesystem->calls->listings);
}

/* One whose names are not taken yet. Returns NULL when out of memory. */
static struct listing *open_listing(struct filesystem *filesystem, struct inode *directory,
				    uint64_t number, uid_t uid)
{
	struct listing *listing = calloc(1, sizeof(*listing));

	if (listing == NULL)
		return NULL;
	listing->number = number;
	listing->uid = uid;
	listing->shares = user_shares_of(0);
	listing->user = user_add(filesystem->users, uid, USER_FILES, listing->shares);
	if (listing->user != NULL)
		HASH_ADD(hh, filesystem->calls->listings, number, sizeof(listing->number), listing);
	if (listing->hh.tbl != NULL) {
		directory->finders++;
		listing->directory = directory;
		return listing;
	}
	user_leave(filesystem->users, listing->user, USER_FILES, listing->shares);
	free(listing);
	return NULL;
}

/* These are the names now. Returns 0; -ENOMEM; or -ENFILE, they are too many for the user. */
static int take(struct filesystem *filesystem, struct listing *listing, const struct names *names)
{
	size_t shares = shares_of(names);
	int error = shares > listing->shares ? user_check(filesystem, listing->uid, USER_FILES,
							  shares - listing->shares)
					     : 0;

	if (error == 0)
		error = copy_names(listing, names);
	if (error != 0)
		return error;
	if (shares > listing->shares)
		user_add(filesystem->users, listing->uid, USER_FILES, shares - listing->shares);
	else if (shares < listing->shares)
		user_leave(filesystem->users, listing->user, USER_FILES, listing->shares - shares);
	listing->shares = shares;
	return 0;
}

static struct listing *find_listing(const struct filesystem *filesystem, uint64_t number)
{
	struct listing *listing;
	HASH_FIND(hh, filesystem->calls->listings, &number, sizeof(number), listing);
	return listing;
}

/* Valid replies: open, err. */
void op_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	if (status_owns(node)) {
		status_opendir(req, node, info);
		return;
	}
	struct filesystem *filesystem = filesystem_of(req);
	uid_t uid = fuse_req_ctx(req)->uid;
	struct inode *directory = inode_find(filesystem->inodes, node);
	struct listing *listing = NULL;

	if (directory == NULL) {
		looked_refuse(req);
		return;
	}
	int error = user_check(filesystem, uid, USER_FILES, user_shares_of(0));
	if (error == 0)
		listing = open_listing(filesystem, directory, ++filesystem->handles->last_number,
				       uid);
	if (listing == NULL) {
		fuse_reply_err(req, error != 0 ? -error : ENOMEM);
		return;
	}
	info->fh = listing->number;
	if (fuse_reply_open(req, info) == -ENOENT)
		close_listing(filesystem, listing);
}

/* Adds one entry to the buffer. Returns its size, which is more than `left` if it does not fit, or
 * 0 for a name that is gone. */
static size_t add_entry(fuse_req_t req, struct inode *directory, const char *name, off_t next,
			bool plus, char *buffer, size_t left)
{
	struct fuse_entry_param entry = {0};
	struct inode *inode = directory;
	bool lasts = inode_keeps_lockfiles(directory);

	if (strcmp(name, "..") == 0 && directory->parent != NULL)
		inode = directory->parent;
	else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		inode = inode_child(directory, name);
	if (inode == NULL && !lasts)
		return 0;
	if (inode != NULL)
		inode_stat(inode, &entry.attr);
	else
		entry.attr.st_ino = inode_number(name); /* the kernel looks up what it is */
	if (!plus)
		return fuse_add_direntry(req, buffer, left, name, &entry.attr, next);
	size_t size = fuse_add_direntry_plus(req, NULL, 0, name, &entry, next);
	if (size > left)
		return size;
	if (!lasts && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		inode_entry(inode, &entry);
	return fuse_add_direntry_plus(req, buffer, left, name, &entry, next);
}

/* Answers READDIR. */
static void reply_names(fuse_req_t req, struct inode *directory, const struct listing *listing,
			size_t size, off_t offset, bool plus)
{
	char *buffer = malloc(size);
	size_t used = 0;

	if (buffer == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	for (size_t i = (size_t)offset; i < listing->count; i++) {
		size_t entry_size = add_entry(req, directory, listing->names[i], (off_t)i + 1, plus,
					      buffer + used, size - used);
		if (entry_size > size - used)
			break;
		used += entry_size;
	}
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

/* READDIR or READDIRPLUS, which waits for the names of the directory. */
struct reading {
	struct asking asking; /* first */
	uint64_t handle;
	size_t size;
	off_t offset;
	bool plus;
};

/* The store has said which lock files there are. */
static void listed(struct asking *asking)
{
	const struct reading *reading = (const struct reading *)asking;
	struct filesystem *filesystem = asking->filesystem;
	struct inode *directory = inode_find_directory(filesystem->inodes, asking->parent);
	struct listing *listing = find_listing(filesystem, reading->handle);
	struct names names = {0};
	int error = asking->read_error;

	if (directory == NULL || listing == NULL) {
		fuse_reply_buf(asking->waiting.req, NULL, 0);
		asking_free(asking);
		return;
	}
	if (error == 0) {
		note_name(&names, ".");
		note_name(&names, "..");
		for (size_t i = 0; i < asking->names_count; i++)
			note_name(&names, asking->names[i]);
		error = take(filesystem, listing, &names);
		free(names.list);
	}
	if (error != 0) {
		asking_reply(asking, asking_errno(error));
		return;
	}
	reply_names(asking->waiting.req, directory, listing, reading->size, reading->offset,
		    reading->plus);
	asking_free(asking);
}

static void ask_for_names(fuse_req_t req, struct inode *directory, size_t size, off_t offset,
			  const struct fuse_file_info *info, bool plus)
{
	struct reading *reading = asking_begin(req, sizeof(*reading), directory, listed);

	if (reading == NULL)
		return;
	reading->handle = info->fh;
	reading->size = size;
	reading->offset = offset;
	reading->plus = plus;
	asking_list(&reading->asking, directory);
}

static void list(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		 const struct fuse_file_info *info, bool plus)
{
	if (status_owns(node)) {
		status_readdir(req, node, size, offset, info, plus);
		return;
	}
	struct filesystem *filesystem = filesystem_of(req);
	struct listing *listing = find_listing(filesystem, info->fh);
	struct inode *directory = inode_find_directory(filesystem->inodes, node);
	int error = 0;

	/* A directory that was removed has no names. */
	if (directory == NULL) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	/* The directory was opened before this process took over: the names come in their present
	 * order. */
	if (listing == NULL)
		listing = open_listing(filesystem, directory, info->fh, fuse_req_ctx(req)->uid);
	if (listing == NULL)
		error = -ENOMEM;
	bool takes = error == 0 && (offset == 0 || !listing->taken);
	if (takes && inode_keeps_lockfiles(directory)) {
		ask_for_names(req, directory, size, offset, info, plus);
		return;
	}
	if (takes) {
		struct names names = {0};
		collect_known(directory, &names);
		error = take(filesystem, listing, &names);
		free(names.list);
	}
	if (error != 0)
		fuse_reply_err(req, -error);
	else
		reply_names(req, directory, listing, size, offset, plus);
}

/* Valid replies: buf, err. */
void op_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		struct fuse_file_info *info)
{
	list(req, node, size, offset, info, false);
}

/* Valid replies: buf, err. */
void op_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    struct fuse_file_info *info)
{
	list(req, node, size, offset, info, true);
}

/* Valid replies: err. */
void op_releasedir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	if (status_owns(node)) {
		status_release(req, info);
		return;
	}
	struct listing *listing = find_listing(filesystem_of(req), info->fh);
	if (listing != NULL)
		close_listing(filesystem_of(req), listing);
	fuse_reply_err(req, 0);
}
