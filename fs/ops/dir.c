/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing a directory: the names in use on this host, as of opendir(3). Entries come with their
 * attributes (readdirplus), which puts them into the kernel's cache of names: a lookup would not
 * find them. .dlockfs is not among them, so that programs that list, search or clear the directory
 * do not meet it. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/user.h"
#include "ops/ops.h"
#include "status/status.h"

struct listing {
	UT_hash_handle hh; /* in filesystem->listings, by number */
	uint64_t number;   /* the file handle that the kernel knows */
	struct user *user; /* of whose USER_FILES it takes this many shares: */
	size_t shares;
	size_t count;
	const char **names;
	char *text; /* the bytes of the names */
};

static void listing_free(struct listing *listing)
{
	free(listing->names);
	free(listing->text);
	free(listing);
}

/* How long the names are, each with its NUL. */
static size_t text_bytes(const struct inode *directory)
{
	const struct inode *child;
	size_t bytes = sizeof(".") + sizeof("..");

	for (child = directory->children; child != NULL; child = child->by_name.next)
		bytes += strlen(child->name) + 1;
	return bytes;
}

static size_t names_count(const struct inode *directory)
{
	return HASH_CNT(by_name, directory->children) + 2;
}

/* What a listing of the directory takes. */
static size_t shares_of(const struct inode *directory)
{
	return user_shares_of(text_bytes(directory) + names_count(directory) * sizeof(char *));
}

/* The name, and its NUL, at `to`. Returns where the next one goes. */
static char *add_name(struct listing *listing, char *to, const char *name)
{
	listing->names[listing->count++] = to;
	return stpcpy(to, name) + 1;
}

static struct listing *listing_create(const struct inode *directory)
{
	const struct inode *child;
	struct listing *listing = calloc(1, sizeof(*listing));
	if (listing == NULL)
		return NULL;
	listing->names = calloc(names_count(directory), sizeof(char *));
	listing->text = malloc(text_bytes(directory));
	if (listing->names == NULL || listing->text == NULL) {
		listing_free(listing);
		return NULL;
	}
	char *to = add_name(listing, listing->text, ".");
	to = add_name(listing, to, "..");
	for (child = directory->children; child != NULL; child = child->by_name.next)
		to = add_name(listing, to, child->name);
	return listing;
}

static void close_listing(struct filesystem *filesystem, struct listing *listing)
{
	HASH_DEL(filesystem->listings, listing);
	user_leave(&filesystem->users, listing->user, USER_FILES, listing->shares);
	listing_free(listing);
}

void op_dir_finish(struct filesystem *filesystem)
{
	while (filesystem->listings != NULL)
		close_listing(filesystem, filesystem->listings);
}

/* Returns NULL when out of memory. */
static struct listing *open_listing(struct filesystem *filesystem, const struct inode *directory,
				    uint64_t number, uid_t uid)
{
	struct listing *listing = listing_create(directory);

	if (listing == NULL)
		return NULL;
	listing->number = number;
	listing->shares = shares_of(directory);
	listing->user = user_add(&filesystem->users, uid, USER_FILES, listing->shares);
	if (listing->user != NULL)
		HASH_ADD(hh, filesystem->listings, number, sizeof(listing->number), listing);
	if (listing->hh.tbl != NULL)
		return listing;
	user_leave(&filesystem->users, listing->user, USER_FILES, listing->shares);
	listing_free(listing);
	return NULL;
}

static struct listing *find_listing(const struct filesystem *filesystem, uint64_t number)
{
	struct listing *listing;
	HASH_FIND(hh, filesystem->listings, &number, sizeof(number), listing);
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
	struct inode *directory = inode_find(&filesystem->inodes, node);
	uid_t uid = fuse_req_ctx(req)->uid;
	int error = directory != NULL
			    ? user_check(filesystem, uid, USER_FILES, shares_of(directory))
			    : -ESTALE;
	struct listing *listing = error == 0 ? open_listing(filesystem, directory,
							    ++filesystem->handles.last_number, uid)
					     : NULL;

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

	if (strcmp(name, "..") == 0 && directory->parent != NULL)
		inode = directory->parent;
	else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
		inode = inode_child(directory, name);
	if (inode == NULL)
		return 0;
	inode_stat(inode, &entry.attr);
	if (!plus)
		return fuse_add_direntry(req, buffer, left, name, &entry.attr, next);
	size_t size = fuse_add_direntry_plus(req, NULL, 0, name, &entry, next);
	if (size > left)
		return size;
	if (name[0] != '.' || (strcmp(name, ".") != 0 && strcmp(name, "..") != 0))
		inode_entry(inode, &entry);
	return fuse_add_direntry_plus(req, buffer, left, name, &entry, next);
}

static void list(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		 const struct fuse_file_info *info, bool plus)
{
	if (status_owns(node)) {
		status_readdir(req, node, size, offset, info, plus);
		return;
	}
	struct filesystem *filesystem = filesystem_of(req);
	const struct listing *listing = find_listing(filesystem, info->fh);
	struct inode *directory = inode_find(&filesystem->inodes, node);
	char *buffer = malloc(size);
	size_t used = 0;

	/* The directory was opened before this process took over: the names come in their present
	 * order. */
	if (listing == NULL && directory != NULL)
		listing = open_listing(filesystem, directory, info->fh, fuse_req_ctx(req)->uid);
	if (directory == NULL || buffer == NULL || listing == NULL) {
		free(buffer);
		fuse_reply_err(req, directory == NULL ? ESTALE : ENOMEM);
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
