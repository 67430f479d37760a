/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated world: a few hosts, each an engine on a bad network, share one service of claims;
 * their users lock and unlock at random.
 *
 *   sim.c          the command line, time, the order of things
 *   world.c        hosts and what befalls them
 *   world_users.c  what users do
 *   world_check.c  what must be true after every step
 *
 * The world knows the truth: what stands in the service's queues and whose it is. An engine only
 * knows what its store tells it.
 */
#ifndef DLOCKFS_WORLD_H
#define DLOCKFS_WORLD_H

#include <stdarg.h>

#include "engine.h"
#include "prng.h"
#include "store_faulty.h"

enum { HOSTS_MAX = 4, LOCKS_MAX = 3, USERS_MAX = 5, FOREIGN_MAX = 2, NAME_BYTES = 96 };
enum { TIMEOUT_MS = 300 }; /* of a session */

/* A process with the lock's file open; at most one call of it is under way. */
struct user {
	struct host *host;
	struct owner *owner; /* NULL: no such user now */
	unsigned number;     /* of all that ever were, from 1 */
	int lock;
	bool lost;

	struct claim *wish; /* of the call that is under way; NULL: none is */
	bool waiting;
	bool interrupted; /* the last call was; it may be restarted */
	bool excused;	  /* there was a reason to refuse a call that does not wait */
	enum lock_kind kind;
	enum claim_mode mode;
	bool waits;
	int64_t since_ms;

	bool holds_open, holds_flock;
	enum claim_mode flock_mode;
};

struct host {
	struct world *world;
	int number;
	unsigned life; /* of all that ever were, from 1: a host that comes back begins another, and
			  so does one that gives its session up */
	struct engine *engine; /* NULL: it is down */
	struct store *store;
	struct store *ghost; /* of its former life, until that session has expired */
	int64_t reconnect_ms;
	int64_t heal_ms;		      /* when its server is not cut off any more */
	int64_t wake_ms;		      /* paused: when it goes on; else INT64_MAX */
	int64_t well_ms;		      /* nothing has been wrong with it since then */
	int64_t clock_offset_ms, clock_drift; /* in 1/10000 */
	struct user users[USERS_MAX];
};

/* A claim that came to stand in a queue, and by whom. */
struct record {
	char name[NAME_BYTES];
	unsigned user;
	unsigned life;	  /* 0: of none any more, when it came to stand */
	bool withdrawing; /* its host has asked for its end */
};

struct lock_view {
	size_t count;
	struct {
		char name[NAME_BYTES];
		enum claim_mode mode;
	} claims[128];
};

struct world {
	uint64_t seed;
	struct prng prng;
	int64_t now_ms;
	long step;
	bool verbose;
	bool failed;
	bool calm; /* the end: no faults, nothing new, who holds lets go */

	struct local_service *service;
	struct lock_policy policy;
	int refused_percent;
	int64_t delay_ms;
	int hosts_count, locks_count;
	struct host hosts[HOSTS_MAX];
	unsigned users, lives;

	struct record *records;
	size_t records_count, records_capacity;
	struct store *observer; /* looks at queues, places nothing */
	struct lock_view view;

	/* A client of another kind. */
	struct store *foreign;
	struct foreign_claim {
		int lock;
		int32_t sequence;
		char name[NAME_BYTES];
	} foreign_claims[FOREIGN_MAX];
};

/* world.c */
void world_init(struct world *world, uint64_t seed, bool verbose);
void world_finish(struct world *world);
const char *world_lock(int lock);
int64_t world_due(const struct world *world);

/* Lets one thing happen that is due on a host that is drawn. */
void world_happen(struct world *world);

/* Notes after each step whether something is wrong with the hosts, and mends what nobody else will.
 */
void world_note(struct world *world);

/* The time by the host's own clock, which runs at its own speed. */
int64_t host_clock(const struct host *host);

/* Whether there is somebody to act or to be asked. */
bool host_runs(const struct host *host);

/* Something that users do not do: connections break, servers are cut off, hosts pause, crash and
 * come back. */
void world_misfortune(struct world *world);

/* No more of that: everything that is broken is mended. */
void world_calm_down(struct world *world);

/* Tells what happens, if wanted. */
__attribute__((format(printf, 2, 3))) void world_say(const struct world *world, const char *format,
						     ...);

/* world_users.c */
extern const struct engine_events user_events; /* the context is the host */
struct user *user_by_number(struct world *world, unsigned number);
bool user_holds(const struct user *user);
void user_close(struct user *user);

/* A user that is drawn does something; when it is calm it only ends what it does. */
void user_act(struct host *host, struct user *user);

/* world_check.c */
__attribute__((format(printf, 2, 3))) void world_fail(struct world *world, const char *format, ...);
void check_init(struct world *world);
void check_finish(struct world *world);

/* What is called when the user's wish is granted, and after each step. */
void check_grant(struct user *user);
void check_refusal(struct user *user, int result);

/* When the user is told that it has lost its lock: there is a reason. */
void check_loss(const struct user *user);
void check_step(struct world *world);

/* Whether there is a reason for a call in this mode to wait. */
bool check_conflict(const struct user *user, enum claim_mode mode);

/* When all is over: nothing is left. */
void check_end(struct world *world);

/* For struct faulty_settings; the context is the host. */
void check_standing(void *context, bool over, const char *path, const char *name, const char *text);
void check_withdrawing(void *context, const char *path, const char *name);

#endif
