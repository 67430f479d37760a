/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs that drive a store of a service, through the table of stores/store.h, on a real
 * server:
 *
 *     PROGRAM zookeeper://HOST:PORT
 *     PROGRAM etcd://HOST:PORT
 *     PROGRAM redis://HOST:PORT
 *
 * The programs store_*_test have what is right for every such store; those of one store's name have
 * what is its own. Where the service does not know the claims themselves, the host is its own peer,
 * and tests of what one host does to another one's claims are left out. The server must grant
 * session timeouts of two seconds. Everything is created below one name per process and left there.
 * Connections are cut by a small proxy in the program.
 */
#ifndef DLOCKFS_STORE_FIXTURE_H
#define DLOCKFS_STORE_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../told.h"
#include "claim/name.h"
#include "store_proxy.h"
#include "stores/store.h"

#define DEADLINE_MS 90000
#define TIMEOUT_MS  6000

extern int64_t host_timeout_ms; /* of hosts that are opened from now on; TIMEOUT_MS at first */
extern struct store_contention host_contention; /* likewise; a turn is of any length at first */
extern const char *server;			/* HOST:PORT */
extern char top[64];				/* the root of all stores that are opened here */

/* What other clients do, with the means of that service; of one that has keys, and no claims, only
 * the first three. */
struct backend {
	const char *scheme;
	void (*begin)(void);
	void (*end)(void);
	/* A claim of another client, in its own form. */
	void (*make_claim)(const char *path, enum claim_mode mode);
	/* Something of that name below the lock that is no claim, and its end. */
	void (*make_other)(const char *path, const char *name);
	void (*remove_other)(const char *path, const char *name);
	/* Changes the data of a claim of a store; or takes the claim away. */
	void (*change)(const char *path, const char *name, const void *data, size_t bytes);
	void (*remove)(const char *path, const char *name);
	/* How many claims and markers of the lock there are, as the service keeps them. */
	size_t (*count)(const char *path);
	/* Something of another client at the path of a file (claim/file_path.h), whose directory is
	 * there: with a session, which is returned, or for good, and 0. */
	uint64_t (*make_file)(const char *path, bool lockfile);
};

extern const struct backend backend_zookeeper, backend_etcd, backend_redis;
extern const struct backend *backend; /* the one of this service */

/* Whether the service knows the claims, so that all hosts have one queue: by the store's kind. */
bool service_has_claims(void);

/* The test is of that. */
void need_claims_in_service(void);

/* What main() does before its tests: with the scheme of the only service that they are for, or
 * NULL. And after them, with the number of those that failed, for the program's exit status. */
void begin_tests(int argc, char **argv, const char *scheme);
int end_tests(int failed);

int64_t now_ms(void);

/* A host: a store. */
struct host {
	struct store *store;
	enum store_session session;
	int changes[3]; /* how often each was told */
	int moratoria[2];
	int events; /* answers so far */
	int reads;  /* of watches */
	int64_t timeout_ms;
	int renewals; /* of the lease, */
	int64_t valid_until_ms;
	int beats;	    /* heartbeats that were answered, */
	int beats_renewals; /* and how often the lease was renewed before the last */
	int touches;
	char missing[64]; /* what the last heartbeat did not find; "" */
};

/* One operation and what came of it. */
struct call {
	int times; /* answered */
	int turn;  /* among the answers of its host */
	int error;
	char name[CLAIM_NAME_BYTES];
	int64_t order, after;
	bool listed;
	size_t count;
	struct claim_name claims[4];  /* of the first entries, */
	char first[CLAIM_NAME_BYTES]; /* and the name of the very first */
	size_t halves;		      /* among all */
	size_t orphans;		      /* likewise */
	int changes;		      /* of a queue that is attended to, */
	int changed_turn;	      /* behind so many answers of its host */
	int reads;		      /* of a watch, and the last of them */
	bool changed;		      /* and is about to be read again */
	char text[64];		      /* read; or where something was missing */
	int64_t stamp;
};

/* Called once from within the next event on_listed() or on_read(). */
extern void (*in_next_event)(void);

void dispatch_hosts(int64_t limit_ms);

/* Runs the hosts until the condition holds. */
#define WAIT_FOR(condition)                                                                        \
	do {                                                                                       \
		int64_t until_ms = now_ms() + DEADLINE_MS;                                         \
		while (!(condition)) {                                                             \
			if (now_ms() > until_ms)                                                   \
				fail_msg("in vain: %s", #condition);                               \
			dispatch_hosts(100);                                                       \
		}                                                                                  \
	} while (0)

/* Runs the hosts for so long, to see that nothing happens. */
void run_for(int64_t ms);

/* Opens the store of host i, on this server; the second waits until it is connected. */
struct host *begin_host(int i, const char *address);
struct host *open_host(int i, const char *address);

/* Another host that has the same queue; or that host, if no other one has. */
struct host *open_peer(struct host *host);

/* The same with what another one has saved (NULL: nothing), or with an identity. */
struct host *begin_host_as(int i, const char *address, const struct store_access *access,
			   const void *session);

/* Returns how long it took. */
int64_t close_host(struct host *host);

/* After each test. */
int close_hosts(void **state);

struct claim_name claim_of(uint32_t number, enum claim_mode mode);

/* Calls of the store. Those that do not only send wait for the answer. */
void send_place(struct host *host, struct call *call, const char *path, uint32_t number,
		enum claim_mode mode, bool list);
void place(struct host *host, struct call *call, const char *path, uint32_t number);
void list(struct host *host, struct call *call, const char *path, bool sync);
void attend(struct host *host, struct call *call, const char *path, bool sync);
void send_watch(struct host *host, struct call *call, const char *path, const char *name);
void send_amend(struct host *host, struct call *call, const char *path, const struct call *placed,
		const char *text);
int amend(struct host *host, const char *path, const struct call *placed, const char *text);
int withdraw(struct host *host, const char *path, const struct call *placed);
/* Where the table has that. */
int bequeath(struct host *host, const char *path, const struct call *placed, const char *heir);
void send_prove(struct host *host, struct call *call, const struct store_proof *proofs,
		size_t count);
int prove(struct host *host, struct call *call, const struct store_proof *proofs, size_t count);

/* A heartbeat, which succeeds; or which finds that the claims of a lock have gone. */
void beat(struct host *host);

struct store_lease lease_of(const struct host *host);
uint64_t session_of(const struct host *host);

#endif
