/* SPDX-License-Identifier: Apache-2.0
 *
 * Who waits for whom in a circle: once as the service's queues tell, which is what any engine can
 * know at best; and once, when it is calm, as the calls of users and what they hold tell.
 * Single-threaded.
 */
#include <limits.h>

#include "world.h"

/* As the queues tell. A process is known by the life of its host and its number. */

struct search {
	struct call *call; /* whose process is looked for */
	uint64_t number;
};

static bool reaches(const struct search *search, struct view *view, size_t place);

static struct host *host_of(struct world *world, unsigned life)
{
	for (int i = 0; i < world->hosts_count; i++)
		if (world->hosts[i].engine != NULL && world->hosts[i].life == life)
			return &world->hosts[i];
	return NULL;
}

/* Whether the process waits for the one that is looked for. */
static bool process_reaches(const struct search *search, unsigned life, uint64_t process)
{
	const struct host *own = search->call->user->host;
	struct world *world = own->world;

	if (life == own->life && process == search->call->process)
		return true;
	for (int lock = 0; lock < world->locks_count; lock++) {
		struct view *view = view_of(world, lock);

		for (size_t i = 0; i < view->count; i++) {
			const struct standing *standing = view->claims[i].standing;

			if (standing != NULL && standing->former == life &&
			    standing->kind == CALL_RECORD && standing->process == process &&
			    !standing->granted && reaches(search, view, i))
				return true;
		}
	}
	return false;
}

/* Whether the process may have locked through the flock's file. Once that was released, the flock
 * is kept for somebody on that host who holds something. */
static bool may_use(const struct host *host, const struct process *process,
		    const struct standing *flock)
{
	if (!process->known || process->lock != flock->lock || slots_are_free(process->held))
		return false;
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL && host->users[i].number == flock->user &&
		    process->files[i])
			return true;
	return flock->released;
}

static bool users_reach(const struct search *search, const struct standing *flock)
{
	const struct host *host = host_of(search->call->user->host->world, flock->life);

	for (int i = 0; host != NULL && i < PROCESSES_MAX; i++) {
		const struct process *process = &host->processes[i];

		if (may_use(host, process, flock) &&
		    process_reaches(search, flock->life, process->id))
			return true;
	}
	return false;
}

/* What a claim covers: of the searching host as it is, of others as the service was told. */
static struct slots covered_by(const struct search *search, const struct view_claim *claim)
{
	const struct standing *standing = claim->standing;
	struct host *own = search->call->user->host;
	const struct process *process;

	if (standing == NULL)
		return slots_of(claim->parts.span, claim->parts.mode);
	if (standing->life != own->life || !standing->granted || !is_record(standing->kind))
		return standing->covered;
	process = process_find(own, standing->lock, standing->process);
	return process != NULL ? process->held : (struct slots){{0}};
}

static bool is_granted(const struct view_claim *claim)
{
	return claim->standing != NULL && claim->standing->granted;
}

/* Whether a claim that was not granted may have been, for all that other hosts can know. */
static bool may_hold(const struct search *search, const struct standing *standing)
{
	return standing == NULL ||
	       (standing->life != search->call->user->host->life && !standing->says_waits);
}

static bool blocks(const struct search *search, const struct view_claim *blocking,
		   const struct view_claim *waiting)
{
	const struct standing *standing = blocking->standing;

	if (blocking == waiting ||
	    (standing != NULL && standing->life == search->call->user->host->life &&
	     standing->withdrawing) ||
	    !slots_conflict(covered_by(search, blocking), covered_by(search, waiting)))
		return false;
	if (is_granted(blocking))
		return true;
	if (blocking > waiting)
		return view_has_precedence(blocking, waiting);
	return !view_has_precedence(waiting, blocking) || may_hold(search, standing);
}

/* Whether who has the claim that blocks waits for the process. */
static bool owner_reaches(const struct search *search, const struct view_claim *blocking,
			  const struct view_claim *waiting)
{
	const struct standing *standing = blocking->standing, *other = waiting->standing;

	if (standing == NULL)
		return false;
	if (!is_record(standing->kind))
		return users_reach(search, standing);
	if (other != NULL && standing->former == other->former && is_record(other->kind) &&
	    standing->process == other->process)
		return false;
	return process_reaches(search, standing->former, standing->process);
}

static bool reaches(const struct search *search, struct view *view, size_t place)
{
	struct view_claim *waiting = &view->claims[place];

	if (waiting->visited == search->number)
		return false;
	waiting->visited = search->number;
	for (size_t i = 0; i < view->count; i++) {
		const struct view_claim *blocking = &view->claims[i];

		if (!blocks(search, blocking, waiting))
			continue;
		/* Other clients let nobody pass, so one that only waits counts as a holder does. */
		if (blocking->standing == NULL && reaches(search, view, i))
			return true;
		if ((is_granted(blocking) || may_hold(search, blocking->standing)) &&
		    owner_reaches(search, blocking, waiting))
			return true;
	}
	return false;
}

bool wait_is_circle(struct call *call)
{
	struct world *world = call->user->host->world;
	const struct search search = {call, ++world->searches};
	struct view *view = view_of(world, call->user->lock);
	const struct view_claim *claim = view_find(view, call);

	return claim != NULL && reaches(&search, view, (size_t)(claim - view->claims));
}

/* As the calls tell. */

enum scope {
	SCOPE_ALL,
	SCOPE_LOCK, /* only record locks of the one lock, */
	SCOPE_HOST, /* or only those of the one host: circles that an engine sees */
};

struct trace {
	const struct call *call; /* who is looked for */
	enum scope scope;
	bool holders_only; /* not those who only wait in front */
	uint64_t number;
};

static bool traces(const struct trace *trace, struct call *call);

static bool host_is_in(const struct trace *trace, const struct host *host)
{
	return host->engine != NULL &&
	       (trace->scope != SCOPE_HOST || host == trace->call->user->host);
}

static bool traces_calls(const struct trace *trace, struct host *host, uint64_t process,
			 const struct user *file)
{
	for (int i = 0; i < USERS_MAX; i++) {
		struct user *user = &host->users[i];

		for (int j = 0; user->owner != NULL && j < CALLS_MAX; j++) {
			struct call *call = &user->calls[j];

			if (!call->waiting || (call->process != process && user != file))
				continue;
			if (call == trace->call || traces(trace, call))
				return true;
		}
	}
	return false;
}

static bool traces_process(const struct trace *trace, struct host *host, uint64_t process)
{
	if (host == trace->call->user->host && process == trace->call->process)
		return true;
	return traces_calls(trace, host, process, NULL);
}

/* An open file: whoever uses it has to let go. */
static bool traces_file(const struct trace *trace, struct user *file)
{
	if (file == trace->call->user)
		return true;
	for (int i = 0; i < CALLS_MAX; i++)
		if (traces_process(trace, file->host, file->calls[i].process))
			return true;
	return traces_calls(trace, file->host, UINT64_MAX, file);
}

/* Whether claims of its own stand for what the process holds and the call conflicts with. */
static bool is_claimed(struct host *host, const struct process *process, const struct call *call)
{
	const struct view *view = view_of(host->world, process->lock);

	for (size_t i = 0; i < view->count; i++) {
		const struct standing *standing = view->claims[i].standing;

		if (standing != NULL && standing->life == host->life && standing->granted &&
		    is_record(standing->kind) && standing->process == process->id &&
		    slots_conflict(standing->covered, call->slots))
			return true;
	}
	return false;
}

static bool traces_holders(const struct trace *trace, struct host *host, const struct call *call)
{
	for (int i = 0; i < PROCESSES_MAX; i++) {
		struct process *process = &host->processes[i];

		if (process_opposes(host, process, call) &&
		    (trace->scope == SCOPE_ALL || is_claimed(host, process, call)) &&
		    traces_process(trace, host, process->id))
			return true;
	}
	for (int i = 0; trace->scope == SCOPE_ALL && i < USERS_MAX; i++)
		if (user_opposes(&host->users[i], call) && traces_file(trace, &host->users[i]))
			return true;
	return false;
}

/* Who waits by a claim of flock or open: those whom it will be given to, of them who have asked
 * before a call of that number; or whose own it is. */
static bool traces_askers(const struct trace *trace, struct host *host,
			  const struct standing *standing, unsigned before)
{
	bool followed = false;

	for (int i = 0; i < USERS_MAX * CALLS_MAX; i++) {
		struct user *user = &host->users[i / CALLS_MAX];
		struct call *call = &user->calls[i % CALLS_MAX];

		if (user->owner == NULL || !call->waiting || is_record(call->kind) ||
		    !handoff_is_followed(standing, call))
			continue;
		followed = true;
		if (call->number < before && traces_file(trace, user))
			return true;
	}
	for (int i = 0; !followed && i < USERS_MAX; i++)
		if (host->users[i].owner != NULL && host->users[i].number == standing->user &&
		    traces_file(trace, &host->users[i]))
			return true;
	return false;
}

static bool traces_claim(const struct trace *trace, const struct view *view, size_t place,
			 const struct call *call, const struct view_claim *own)
{
	const struct view_claim *claim = &view->claims[place];
	const struct standing *standing = claim->standing;
	struct host *host;

	if (standing == NULL || standing->withdrawing || claim == own)
		return false;
	host = host_of(call->user->host->world, standing->life);
	if (host == NULL || !host_is_in(trace, host))
		return false;
	if (standing->released) {
		for (int i = 0; trace->scope == SCOPE_ALL && i < PROCESSES_MAX; i++)
			if (host->processes[i].known && host->processes[i].lock == standing->lock &&
			    !slots_are_free(host->processes[i].held) &&
			    traces_process(trace, host, host->processes[i].id))
				return true;
		return false;
	}
	if (standing->granted ||
	    !slots_conflict(standing->covered,
			    own == NULL ? call->slots : own->standing->covered) ||
	    (host == call->user->host && standing_is_own(standing, call)))
		return false;
	if (own != NULL &&
	    (claim < own ? view_has_precedence(own, claim) : !view_has_precedence(claim, own)))
		return false;
	if (is_record(standing->kind))
		return traces_process(trace, host, standing->process);
	return trace->scope == SCOPE_ALL && traces_askers(trace, host, standing, UINT_MAX);
}

static bool traces(const struct trace *trace, struct call *call)
{
	struct world *world = call->user->host->world;
	const struct view *view;
	const struct view_claim *own;

	if (call->visited == trace->number)
		return false;
	call->visited = trace->number;
	if (trace->scope != SCOPE_ALL && !is_record(call->kind))
		return false;
	if (trace->scope == SCOPE_LOCK && call->user->lock != trace->call->user->lock)
		return false;
	view = view_of(world, call->user->lock);
	own = view_find(view, call);
	for (size_t i = 0; !trace->holders_only && i < view->count; i++)
		if (traces_claim(trace, view, i, call, own))
			return true;
	if (own != NULL && !is_record(call->kind) && handoff_is_followed(own->standing, call) &&
	    traces_askers(trace, call->user->host, own->standing, call->number))
		return true;
	for (int i = 0; i < world->hosts_count; i++)
		if (host_is_in(trace, &world->hosts[i]) &&
		    traces_holders(trace, &world->hosts[i], call))
			return true;
	return false;
}

static struct trace begin_trace(const struct call *call, enum scope scope)
{
	return (struct trace){
		.call = call,
		.scope = scope,
		.number = ++call->user->host->world->searches,
	};
}

static bool is_in_circle(struct call *call, enum scope scope, bool holders_only)
{
	struct trace trace = begin_trace(call, scope);

	trace.holders_only = holders_only;
	return traces(&trace, call);
}

/* Whether a holder, each of whom a circle may go through, waits for the call. */
static bool traces_process_anew(const struct call *call, enum scope scope, struct host *host,
				uint64_t process)
{
	const struct trace trace = begin_trace(call, scope);

	return host_is_in(&trace, host) && traces_process(&trace, host, process);
}

static bool traces_file_anew(const struct call *call, struct user *file)
{
	const struct trace trace = begin_trace(call, SCOPE_ALL);

	return traces_file(&trace, file);
}

/* Whether the call waits for a holder, too, who waits for the call, but as no engine sees it. Then
 * others are not made to let the call pass, which would be of no use (engine/records/deadlock.c).
 */
static bool is_held_up(const struct call *call, enum scope scope)
{
	struct world *world = call->user->host->world;

	for (int i = 0; i < world->hosts_count; i++) {
		struct host *host = &world->hosts[i];

		for (int j = 0; host->engine != NULL && j < PROCESSES_MAX; j++) {
			const struct process *process = &host->processes[j];

			if (process_opposes(host, process, call) &&
			    traces_process_anew(call, SCOPE_ALL, host, process->id) &&
			    !traces_process_anew(call, scope, host, process->id))
				return true;
		}
		for (int j = 0; host->engine != NULL && j < USERS_MAX; j++)
			if (user_opposes(&host->users[j], call) &&
			    traces_file_anew(call, &host->users[j]))
				return true;
	}
	return false;
}

static bool is_promised(struct call *call, enum scope scope)
{
	return is_in_circle(call, scope, true) ||
	       (is_in_circle(call, scope, false) && !is_held_up(call, scope));
}

bool wait_is_hopeless(struct call *call)
{
	return is_in_circle(call, SCOPE_ALL, false) && !is_promised(call, SCOPE_LOCK) &&
	       !is_promised(call, SCOPE_HOST);
}
