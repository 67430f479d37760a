/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of open files that were fenced, by their numbers: any of them may be closed before
 * its turn comes, which says of it what is to be said (audit_closed()).
 */
#include "handles/telling.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/platform.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/shard.h"
#include "handles/audit.h"
#include "handles/handle.h"
#include "handles/holder.h"
#include "kernel/lease_board.h"
#include "kernel/signal_round.h"

/* Of so many open files at a time the rest is done. */
enum { SAID_AT_ONCE = 64 };

struct telling_maker {
	struct telling_maker *prev, *next;
	int pidfd, signal;
	pid_t pid;
	uid_t user;
	char path[];
};

/* The daemon makes progress. */
static void move(const struct filesystem *filesystem)
{
	lease_board_move(filesystem->board, clock_now_ms());
}

static bool add(struct telling *telling, uint64_t number)
{
	if (telling->count == telling->capacity) {
		size_t capacity = telling->capacity * 2 + 64;
		uint64_t *numbers =
			reallocarray(telling->numbers, capacity, sizeof(*telling->numbers));
		if (numbers == NULL)
			return false;
		telling->numbers = numbers;
		telling->capacity = capacity;
	}
	telling->numbers[telling->count++] = number;
	return true;
}

static void signal_holders(struct handle *handle, struct signal_round *round)
{
	holder_tell_lost(handle, round);
	move(handle->filesystem);
}

void telling_lose(struct handle *handle)
{
	struct filesystem *filesystem = handle->filesystem;

	handle_set_fenced(handle);
	handle_wake_poll(handle);
	move(filesystem);
	handle_mark(handle);
	handle->inode->shard->metrics.fenced_handles++;
	if (add(filesystem->telling, handle->number))
		return;
	struct signal_round round = signal_round_begin(filesystem->board);
	signal_holders(handle, &round);
	signal_round_end(&round);
	holder_leave_all(handle);
	audit_lost(handle);
}

/* The pidfd of the one who made the file goes over. */
static void add_maker(struct telling *telling, const struct inode *inode, int signal)
{
	struct lockfile *lockfile = inode->lockfile;
	struct telling_maker *maker = malloc(sizeof(*maker) + strlen(inode->path) + 1);

	if (maker == NULL) {
		log_lock_error(inode->path, "cannot send SIG%s to process %d: %m",
			       sigabbrev_np(signal), (int)lockfile->maker.pid);
		return;
	}
	maker->pidfd = lockfile->maker.pidfd;
	maker->pid = lockfile->maker.pid;
	maker->user = inode->maker;
	maker->signal = signal;
	strcpy(maker->path, inode->path);
	lockfile->maker.pidfd = -1;
	DL_APPEND(telling->makers, maker);
}

void telling_lose_file(struct inode *inode)
{
	struct telling *telling = inode->shard->filesystem->telling;
	int signal = (int)inode_policy(inode).on_lost;
	struct inode *link = inode;

	/* Links, and names that were taken away, are one content. */
	do {
		if (link->handles > 0)
			telling->has_files = true;
		link->lockfile->lost_by = telling->event + 1;
		link = inode_next_link(link);
	} while (link != inode);
	if (signal != 0 && inode->lockfile->maker.pidfd >= 0)
		add_maker(telling, inode, signal);
}

static bool is_lost_now(const struct telling *telling, const struct inode *inode)
{
	return inode->lockfile != NULL && inode->lockfile->lost_by == telling->event + 1;
}

/* The open files of all files that are lost, in one pass. */
static void lose_handles(struct filesystem *filesystem)
{
	struct handle *handle;

	HANDLES_FOREACH (filesystem->handles, handle) {
		if (!handle->fenced && is_lost_now(filesystem->telling, handle->inode))
			telling_lose(handle);
	}
	filesystem->telling->has_files = false;
}

static void signal_maker(const struct telling_maker *maker, struct signal_round *round)
{
	int result = signal_round_send(round, maker->pidfd, maker->pid, maker->user, maker->signal);

	if (result > 0)
		log_lock_warning(maker->path, "sent SIG%s to process %d, which has lost the file",
				 sigabbrev_np(maker->signal), (int)maker->pid);
	else if (result < 0 && result != -ESRCH)
		log_lock_error(maker->path, "cannot send SIG%s to process %d: %s",
			       sigabbrev_np(maker->signal), (int)maker->pid, strerror(-result));
}

static void signal_makers(struct filesystem *filesystem, struct signal_round *round)
{
	struct telling_maker *maker, *next;

	DL_FOREACH_SAFE (filesystem->telling->makers, maker, next) {
		signal_maker(maker, round);
		move(filesystem);
		DL_DELETE(filesystem->telling->makers, maker);
		close(maker->pidfd);
		free(maker);
	}
}

static bool is_concluded(const struct telling *telling)
{
	return telling->signalled == telling->count && !telling->has_files &&
	       telling->makers == NULL;
}

static struct handle *find(const struct filesystem *filesystem, size_t at)
{
	return handle_of_number(filesystem->handles, filesystem->telling->numbers[at]);
}

void telling_conclude(struct filesystem *filesystem)
{
	struct telling *telling = filesystem->telling;
	struct signal_round round = signal_round_begin(filesystem->board);
	struct handle *handle;

	if (is_concluded(telling))
		return;
	log_hold();
	if (telling->has_files)
		lose_handles(filesystem);
	telling->event++;
	for (; telling->signalled < telling->count; telling->signalled++) {
		handle = find(filesystem, telling->signalled);
		if (handle != NULL)
			signal_holders(handle, &round);
	}
	signal_makers(filesystem, &round);
	signal_round_end(&round);
	log_resume();
}

static void say(struct filesystem *filesystem, size_t most)
{
	struct telling *telling = filesystem->telling;

	for (; most > 0 && telling->said < telling->count; telling->said++, most--) {
		struct handle *handle = find(filesystem, telling->said);
		if (handle == NULL)
			continue;
		holder_leave_all(handle);
		audit_lost(handle);
	}
	if (telling->said < telling->count)
		return;
	free(telling->numbers);
	telling->numbers = NULL;
	telling->count = telling->capacity = telling->signalled = telling->said = 0;
}

bool telling_is_due(const struct filesystem *filesystem)
{
	const struct telling *telling = filesystem->telling;
	return telling->count > 0 || !is_concluded(telling);
}

void telling_advance(struct filesystem *filesystem)
{
	telling_conclude(filesystem);
	if (filesystem->telling->count > 0)
		say(filesystem, SAID_AT_ONCE);
}

void telling_finish(struct filesystem *filesystem)
{
	telling_conclude(filesystem);
	say(filesystem, SIZE_MAX);
}
