/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the pidfds of processes that hold locks. Loop thread only.
 */
#include "holder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "claim_text.h"
#include "handle.h"
#include "inode.h"
#include "log.h"

/* A process that holds the lock of a path, in whatever ways. */
struct recipient {
	struct recipient *prev, *next; /* in holders->recipients */
	pid_t pid;
	int pidfd;
	size_t uses;		     /* by holders; with the last one it goes */
	int64_t lost_ms, revoked_ms; /* when it was sent the signal; -1: never */
};

/* One of the ways. */
struct holder {
	struct holder *prev, *next; /* in handle->holders */
	struct handle *handle;
	struct recipient *recipient;
	bool has_ranges;			  /* else by flock or exclusive open */
	uint64_t owner;				  /* of the ranges, */
	struct holder *ranges_prev, *ranges_next; /* in holders->ranges */
};

/* A process that has ended and was not waited for counts as alive: its number is not free yet. */
static bool is_alive(const struct recipient *recipient)
{
	return pidfd_send_signal(recipient->pidfd, 0, NULL, 0) == 0 || errno != ESRCH;
}

/* While the process with that number waits, only one pidfd of somebody with that number can be of a
 * process that lives: its own. */
static struct recipient *find_recipient(const struct holders *holders, pid_t pid)
{
	struct recipient *recipient;
	DL_FOREACH (holders->recipients, recipient) {
		if (recipient->pid == pid && is_alive(recipient))
			return recipient;
	}
	return NULL;
}

/* Returns NULL with errno set: EMFILE or ENOMEM, as a rule. */
static struct recipient *create_recipient(struct holders *holders, pid_t pid)
{
	struct recipient *recipient = calloc(1, sizeof(*recipient));
	if (recipient == NULL)
		return NULL;
	recipient->pid = pid;
	recipient->lost_ms = recipient->revoked_ms = -1;
	recipient->pidfd = pidfd_open(pid, 0);
	if (recipient->pidfd < 0) {
		int error = errno;
		free(recipient);
		errno = error;
		return NULL;
	}
	DL_APPEND(holders->recipients, recipient);
	return recipient;
}

static void free_if_unused(struct holders *holders, struct recipient *recipient)
{
	if (recipient->uses > 0)
		return;
	DL_DELETE(holders->recipients, recipient);
	close(recipient->pidfd);
	free(recipient);
}

static void leave(struct holder *holder)
{
	struct handle *handle = holder->handle;
	struct holders *holders = handle_holders(handle);

	DL_DELETE(handle->holders, holder);
	if (holder->has_ranges)
		DL_DELETE2(holders->ranges, holder, ranges_prev, ranges_next);
	holder->recipient->uses--;
	free_if_unused(holders, holder->recipient);
	free(holder);
}

static struct holder *find_file(const struct handle *handle)
{
	struct holder *holder;
	DL_FOREACH (handle->holders, holder) {
		if (!holder->has_ranges)
			return holder;
	}
	return NULL;
}

static const struct holder *find_range(const struct handle *handle, uint64_t owner,
				       const struct recipient *recipient)
{
	const struct holder *holder;
	DL_FOREACH (handle->holders, holder) {
		if (holder->has_ranges && holder->owner == owner && holder->recipient == recipient)
			return holder;
	}
	return NULL;
}

/* For messages: the one that matters more. */
static const char *signal_name(const struct holders *holders)
{
	return sigabbrev_np(holders->lost_signal != 0 ? holders->lost_signal
						      : holders->revoke_signal);
}

static bool wants_none(const struct holders *holders)
{
	return holders->lost_signal == 0 && holders->revoke_signal == 0;
}

/* The process, noted among those of the path; NULL if that cannot be, which is told. */
static struct recipient *note_recipient(struct handle *handle, pid_t pid)
{
	struct holders *holders = handle_holders(handle);
	const char *path = handle->inode->path, *name = signal_name(holders);
	struct recipient *recipient = NULL;

	if (pid != 0) {
		recipient = find_recipient(holders, pid);
		if (recipient == NULL)
			recipient = create_recipient(holders, pid);
		if (recipient == NULL)
			log_lock_error(path, "process %d will get no SIG%s: %m", (int)pid, name);
	} else if (!handle->holder_unseen) {
		handle->holder_unseen = true;
		log_lock_warning(path, "a process of another pid namespace will get no SIG%s",
				 name);
	}
	return recipient;
}

static struct holder *create(struct handle *handle, struct recipient *recipient)
{
	struct holders *holders = handle_holders(handle);
	struct holder *holder = calloc(1, sizeof(*holder));

	if (holder == NULL) {
		log_lock_error(handle->inode->path, "process %d will get no SIG%s: %m",
			       (int)recipient->pid, signal_name(holders));
		free_if_unused(holders, recipient);
		return NULL;
	}
	recipient->uses++;
	holder->handle = handle;
	holder->recipient = recipient;
	DL_APPEND(handle->holders, holder);
	return holder;
}

void holder_take_file(struct handle *handle, pid_t thread)
{
	struct holder *former = find_file(handle);

	if (wants_none(handle_holders(handle)))
		return;
	struct recipient *recipient = note_recipient(handle, claim_text_process(thread));
	if (former != NULL && former->recipient == recipient)
		return;
	if (recipient != NULL)
		create(handle, recipient);
	if (former != NULL)
		leave(former);
}

void holder_take_range(struct handle *handle, uint64_t owner, pid_t process)
{
	struct holders *holders = handle_holders(handle);

	if (wants_none(holders))
		return;
	struct recipient *recipient = note_recipient(handle, process);
	if (recipient == NULL || find_range(handle, owner, recipient) != NULL)
		return;
	struct holder *holder = create(handle, recipient);
	if (holder == NULL)
		return;
	holder->has_ranges = true;
	holder->owner = owner;
	DL_APPEND2(holders->ranges, holder, ranges_prev, ranges_next);
}

void holder_leave_file(struct handle *handle)
{
	struct holder *holder = find_file(handle);
	if (holder != NULL)
		leave(holder);
}

void holder_leave_ranges(struct handle *handle, uint64_t owner)
{
	struct holders *holders = handle_holders(handle);
	struct holder *holder, *next;

	if (holders == NULL)
		return;
	DL_FOREACH_SAFE2 (holders->ranges, holder, next, ranges_next) {
		if (holder->owner == owner)
			leave(holder);
	}
}

void holder_leave_all(struct handle *handle)
{
	while (handle->holders != NULL)
		leave(handle->holders);
}

/* Once for all open files of the path: what concerns several comes in one turn of the loop, which
 * has one time. */
static void tell(const struct handle *handle, const struct recipient *recipient, int64_t *told_ms,
		 int signal, const char *why)
{
	const char *path = handle->inode->path;
	int64_t now_ms = handle->filesystem->now_ms;

	if (signal == 0 || *told_ms == now_ms)
		return;
	*told_ms = now_ms;
	if (pidfd_send_signal(recipient->pidfd, signal, NULL, 0) == 0)
		log_lock_warning(path, "sent SIG%s to process %d, which %s the lock",
				 sigabbrev_np(signal), (int)recipient->pid, why);
	else if (errno != ESRCH)
		log_lock_error(path, "cannot send SIG%s to process %d, which %s the lock: %m",
			       sigabbrev_np(signal), (int)recipient->pid, why);
}

void holder_tell_lost(struct handle *handle)
{
	const struct holder *holder;
	DL_FOREACH (handle->holders, holder) {
		struct recipient *recipient = holder->recipient;
		tell(handle, recipient, &recipient->lost_ms, handle_holders(handle)->lost_signal,
		     "has lost");
	}
	holder_leave_all(handle);
}

void holder_tell_revoked(struct handle *handle)
{
	const struct holder *holder;
	DL_FOREACH (handle->holders, holder) {
		struct recipient *recipient = holder->recipient;
		tell(handle, recipient, &recipient->revoked_ms,
		     handle_holders(handle)->revoke_signal, "is asked for");
	}
}

void holder_save_all(const struct handle *handle, FILE *out)
{
	const struct holder *holder;

	DL_FOREACH (handle->holders, holder) {
		const struct recipient *recipient = holder->recipient;
		state_begin(out, "holder");
		state_unsigned(out, "handle", handle->number);
		state_number(out, "pid", recipient->pid);
		state_number(out, "pidfd", recipient->pidfd);
		state_number(out, "lost_ms", recipient->lost_ms);
		state_number(out, "revoked_ms", recipient->revoked_ms);
		state_flag(out, "ranges", holder->has_ranges);
		state_unsigned(out, "owner", holder->owner);
		state_end(out);
	}
}

void holder_keep_all(const struct handle *handle)
{
	const struct holder *holder;

	DL_FOREACH (handle->holders, holder) {
		fcntl(holder->recipient->pidfd, F_SETFD, 0);
	}
}

/* The process of the present line; NULL as holder_restore() says. */
static struct recipient *restore_recipient(struct holders *holders, struct state_reader *in,
					   bool rehearsal)
{
	pid_t pid = (pid_t)state_get_number(in, "pid", 1, INT32_MAX);
	int pidfd = (int)state_get_number(in, "pidfd", 3, INT32_MAX);
	struct recipient *recipient;

	if (state_failed(in))
		return NULL;
	if (rehearsal)
		pidfd = -1;
	DL_FOREACH (holders->recipients, recipient) {
		if (recipient->pid == pid && recipient->pidfd == pidfd)
			return recipient;
	}
	if (!rehearsal && fcntl(pidfd, F_SETFD, FD_CLOEXEC) < 0) {
		state_refuse(in, "pidfd", "an open descriptor");
		return NULL;
	}
	recipient = calloc(1, sizeof(*recipient));
	if (recipient == NULL) {
		state_starve(in);
		return NULL;
	}
	recipient->pid = pid;
	recipient->pidfd = pidfd;
	recipient->lost_ms = state_get_number(in, "lost_ms", -1, INT64_MAX);
	recipient->revoked_ms = state_get_number(in, "revoked_ms", -1, INT64_MAX);
	DL_APPEND(holders->recipients, recipient);
	return recipient;
}

int holder_restore(struct handle *handle, struct state_reader *in, bool rehearsal)
{
	struct holders *holders = handle_holders(handle);

	if (holders == NULL)
		return state_refuse(in, "handle", "an open file with an owner");
	struct recipient *recipient = restore_recipient(holders, in, rehearsal);
	if (recipient == NULL)
		return -EINVAL;
	struct holder *holder = create(handle, recipient);
	if (holder == NULL)
		return state_starve(in);
	holder->has_ranges = state_find_flag(in, "ranges");
	holder->owner = state_find_unsigned(in, "owner", UINT64_MAX);
	if (holder->has_ranges)
		DL_APPEND2(holders->ranges, holder, ranges_prev, ranges_next);
	return state_failed(in) ? -EINVAL : 0;
}
