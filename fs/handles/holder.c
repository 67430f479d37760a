/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the pidfds of processes that hold locks. Loop thread only.
 */
#include "handles/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/log.h"
#include "base/platform.h"
#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/shard.h"
#include "files/user.h"
#include "files/user_lines.h"
#include "handles/handle.h"
#include "journal/fields.h"
#include "kernel/descriptors.h"
#include "kernel/lease_board.h"
#include "kernel/process_start.h"
#include "kernel/signal_round.h"

/* A process that holds the lock of a path, in whatever ways. */
struct recipient {
	struct recipient *prev, *next; /* in holders->recipients */
	pid_t pid;
	int pidfd;
	uint64_t start;		 /* when it started: process_start(); 0: it is not known */
	size_t uses;		 /* by holders; with the last one it goes */
	int64_t revoked_ms;	 /* when it was sent the signal of on_revoke; -1: never */
	lease_board_entry entry; /* for the guard, if on_lost is a signal; 0: it is not noted */
};

/* One way in which a process holds: by flock or exclusive open, or by ranges, through one open
 * file. */
struct holder {
	struct state_item item;	    /* first */
	struct holder *prev, *next; /* in handle->holders */
	uint64_t serial;	    /* in their order */
	struct handle *handle;
	struct recipient *recipient;
	bool has_ranges;			  /* else it holds by flock or exclusive open */
	uint64_t owner;				  /* of the ranges, */
	struct holder *ranges_prev, *ranges_next; /* in holders->ranges */
};

/* Whether to write a line about a process that holds, of which its user may cause any number. */
static bool may_log(const struct handle *handle)
{
	return user_lines_pass(handle->filesystem, handle->user->uid, USER_LINES_EVENTS);
}

/* A zombie counts as alive: its number is not free yet. */
static bool is_alive(const struct recipient *recipient)
{
	return pidfd_send_signal(recipient->pidfd, 0, NULL, 0) == 0 || errno != ESRCH;
}

/* While the process with that number waits, only its own pidfd can be of a living process with that
 * number. */
static struct recipient *find_recipient(const struct holders *holders, pid_t pid)
{
	struct recipient *recipient;
	DL_FOREACH (holders->recipients, recipient) {
		if (recipient->pid == pid && is_alive(recipient))
			return recipient;
	}
	return NULL;
}

/* The journal and the guard know a process by when it started. */
static void note_start(struct recipient *recipient)
{
	if (recipient->start != 0)
		return;
	recipient->start = process_start(recipient->pid);
	if (!is_alive(recipient)) /* the start time may be another process's */
		recipient->start = 0;
}

/* Returns NULL with errno set: EMFILE or ENOMEM, as a rule. */
static struct recipient *create_recipient(struct holders *holders, pid_t pid)
{
	struct recipient *recipient = calloc(1, sizeof(*recipient));
	if (recipient == NULL)
		return NULL;
	recipient->pid = pid;
	recipient->revoked_ms = -1;
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

static void free_if_unused(struct lease_board *board, struct holders *holders,
			   struct recipient *recipient)
{
	if (recipient->uses > 0) {
		lease_board_renew(board, recipient->entry);
		return;
	}
	DL_DELETE(holders->recipients, recipient);
	lease_board_remove(board, recipient->entry);
	close(recipient->pidfd);
	free(recipient);
}

/* The guard tells the process if the daemon hangs when the lease ends. */
static void note_for_guard(const struct handle *handle, struct recipient *recipient)
{
	const struct holders *holders = handle_holders(handle);
	struct lease_board *board = handle->filesystem->board;

	if (board == NULL || holders->lost_signal == 0 || recipient->entry != 0)
		return;
	note_start(recipient);
	if (recipient->start == 0) /* the process has ended */
		return;
	const struct lease_board_process process = {
		.pid = recipient->pid,
		.start = recipient->start,
		.user = handle->user->uid,
		.store = shard_number(handle->inode->shard),
		.signal = holders->lost_signal,
	};
	recipient->entry = lease_board_add(board, &process);
	if (recipient->entry == 0 && may_log(handle))
		log_lock_warning(handle->inode->path,
				 "process %d will get no SIG%s if the daemon hangs: too many hold",
				 (int)recipient->pid, sigabbrev_np(holders->lost_signal));
}

static void leave(struct holder *holder)
{
	struct handle *handle = holder->handle;
	struct holders *holders = handle_holders(handle);

	state_journal_remove(handle->filesystem->journal, &holder->item);
	DL_DELETE(handle->holders, holder);
	if (holder->has_ranges)
		DL_DELETE2(holders->ranges, holder, ranges_prev, ranges_next);
	holder->recipient->uses--;
	free_if_unused(handle->filesystem->board, holders, holder->recipient);
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

/* The signal to name in messages: that of on_lost, if there is one. */
static const char *signal_name(const struct holders *holders)
{
	return sigabbrev_np(holders->lost_signal != 0 ? holders->lost_signal
						      : holders->revoke_signal);
}

static bool wants_none(const struct holders *holders)
{
	return holders->lost_signal == 0 && holders->revoke_signal == 0;
}

/* Notes the process among those of the path. NULL: it cannot be noted, which is logged. */
static struct recipient *note_recipient(struct handle *handle, pid_t pid)
{
	struct holders *holders = handle_holders(handle);
	const char *path = handle->inode->path, *name = signal_name(holders);
	struct recipient *recipient = NULL;

	if (pid != 0) {
		recipient = find_recipient(holders, pid);
		if (recipient == NULL)
			recipient = create_recipient(holders, pid);
		if (recipient == NULL && may_log(handle))
			log_lock_error(path, "process %d will get no SIG%s: %m", (int)pid, name);
	} else if (!handle->holder_unseen) {
		handle->holder_unseen = true;
		handle_mark(handle);
		if (may_log(handle))
			log_lock_warning(
				path, "a process of another pid namespace will get no SIG%s", name);
	}
	return recipient;
}

static const struct field fields[] = {
	{"ranges", FIELD_FLAG(struct holder, has_ranges)},
	{"owner", FIELD_UNSIGNED(struct holder, owner, UINT64_MAX), FIELD_OR(0)},
	{0},
};

static const struct field recipient_fields[] = {
	{"pid", FIELD_NUMBER(struct recipient, pid, 1, INT32_MAX)},
	{"start", FIELD_UNSIGNED(struct recipient, start, UINT64_MAX), FIELD_OR(0)},
	{0},
};

static void save(const struct state_item *item, FILE *out)
{
	const struct holder *holder = (const struct holder *)item;

	state_begin(out, "holder");
	state_unsigned(out, "handle", holder->handle->number);
	fields_save(recipient_fields, holder->recipient, out);
	state_number(out, "pidfd", holder->recipient->pidfd);
	fields_save(fields, holder, out);
	state_end(out);
}

static struct state_place place(const struct state_item *item)
{
	const struct holder *holder = (const struct holder *)item;
	return (struct state_place){{STATE_PLACE_HANDLE, holder->handle->number,
				     STATE_OF_HANDLE_HOLDER, holder->serial}};
}

static void mark(struct holder *holder)
{
	static const struct state_kind kind = {place, save};
	struct state_journal *journal = holder->handle->filesystem->journal;

	if (journal != NULL)
		note_start(holder->recipient);
	state_journal_mark(journal, &holder->item, &kind);
}

static struct holder *create(struct handle *handle, struct recipient *recipient)
{
	struct holders *holders = handle_holders(handle);
	struct holder *holder = calloc(1, sizeof(*holder));

	if (holder == NULL) {
		if (may_log(handle))
			log_lock_error(handle->inode->path, "process %d will get no SIG%s: %m",
				       (int)recipient->pid, signal_name(holders));
		free_if_unused(handle->filesystem->board, holders, recipient);
		return NULL;
	}
	recipient->uses++;
	holder->handle = handle;
	holder->recipient = recipient;
	holder->serial = ++handle->filesystem->handles->last_holder;
	DL_APPEND(handle->holders, holder);
	note_for_guard(handle, recipient);
	mark(holder);
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

/* Whether the process still has the open file. One that holds by its ranges does: they go when it
 * closes the file. Another may have passed the descriptor on, and closed its own: only then does
 * its table tell. */
static bool has_file(const struct holder *holder, struct signal_round *round)
{
	const struct handle *handle = holder->handle;
	struct stat attr;

	if (!handle->flushed)
		return true;
	inode_stat(handle->inode, &attr);
	return descriptors_have(holder->recipient->pid, attr.st_ino, &round->looks);
}

static void tell(const struct holder *holder, struct signal_round *round, int signal,
		 const char *why)
{
	const struct handle *handle = holder->handle;
	const struct recipient *recipient = holder->recipient;
	const char *path = handle->inode->path;

	if (signal == 0 || signal_round_has(round, recipient->pid, signal) ||
	    !has_file(holder, round))
		return;
	int result = signal_round_send(round, recipient->pidfd, recipient->pid, handle->user->uid,
				       signal);
	if (result == 0 || result == -ESRCH || !may_log(handle))
		return;
	if (result > 0)
		log_lock_warning(path, "sent SIG%s to process %d, which %s the lock",
				 sigabbrev_np(signal), (int)recipient->pid, why);
	else
		log_lock_error(path, "cannot send SIG%s to process %d, which %s the lock: %s",
			       sigabbrev_np(signal), (int)recipient->pid, why, strerror(-result));
}

/* The guard has told the process, and writes no lines. */
static void note_told(const struct holder *holder, struct signal_round *round, int signal)
{
	pid_t pid = holder->recipient->pid;

	if (signal_round_has(round, pid, signal))
		return;
	signal_round_note(round, pid, signal);
	log_lock_warning(holder->handle->inode->path,
			 "the guard has sent SIG%s to process %d, which has lost the lock",
			 sigabbrev_np(signal), (int)pid);
}

void holder_tell_lost(struct handle *handle, struct signal_round *round)
{
	struct lease_board *board = handle->filesystem->board;
	const struct holder *holder;

	if (handle->holders == NULL)
		return;
	int signal = handle_holders(handle)->lost_signal;
	DL_FOREACH (handle->holders, holder) {
		if (lease_board_begin_telling(board, holder->recipient->entry))
			tell(holder, round, signal, "has lost");
		else
			note_told(holder, round, signal);
	}
}

/* A process that holds through several open files of the path is asked once: all that comes in one
 * turn of the loop, in which the time stands still. */
void holder_tell_revoked(struct handle *handle)
{
	int64_t now_ms = handle->filesystem->now_ms;
	struct signal_round round = signal_round_begin(handle->filesystem->board);
	const struct holder *holder;

	DL_FOREACH (handle->holders, holder) {
		struct recipient *recipient = holder->recipient;
		if (recipient->revoked_ms != now_ms)
			tell(holder, &round, handle_holders(handle)->revoke_signal, "is asked for");
		recipient->revoked_ms = now_ms;
	}
	signal_round_end(&round);
}

void holder_save_all(const struct handle *handle, FILE *out)
{
	const struct holder *holder;

	DL_FOREACH (handle->holders, holder) {
		save(&holder->item, out);
	}
}

void holder_keep_all(const struct handle *handle)
{
	const struct holder *holder;

	DL_FOREACH (handle->holders, holder) {
		fcntl(holder->recipient->pidfd, F_SETFD, 0);
	}
}

/* The pidfd of a holder that another daemon has noted. -1: the holder is gone, or the log says why
 * it will get no signal. */
static int reopen(const struct handle *handle, pid_t pid, uint64_t start)
{
	int pidfd = start != 0 ? process_start_open(pid, start) : -1;

	if (start != 0 && pidfd < 0 && errno != ESRCH)
		log_lock_error(handle->inode->path, "process %d will get no SIG%s: %m", (int)pid,
			       signal_name(handle_holders(handle)));
	return pidfd;
}

static struct recipient *find_restored(const struct holders *holders, const struct recipient *said)
{
	struct recipient *recipient;

	DL_FOREACH (holders->recipients, recipient) {
		if (recipient->pid == said->pid && recipient->start == said->start &&
		    (said->pidfd < 0 || recipient->pidfd == said->pidfd))
			return recipient;
	}
	return NULL;
}

/* The process of the present line. NULL: it is gone, or an error, as holder_restore() says. */
static struct recipient *restore_recipient(struct handle *handle, struct state_reader *in,
					   enum holder_origin origin)
{
	struct holders *holders = handle_holders(handle);
	struct recipient said = {.pidfd = -1, .revoked_ms = -1};

	fields_restore(recipient_fields, &said, in);
	if (origin == HOLDER_INHERITED)
		said.pidfd = (int)state_get_number(in, "pidfd", 3, INT32_MAX);
	if (state_failed(in))
		return NULL;
	struct recipient *recipient = find_restored(holders, &said);
	if (recipient != NULL)
		return recipient;
	if (origin == HOLDER_INHERITED && fcntl(said.pidfd, F_SETFD, FD_CLOEXEC) < 0) {
		state_refuse(in, "pidfd", "an open descriptor");
		return NULL;
	}
	if (origin == HOLDER_OPENED) {
		said.pidfd = reopen(handle, said.pid, said.start);
		if (said.pidfd < 0)
			return NULL;
	}
	recipient = calloc(1, sizeof(*recipient));
	if (recipient == NULL) {
		state_starve(in);
		if (origin == HOLDER_OPENED)
			close(said.pidfd);
		return NULL;
	}
	*recipient = said;
	DL_APPEND(holders->recipients, recipient);
	return recipient;
}

int holder_restore(struct handle *handle, struct state_reader *in, enum holder_origin origin)
{
	struct holders *holders = handle_holders(handle);

	if (holders == NULL)
		return state_refuse(in, "handle", "an open file with an owner");
	struct recipient *recipient = restore_recipient(handle, in, origin);
	if (recipient == NULL)
		return state_failed(in) ? -EINVAL : 0;
	struct holder *holder = create(handle, recipient);
	if (holder == NULL)
		return state_starve(in);
	fields_restore(fields, holder, in);
	if (holder->has_ranges)
		DL_APPEND2(holders->ranges, holder, ranges_prev, ranges_next);
	return state_failed(in) ? -EINVAL : 0;
}
