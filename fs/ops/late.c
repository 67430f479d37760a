/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns texts that are stored late. Loop thread only.
 */
#include "ops/late.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/kept_request.h"
#include "files/request.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_writes.h"
#include "ops/calls.h"
#include "ops/content.h"
#include "ops/held.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

/* With so many writes, or with so many bytes of them, a text is stored at once. */
#define WRITES_MAX	 64
#define WRITES_BYTES_MAX ((size_t)1024 * 1024)

/* When one is tried again that could not be stored. */
#define RETRY_MS 1000

/* One that may have to be made again, to what another host has written. */
struct late_write {
	struct late_write *next;
	bool appends;
	off_t offset;
	size_t size;
	char data[];
};

struct late {
	struct late *prev, *next; /* in calls->lates */
	struct filesystem *filesystem;
	fuse_ino_t node; /* with its lockfile->late. A file is in use */
	bool touches;	 /* it is a directory */
	uint64_t serial;
	int64_t due_ms;
	uid_t uid;	   /* who has written, */
	bool several;	   /* and others, too */
	bool changed;	   /* STORING: it has been written again since */
	bool failed;	   /* the last time */
	struct user *user; /* with a share of USER_WAITERS; NULL: of a directory */
	struct kept_request *kept;
	struct asking *asking; /* STORING; NULL: LATE */
	struct late_write *writes;
	size_t writes_count, writes_bytes;
};

struct late *late_of(const struct inode *inode)
{
	return lockfile_late(inode->lockfile);
}

bool late_is_due(const struct inode *inode)
{
	const struct lockfile *lockfile = inode->lockfile;
	int64_t now_ms = inode->shard->filesystem->now_ms;

	return late_of(inode) != NULL ||
	       (lockfile->stored_ms != 0 && now_ms - lockfile->stored_ms < LATE_MS);
}

/* The time by the clock that the store has, if it has had the text. */
static struct timespec reckon(const struct inode *inode)
{
	const struct lockfile *lockfile = inode->lockfile;
	int64_t since_ms = inode->shard->filesystem->now_ms - lockfile->stored_ms;
	int64_t ns = lockfile->stored.tv_nsec + since_ms % 1000 * NS_PER_MS;

	return (struct timespec){lockfile->stored.tv_sec + since_ms / 1000 + ns / NS_PER_S,
				 ns % NS_PER_S};
}

void late_stamp(struct inode *inode)
{
	if (inode->lockfile->stored_ms == 0) /* the process before has written it */
		return;
	inode->mtime = inode->ctime = reckon(inode);
	inode->lockfile->dates = true;
}

static void free_writes(struct late *late)
{
	struct late_write *write, *next;

	LL_FOREACH_SAFE (late->writes, write, next) {
		free(write);
	}
}

/* NULL: the directory is gone. */
static struct inode *inode_of(const struct late *late)
{
	return inode_find(late->filesystem->inodes, late->node);
}

/* The text is as the store has it, or has no name any more. */
static void end(struct late *late)
{
	struct filesystem *filesystem = late->filesystem;
	struct inode *inode = inode_of(late);

	DL_DELETE(filesystem->calls->lates, late);
	if (inode != NULL) {
		inode->lockfile->late = NULL;
		inode->lockfile->is_touched = false;
		inode_mark(inode);
	}
	kept_request_free(filesystem, late->kept);
	user_leave(filesystem->users, late->user, USER_WAITERS, 1);
	free_writes(late);
	if (!late->touches)
		inode_unuse(filesystem, inode);
	free(late);
	held_wake(filesystem);
}

static int compare(const struct late *a, const struct late *b)
{
	return (a->due_ms > b->due_ms) - (a->due_ms < b->due_ms);
}

static void set_due(struct late *late, int64_t due_ms)
{
	struct late **lates = &late->filesystem->calls->lates;

	DL_DELETE(*lates, late);
	late->due_ms = due_ms;
	DL_INSERT_INORDER(*lates, late, compare);
}

static struct late *create(struct inode *inode, uid_t uid)
{
	struct filesystem *filesystem = inode->shard->filesystem;
	struct late *late = calloc(1, sizeof(*late));

	if (late == NULL)
		return NULL;
	late->touches = inode_is_directory(inode);
	if (!late->touches)
		late->user = user_add(filesystem->users, uid, USER_WAITERS, 1);
	if (late->user == NULL && !late->touches) {
		free(late);
		return NULL;
	}
	late->filesystem = filesystem;
	late->node = inode->node;
	late->uid = uid;
	late->serial = ++filesystem->calls->late_serial;
	late->due_ms = inode->lockfile->stored_ms != 0 ? inode->lockfile->stored_ms + LATE_MS
						       : filesystem->now_ms;
	inode->lockfile->late = late;
	if (!late->touches)
		inode_use(filesystem, inode);
	DL_INSERT_INORDER(filesystem->calls->lates, late, compare);
	return late;
}

/* Forgets those of which the new one leaves nothing. */
static void drop_covered(struct late *late, const struct late_write *newest)
{
	struct late_write *write, *next;
	off_t end = newest->offset + (off_t)newest->size;

	LL_FOREACH_SAFE (late->writes, write, next) {
		if (newest->appends || write->appends || write->offset < newest->offset ||
		    write->offset + (off_t)write->size > end)
			continue;
		LL_DELETE(late->writes, write);
		late->writes_count--;
		late->writes_bytes -= write->size;
		free(write);
	}
}

static bool is_full(const struct late *late)
{
	return late->writes_count >= WRITES_MAX || late->writes_bytes >= WRITES_BYTES_MAX;
}

/* Returns 0 or -ENOMEM. */
static int add_write(struct late *late, const struct written *write)
{
	struct late_write *copy = calloc(1, sizeof(*copy) + write->size);

	if (copy == NULL)
		return -ENOMEM;
	copy->appends = write->appends;
	copy->offset = write->offset;
	copy->size = write->size;
	memcpy(copy->data, write->data, write->size);
	drop_covered(late, copy);
	LL_APPEND(late->writes, copy);
	late->writes_count++;
	late->writes_bytes += copy->size;
	if (is_full(late))
		set_due(late, late->filesystem->now_ms);
	return 0;
}

int late_note(struct inode *inode, const struct written *written, struct asking *asking)
{
	struct late *late = late_of(inode);

	if (late == NULL)
		late = create(inode, asking->uid);
	if (late == NULL || add_write(late, written) != 0)
		return -ENOMEM; /* one that was there stays */
	late->several |= late->uid != asking->uid;
	late->changed = late->asking != NULL;
	kept_request_free(late->filesystem, late->kept);
	late->kept = asking->waiting.kept;
	asking->waiting.kept = NULL;
	return 0;
}

bool late_has_no_time(const struct inode *directory)
{
	return directory->lockfile->is_touched && !directory->lockfile->dates;
}

/* It is before or after the other one, or 0. */
static int compare_times(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? (a.tv_sec > b.tv_sec) - (a.tv_sec < b.tv_sec)
				    : (a.tv_nsec > b.tv_nsec) - (a.tv_nsec < b.tv_nsec);
}

/* The times that a directory has now. What follows from its own text may be less than what another
 * host's was, which has been read since. */
static void stamp_directory(struct inode *directory, bool is_new)
{
	struct lockfile *lockfile = directory->lockfile;
	int order = compare_times(reckon(directory), directory->mtime);

	if (late_has_no_time(directory))
		return;
	if (is_new && (!late_is_due(directory) || order <= 0))
		lockfile->dates = false;
	else if (order > 0)
		late_stamp(directory);
}

void late_touch(struct inode *directory, uid_t uid)
{
	if (directory == NULL || directory->lockfile == NULL || directory->parent == NULL)
		return;
	struct late *late = late_of(directory);
	stamp_directory(directory, late == NULL);
	if (late == NULL)
		late = create(directory, uid);
	if (late == NULL)
		return; /* the next one tells */
	late->changed = late->asking != NULL;
	directory->lockfile->is_touched = true;
	inode_mark(directory);
}

void late_resume(struct filesystem *filesystem)
{
	struct inode *inode, *next;

	HASH_ITER (by_node, filesystem->inodes->by_node, inode, next) {
		if (inode->lockfile != NULL && inode->lockfile->is_touched)
			create(inode, inode->maker);
	}
}

/* A name that the content has; NULL: it has none any more. */
static struct inode *named(const struct late *late)
{
	struct inode *inode = inode_of(late), *link;

	LINKS_FOREACH (link, inode) {
		if (link->parent != NULL)
			return link;
	}
	return NULL;
}

static void stored(struct asking *asking);

/* Those that wait have waited for what was tried. */
static void try_again(struct late *late, int64_t due_ms)
{
	struct filesystem *filesystem = late->filesystem;

	late->asking = NULL;
	late->changed = false;
	late->serial = ++filesystem->calls->late_serial;
	set_due(late, due_ms);
	held_wake(filesystem);
}

static void fail(struct late *late)
{
	late->failed = true;
	try_again(late, late->filesystem->now_ms + RETRY_MS);
}

/* Returns false if there is no name, or no memory. */
static bool replace(struct late *late, struct asking *asking)
{
	struct inode *inode = named(late);
	const char *path;

	if (inode == NULL)
		return false;
	asking->node = inode->node;
	asking->done = stored;
	late->changed = false;
	if (content_replace(asking, inode, &path) <= 0)
		return false;
	asking_read(asking, path);
	return true;
}

static void store(struct late *late)
{
	struct inode *inode = named(late);
	struct asking *asking;

	if (inode == NULL) {
		end(late);
		return;
	}
	user_writes_add(late->filesystem, late->uid);
	asking = asking_begin_alone(inode->parent, stored);
	late->asking = asking;
	if (asking != NULL)
		asking->uid = late->uid;
	if (asking == NULL) {
		fail(late);
	} else if (!replace(late, asking)) {
		asking_free(asking);
		fail(late);
	}
}

static struct late *find(const struct asking *asking)
{
	struct late *late;

	DL_FOREACH (asking->filesystem->calls->lates, late) {
		if (late->asking == asking)
			break;
	}
	return late;
}

/* What was written is made anew to what another host has written meanwhile. */
static int write_again(const struct late *late, struct inode *inode)
{
	const struct late_write *write;
	int error = 0;

	if (inode_is_directory(inode)) {
		inode->lockfile->dates = false;
		return 0;
	}
	LL_FOREACH (late->writes, write) {
		off_t offset = write->appends ? (off_t)inode->text.count : write->offset;
		if (error == 0)
			error = inode_write(inode, write->data, write->size, offset, late->uid);
	}
	late_stamp(inode);
	return error == 0 ? content_spread(inode) : error;
}

/* Another host has changed the text, or taken the name away. */
static void found_changed(struct asking *asking)
{
	struct late *late = find(asking);
	struct inode *inode = inode_of(late);

	if (inode != NULL)
		inode->lockfile->late = NULL; /* what was read counts */
	content_read(asking);
	inode = inode_of(late);
	if (inode != NULL)
		inode->lockfile->late = late;
	inode = content_inode(asking);
	if (inode == NULL || named(late) == NULL) {
		asking_free(asking);
		end(late);
	} else if (asking->read_error != 0 || write_again(late, inode) != 0 ||
		   !replace(late, asking)) {
		asking_free(asking);
		fail(late);
	}
}

static void stored(struct asking *asking)
{
	struct late *late = find(asking);
	struct inode *inode = named(late);
	int error = asking->alter_error;

	if ((error == -ESTALE || error == -ENOENT) && inode != NULL &&
	    asking->tries++ < ASKING_TRIES_MAX) {
		asking->node = inode->node;
		asking->done = found_changed;
		asking_read(asking, inode->lockfile->path);
		return;
	}
	if (error != 0) {
		asking_free(asking);
		fail(late);
		return;
	}
	inode = inode_of(late);
	if (inode != NULL)
		content_replaced(inode);
	late->failed = false;
	if (late->changed) {
		try_again(late, late->filesystem->now_ms + LATE_MS);
		asking_free(asking);
		return;
	}
	if (inode != NULL)
		inode_use(late->filesystem, inode);
	end(late);
	if (content_read(asking) != NULL && asking->read_error == 0)
		late_stored(inode);
	if (inode != NULL)
		inode_unuse(asking->filesystem, inode);
	asking_free(asking);
}

void late_stored(struct inode *inode)
{
	struct inode *link;

	LINKS_FOREACH (link, inode) {
		link->lockfile->stored_ms = inode->shard->filesystem->now_ms;
		link->lockfile->stored = inode->ctime;
	}
}

bool late_has_failed(const struct inode *inode)
{
	const struct late *late = late_of(inode);
	return late != NULL && late->failed;
}

/* Whether the request waits for the text. What was written after it has begun to wait does not
 * count, nor what could not be stored: nobody waits for that again and again. */
static bool concerns(const struct late *late, const uid_t *uid, const struct inode *inode)
{
	uint64_t serial = late->filesystem->requests->pass.late_serial;

	if (late->failed || (serial != 0 && late->serial > serial))
		return false;
	if (late->touches)
		return uid == NULL && late->node == inode->node;
	return late->several || (uid != NULL && late->uid == *uid) ||
	       (inode != NULL && inode->lockfile != NULL && late_of(inode) == late);
}

static bool hold(fuse_req_t req, const uid_t *uid, const struct inode *inode, bool knows_eintr)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct request_pass *pass = &filesystem->requests->pass;
	uint64_t serial = pass->late_serial;
	struct late *late, *next;
	bool waits = false;

	DL_FOREACH (filesystem->calls->lates, late) {
		waits |= concerns(late, uid, inode);
	}
	if (!waits)
		return false;
	pass->late_serial = serial != 0 ? serial : filesystem->calls->late_serial;
	if (!held_hold(req, knows_eintr, 0))
		return false;
	DL_FOREACH_SAFE (filesystem->calls->lates, late, next) {
		if (late->asking == NULL && concerns(late, uid, inode))
			set_due(late, filesystem->now_ms);
	}
	return true;
}

bool late_holds(fuse_req_t req, const struct inode *inode, bool knows_eintr)
{
	uid_t uid = fuse_req_ctx(req)->uid;
	return filesystem_of(req)->calls->lates != NULL && hold(req, &uid, inode, knows_eintr);
}

bool late_holds_text(fuse_req_t req, const struct inode *inode)
{
	return late_of(inode) != NULL && hold(req, NULL, inode, false);
}

bool late_holds_write(fuse_req_t req, const struct inode *inode)
{
	const struct late *late = late_of(inode);
	bool may_join = late == NULL || (late->asking == NULL && !is_full(late));

	return !may_join && hold(req, NULL, inode, false);
}

void late_advance(struct filesystem *filesystem)
{
	struct late *late, *next;

	DL_FOREACH_SAFE (filesystem->calls->lates, late, next) {
		if (late->due_ms > filesystem->now_ms)
			break;
		if (late->asking == NULL)
			store(late);
	}
}

int64_t late_deadline(const struct filesystem *filesystem)
{
	const struct late *late;

	DL_FOREACH (filesystem->calls->lates, late) {
		if (late->asking == NULL)
			return late->due_ms;
	}
	return INT64_MAX;
}

void late_hurry(struct filesystem *filesystem)
{
	struct late *late;

	DL_FOREACH (filesystem->calls->lates, late) {
		late->due_ms = 0;
	}
}

void late_finish(struct filesystem *filesystem)
{
	while (filesystem->calls->lates != NULL)
		end(filesystem->calls->lates);
}
