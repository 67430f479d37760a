/* SPDX-License-Identifier: Apache-2.0
 *
 * What the users of a simulated host hold: record locks belong to processes, by the rules of
 * fcntl(2), the others to open files. A process and an open file that it has locked through are
 * one. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "world.h"

bool is_record(enum call_kind kind)
{
	return kind == CALL_RECORD || kind == CALL_TEST;
}

struct process *process_find(struct host *host, int lock, uint64_t id)
{
	for (int i = 0; i < PROCESSES_MAX; i++) {
		struct process *process = &host->processes[i];

		if (process->known && process->lock == lock && process->id == id)
			return process;
	}
	return NULL;
}

struct process *process_use(struct user *user, uint64_t id)
{
	struct host *host = user->host;
	struct process *process = process_find(host, user->lock, id);

	for (int i = 0; process == NULL && i < PROCESSES_MAX; i++) {
		if (host->processes[i].known)
			continue;
		process = &host->processes[i];
		memset(process, 0, sizeof(*process));
		process->known = true;
		process->lock = user->lock;
		process->id = id;
	}
	if (process == NULL)
		abort();
	if (!process->files[user - host->users])
		user_note_grant(user);
	process->files[user - host->users] = true;
	return process;
}

/* Whether the process has a call under way that the engine keeps it for. */
static bool is_kept(const struct host *host, const struct process *process)
{
	for (int i = 0; i < USERS_MAX; i++) {
		const struct user *user = &host->users[i];

		for (int j = 0; user->owner != NULL && user->lock == process->lock && j < CALLS_MAX;
		     j++) {
			const struct call *call = &user->calls[j];

			if (call->waiting && call->process == process->id &&
			    call->kind == CALL_RECORD)
				return true;
		}
	}
	return false;
}

void process_flush(struct host *host, int lock, uint64_t id)
{
	struct process *process = process_find(host, lock, id);

	if (process == NULL)
		return;
	memset(&process->held, 0, sizeof(process->held));
	if (!is_kept(host, process))
		process->known = false;
}

void processes_forget_file(const struct user *user)
{
	struct host *host = user->host;

	for (int i = 0; i < PROCESSES_MAX; i++) {
		struct process *process = &host->processes[i];
		bool known = false;

		if (!process->known || process->lock != user->lock)
			continue;
		process->files[user - host->users] = false;
		for (int j = 0; j < USERS_MAX; j++)
			known |= process->files[j];
		process->known = known;
	}
}

bool processes_lose(const struct user *user)
{
	struct host *host = user->host;
	bool any = false;

	for (int i = 0; i < PROCESSES_MAX; i++) {
		struct process *process = &host->processes[i];

		if (!process->known || !process->files[user - host->users])
			continue;
		if (!slots_are_free(process->held))
			process->lost = true;
		memset(&process->held, 0, sizeof(process->held));
		any |= process->lost;
	}
	return any;
}

bool process_waits(const struct host *host, uint64_t id)
{
	for (int i = 0; i < USERS_MAX; i++)
		for (int j = 0; host->users[i].owner != NULL && j < CALLS_MAX; j++)
			if (host->users[i].calls[j].waiting &&
			    host->users[i].calls[j].process == id)
				return true;
	return false;
}

bool process_uses(const struct host *host, uint64_t id, const struct user *user)
{
	const struct process *process = process_find((struct host *)host, user->lock, id);

	return process != NULL && process->files[user - host->users];
}

struct slots user_slots(const struct user *user)
{
	if (!user->holds)
		return (struct slots){{0}};
	return slots_of(CLAIM_SPAN_WHOLE, user->mode);
}

struct slots file_slots(const struct user *user)
{
	struct slots slots = user_slots(user);

	for (int i = 0; i < PROCESSES_MAX; i++) {
		const struct process *process = &user->host->processes[i];

		if (process->known && process->files[user - user->host->users])
			slots = slots_union(slots, process->held);
	}
	return slots;
}

bool process_opposes(const struct host *host, const struct process *process,
		     const struct call *call)
{
	if (!process->known || process->lost || process->lock != call->user->lock ||
	    !slots_conflict(process->held, call->slots))
		return false;
	if (host != call->user->host)
		return true;
	if (is_record(call->kind))
		return process->id != call->process;
	return !process->files[call->user - host->users];
}

bool user_opposes(const struct user *user, const struct call *call)
{
	if (user->owner == NULL || user->lock != call->user->lock ||
	    !slots_conflict(user_slots(user), call->slots))
		return false;
	if (user->host != call->user->host)
		return true;
	if (user == call->user)
		return false;
	return !is_record(call->kind) || !process_uses(user->host, call->process, user);
}

bool calls_are_one(const struct call *a, const struct call *b)
{
	if (a->user->host != b->user->host)
		return false;
	if (is_record(a->kind) && is_record(b->kind))
		return a->process == b->process;
	if (!is_record(a->kind) && !is_record(b->kind))
		return a->user == b->user;
	return is_record(a->kind) ? process_uses(a->user->host, a->process, b->user)
				  : process_uses(b->user->host, b->process, a->user);
}
