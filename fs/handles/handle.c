/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns open files. Loop thread only.
 */
#include "handles/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "claim/file_path.h"
#include "engine/transfer.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/kept_request.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/audit_note.h"

/* The open files of one lock that have an owner in the engine. */
struct owning {
	struct handle *handles;
	struct holders holders;
	UT_hash_handle by_path;
	char path[]; /* inode_lock_path() */
};

static struct owning *find_owning(const struct handle *handle)
{
	const char *path = inode_lock_path(handle->inode);
	struct owning *owning;
	HASH_FIND(by_path, handle->filesystem->handles->owning, path, strlen(path), owning);
	return owning;
}

static void free_owning_if_unused(struct filesystem *filesystem, struct owning *owning)
{
	if (owning->handles != NULL)
		return;
	HASH_DELETE(by_path, filesystem->handles->owning, owning);
	free(owning);
}

static struct owning *find_or_create_owning(const struct handle *handle)
{
	struct filesystem *filesystem = handle->filesystem;
	const char *path = inode_lock_path(handle->inode);
	struct owning *owning = find_owning(handle);
	if (owning != NULL)
		return owning;
	owning = calloc(1, sizeof(*owning) + strlen(path) + 1);
	if (owning == NULL)
		return NULL;
	memcpy(owning->path, path, strlen(path) + 1);
	HASH_ADD(by_path, filesystem->handles->owning, path, strlen(path), owning);
	if (owning->by_path.tbl == NULL) {
		free(owning);
		return NULL;
	}
	return owning;
}

size_t handle_shares(const struct inode *inode)
{
	return user_shares_of_path(strlen(inode->path));
}

struct handle *handle_reopen(struct filesystem *filesystem, struct inode *inode, uint64_t number,
			     uid_t uid)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	if (handle == NULL)
		return NULL;
	size_t shares = handle_shares(inode);
	handle->user = user_add(filesystem->users, uid, USER_FILES, shares);
	if (handle->user == NULL) {
		free(handle);
		return NULL;
	}
	handle->number = number;
	if (handle_table_add(&filesystem->handles->by_number, number, handle) < 0) {
		user_leave(filesystem->users, handle->user, USER_FILES, shares);
		free(handle);
		return NULL;
	}
	filesystem->handles->count++;
	handle->filesystem = filesystem;
	handle->inode = inode;
	inode_use(filesystem, inode);
	handle_mark(handle);
	return handle;
}

int handle_open(struct filesystem *filesystem, struct inode *inode, uid_t uid, struct handle **ret)
{
	int error = user_check(filesystem, uid, USER_FILES, handle_shares(inode));

	if (error != 0)
		return error;
	*ret = handle_reopen(filesystem, inode, ++filesystem->handles->last_number, uid);
	return *ret != NULL ? 0 : -ENOMEM;
}

static struct state_place place(const struct state_item *item)
{
	const struct handle *handle = (const struct handle *)item;
	return (struct state_place){{STATE_PLACE_HANDLE, handle->number}};
}

static void save(const struct state_item *item, FILE *out)
{
	handle_save((const struct handle *)item, out);
}

void handle_mark(struct handle *handle)
{
	static const struct state_kind kind = {place, save};
	state_journal_mark(handle->filesystem->journal, &handle->item, &kind);
}

void handle_save(const struct handle *handle, FILE *out)
{
	state_begin(out, "handle");
	state_unsigned(out, "number", handle->number);
	state_unsigned(out, "node", handle->inode->node);
	state_unsigned(out, "user", handle->user->uid);
	state_flag(out, "fenced", handle->fenced);
	state_flag(out, "unseen", handle->holder_unseen);
	if (handle->owner != NULL) {
		engine_save_owner(handle->owner, out);
		audit_notes_save(handle->filesystem->handles->audited,
				 handle_holders(handle)->audited, handle->number, out);
	}
	state_end(out);
}

static void forget_poll(struct handle *handle)
{
	if (handle->poll == NULL)
		return;
	fuse_pollhandle_destroy(handle->poll);
	handle->poll = NULL;
	kept_request_free(handle->filesystem, handle->polling);
	handle->polling = NULL;
}

void handle_set_poll(struct handle *handle, struct fuse_pollhandle *poll)
{
	forget_poll(handle);
	handle->poll = poll;
	kept_request_create(handle->filesystem, &handle->polling);
}

void handle_free(struct handle *handle)
{
	struct filesystem *filesystem = handle->filesystem;

	if (handle->owner != NULL) {
		struct owning *owning = find_owning(handle);
		engine_owner_close(handle->owner);
		DL_DELETE2(owning->handles, handle, owning_prev, owning_next);
		free_owning_if_unused(filesystem, owning);
	}
	forget_poll(handle);
	state_journal_remove(filesystem->journal, &handle->item);
	handle_table_remove(&filesystem->handles->by_number, handle->number);
	filesystem->handles->count--;
	handle->inode->shard->fenced -= handle->fenced;
	user_leave(filesystem->users, handle->user, USER_FILES, handle_shares(handle->inode));
	inode_unuse(filesystem, handle->inode);
	free(handle);
}

void handle_wake_poll(struct handle *handle)
{
	if (handle->poll == NULL)
		return;
	fuse_lowlevel_notify_poll(handle->poll); /* takes no lock of the file system */
	forget_poll(handle);
}

void handle_set_fenced(struct handle *handle)
{
	handle->inode->shard->fenced += !handle->fenced;
	handle->fenced = true;
}

struct handle *handle_of_number(const struct handles *handles, uint64_t number)
{
	return handle_table_find(&handles->by_number, number);
}

struct handle *handle_find(const struct handles *handles, fuse_ino_t node,
			   const struct fuse_file_info *info)
{
	return node >= NODES_END ? NULL : handle_of_number(handles, info->fh);
}

/* What the configuration says of the lock: all hosts go by the lock's path, whatever name its file
 * has by now. */
static struct lock_policy lock_policy(const struct handle *handle)
{
	char path[FILE_QUEUE_BYTES_MAX + 1];

	if (handle->inode->lockfile == NULL)
		return inode_policy(handle->inode);
	file_path_put_plain(path, inode_lock_path(handle->inode));
	return config_policy(handle->filesystem->config, path);
}

/* The handle has its owner. As in the engine, the policy of the first owner of the path counts. */
static void join(struct handle *handle, struct owning *owning, const struct lock_policy *policy)
{
	handle_mark(handle);
	if (owning->handles == NULL) {
		owning->holders.lost_signal = (int)policy->on_lost;
		owning->holders.revoke_signal = (int)policy->on_revoke;
	}
	DL_APPEND2(owning->handles, handle, owning_prev, owning_next);
}

int handle_own(struct handle *handle)
{
	struct filesystem *filesystem = handle->filesystem;
	if (handle->owner != NULL)
		return 0;
	struct owning *owning = find_or_create_owning(handle);
	if (owning == NULL)
		return -ENOMEM;
	struct lock_policy policy = lock_policy(handle);
	handle->owner = engine_owner_open(handle->inode->shard->engine,
					  inode_lock_path(handle->inode), &policy, handle);
	if (handle->owner == NULL) {
		free_owning_if_unused(filesystem, owning);
		return -ENOMEM;
	}
	join(handle, owning, &policy);
	return 0;
}

int handle_restore_owner(struct handle *handle, struct state_reader *in)
{
	struct filesystem *filesystem = handle->filesystem;
	struct lock_policy policy = lock_policy(handle);
	struct owning *owning = find_or_create_owning(handle);
	if (owning == NULL)
		return state_starve(in);
	handle->owner = engine_restore_owner(handle->inode->shard->engine,
					     inode_lock_path(handle->inode), &policy, handle, in);
	if (handle->owner == NULL) {
		free_owning_if_unused(filesystem, owning);
		return -EINVAL;
	}
	join(handle, owning, &policy);
	handle->flushed = true;
	return 0;
}

struct owner *handle_any_owner(const struct handle *handle)
{
	if (handle->owner != NULL)
		return handle->owner;
	const struct owning *owning = find_owning(handle);
	return owning != NULL ? owning->handles->owner : NULL;
}

struct holders *handle_holders(const struct handle *handle)
{
	struct owning *owning = find_owning(handle);
	return owning != NULL ? &owning->holders : NULL;
}
