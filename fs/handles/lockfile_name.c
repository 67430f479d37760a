/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "handles/lockfile_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/platform.h"
#include "claim/file_path.h"
#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/names.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_lines.h"
#include "handles/telling.h"
#include "kernel/process_start.h"
#include "kernel/signal_round.h"

int lockfile_name_prepare(struct filesystem *filesystem, struct inode *directory, const char *name,
			  mode_t mode, uid_t uid, gid_t gid, size_t text_bytes, struct inode **ret)
{
	size_t shares = inode_name_shares(directory, name) + user_shares_of_text(text_bytes);
	struct inode *inode;

	inode_leave_idle(filesystem, directory);
	names_make_room(filesystem, uid, shares);
	inode_set_idle(filesystem, directory);
	int error = user_check(filesystem, uid, USER_NAMES, shares);
	if (error == 0)
		error = inode_create(filesystem, directory, name, mode & LOCKFILE_MODE_BITS, uid,
				     gid, &inode);
	if (error != 0)
		return error;
	inode->keeps_files = false;
	inode->lockfile = lockfile_create(inode, inode_lockfile_path(directory, inode->name));
	if (inode->lockfile == NULL) {
		inode_detach(filesystem, inode);
		return -ENOMEM;
	}
	*ret = inode;
	return 0;
}

int lockfile_name_appear(struct filesystem *filesystem, struct inode *directory,
			 struct inode *inode, bool is_ours)
{
	struct inode *former = inode_child(directory, inode->name);

	if (former != NULL)
		lockfile_name_forget(filesystem, former);
	inode->lockfile->is_ours = is_ours;
	inode->lockfile->is_linking = false;
	int error = inode_attach(directory, inode);
	if (error == 0)
		inode_set_idle(filesystem, inode);
	return error;
}

int lockfile_name_know(struct filesystem *filesystem, struct inode *directory, const char *name,
		       const struct lockfile_facts *facts, bool is_ours, uid_t uid,
		       struct inode **ret)
{
	struct inode *inode = inode_child(directory, name);
	int error;

	if (inode != NULL && lockfile_text_is_same(inode, facts)) {
		inode->lockfile->is_ours = is_ours;
		inode_set_idle(filesystem, inode);
		*ret = inode;
		return lockfile_late(inode->lockfile) == NULL ? lockfile_text_update(inode, facts)
							      : 0;
	}
	error = lockfile_name_prepare(filesystem, directory, name, facts->mode, uid, facts->gid,
				      facts->text_bytes, &inode);
	if (error != 0)
		return error;
	error = lockfile_text_update(inode, facts);
	if (error == 0)
		error = lockfile_name_appear(filesystem, directory, inode, is_ours);
	if (error != 0)
		inode_detach(filesystem, inode);
	else
		*ret = inode;
	return error;
}

/* Whether to write a line about the name, of which its maker may cause any number. */
static bool may_log(const struct inode *inode)
{
	return user_lines_pass(inode->shard->filesystem, inode->maker, USER_LINES_EVENTS);
}

/* Whether anything is done to the process, or when it has ended. */
static bool wants_maker(const struct inode *inode)
{
	const struct lock_policy policy = inode_policy(inode);

	return policy.on_lost != 0 || policy.on_revoke != 0 ||
	       policy.file_owner == FILE_OWNER_PROCESS;
}

/* The end of the process is to be told: lockfile_name_next_abandoned(). */
static void watch_maker(struct inode *inode)
{
	const struct filesystem *filesystem = inode->shard->filesystem;
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = inode->node};

	if (inode_policy(inode).file_owner != FILE_OWNER_PROCESS)
		return;
	if (epoll_ctl(filesystem->inodes->makers, EPOLL_CTL_ADD, inode->lockfile->maker.pidfd,
		      &event) < 0 &&
	    may_log(inode))
		log_lock_error(inode->path, "the end of process %d will not be seen: %m",
			       (int)inode->lockfile->maker.pid);
}

void lockfile_name_note_maker(struct inode *inode, pid_t thread)
{
	struct lockfile *lockfile = inode->lockfile;

	lockfile->maker.pid = claim_text_process(thread);
	claim_text_command(lockfile->maker.pid, lockfile->maker.command);
	if (!wants_maker(inode))
		return;
	lockfile->maker.pidfd = lockfile->maker.pid != 0 ? pidfd_open(lockfile->maker.pid, 0) : -1;
	if (lockfile->maker.pidfd >= 0) {
		lockfile->maker.start = process_start(lockfile->maker.pid);
		watch_maker(inode);
	} else if (may_log(inode)) {
		log_lock_warning(inode->path, "process %d cannot be watched: %s",
				 (int)lockfile->maker.pid,
				 lockfile->maker.pid != 0 ? strerror(errno)
							  : "it is in another pid namespace");
	}
}

void lockfile_name_copy_maker(struct inode *inode, const struct inode *from)
{
	struct lockfile *lockfile = inode->lockfile;

	lockfile->maker.pid = from->lockfile->maker.pid;
	lockfile->maker.start = from->lockfile->maker.start;
	memcpy(lockfile->maker.command, from->lockfile->maker.command,
	       sizeof(lockfile->maker.command));
	if (from->lockfile->maker.pidfd < 0)
		return;
	lockfile->maker.pidfd = fcntl(from->lockfile->maker.pidfd, F_DUPFD_CLOEXEC, 0);
	if (lockfile->maker.pidfd >= 0)
		watch_maker(inode);
	else if (may_log(inode))
		log_lock_error(inode->path, "process %d cannot be watched: %m",
			       (int)lockfile->maker.pid);
}

void lockfile_name_reopen_maker(struct inode *inode)
{
	struct lockfile *lockfile = inode->lockfile;

	if (!lockfile->is_ours || lockfile->maker.start == 0 || !wants_maker(inode))
		return;
	lockfile->maker.pidfd = process_start_open(lockfile->maker.pid, lockfile->maker.start);
	if (lockfile->maker.pidfd >= 0)
		watch_maker(inode);
	else if (errno != ESRCH)
		log_lock_error(inode->path, "process %d cannot be watched: %m",
			       (int)lockfile->maker.pid);
	else if (inode_policy(inode).file_owner == FILE_OWNER_PROCESS)
		lockfile->maker.ended = true;
}

struct inode *lockfile_name_next_abandoned(const struct filesystem *filesystem)
{
	struct epoll_event event;

	while (epoll_wait(filesystem->inodes->makers, &event, 1, 0) == 1) {
		struct inode *inode = inode_find(filesystem->inodes, event.data.u64);
		if (inode == NULL || inode->lockfile == NULL || inode->lockfile->maker.pidfd < 0)
			continue;
		close(inode->lockfile->maker.pidfd);
		inode->lockfile->maker.pidfd = -1;
		if (inode->lockfile->is_ours && inode->parent != NULL)
			return inode;
	}
	return NULL;
}

void lockfile_name_forget(struct filesystem *filesystem, struct inode *inode)
{
	struct inode *child, *next;

	HASH_ITER (by_name, inode->children, child, next) {
		lockfile_name_forget(filesystem, child);
	}
	inode->lockfile->is_ours = false;
	inode_detach(filesystem, inode);
}

struct inode *lockfile_name_find(const struct filesystem *filesystem, const char *path)
{
	struct inode *inode = filesystem->inodes->root;
	char *copy = strdup(path), *rest = copy, *name;

	while (inode != NULL && (name = strsep(&rest, "/")) != NULL)
		inode = inode_child(inode, name);
	free(copy);
	return copy != NULL && inode != NULL && inode->lockfile != NULL ? inode : NULL;
}

int lockfile_name_revoke(const struct inode *inode, const char *who)
{
	const struct lockfile *lockfile = inode->lockfile;
	int signal = (int)inode_policy(inode).on_revoke;

	if (signal == 0)
		return -EOPNOTSUPP;
	if (lockfile->maker.pidfd < 0)
		return -ESRCH;
	struct signal_round round = signal_round_begin(inode->shard->filesystem->board);
	int result = signal_round_send(&round, lockfile->maker.pidfd, lockfile->maker.pid,
				       inode->maker, signal);
	signal_round_end(&round);
	if (result < 0)
		return result;
	if (may_log(inode))
		log_lock_warning(inode->path, "%s asks for the lock file, sent SIG%s to process %d",
				 who, sigabbrev_np(signal), (int)lockfile->maker.pid);
	return 0;
}

/* What is in a directory that is gone is so, too: it cannot be found by its path any more. */
static void note_gone(struct inode *inode, enum lockfile_end why)
{
	struct inode *child, *next;

	HASH_ITER (by_name, inode->children, child, next) {
		note_gone(child, why);
	}
	if (!inode->lockfile->is_ours)
		return;
	if (why == LOCKFILE_LOST) {
		log_lock_error(inode->path, "lock file lost with the session, of process %d (%s)",
			       (int)inode->lockfile->maker.pid, inode->lockfile->maker.command);
		telling_lose_file(inode);
	} else {
		if (may_log(inode))
			log_lock_error(inode->path,
				       "lock file taken away, or replaced, by another host");
		inode->lockfile->is_taken = true;
	}
}

void lockfile_name_gone(struct filesystem *filesystem, const char *path, enum lockfile_end why)
{
	char *plain = file_path_plain(path);
	struct inode *inode = plain != NULL ? lockfile_name_find(filesystem, plain) : NULL;

	free(plain);
	if (inode == NULL || !inode->lockfile->is_ours)
		return;
	note_gone(inode, why);
	lockfile_name_forget(filesystem, inode);
}
