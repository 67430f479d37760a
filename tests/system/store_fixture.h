/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs that drive the ZooKeeper store, through the table of stores/store.h, on a real
 * server:
 *
 *     PROGRAM HOST:PORT
 *
 * The server must grant session timeouts of two seconds. Everything is created below one znode per
 * process and left to the server's reaper. Connections are cut by a small proxy in the program.
 */
#ifndef DLOCKFS_ZOOKEEPER_FIXTURE_H
#define DLOCKFS_ZOOKEEPER_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "stores/zookeeper/operation.h"
#include "stores/zookeeper/store.h"
#include "zookeeper_proxy.h"

#define DEADLINE_MS 90000
#define TIMEOUT_MS  6000

extern int64_t host_timeout_ms; /* of hosts that are opened from now on; TIMEOUT_MS at first */
extern const char *server;
extern zhandle_t *raw; /* another client on the same server */

/* What main() does before its tests; and after them, with the number of those that failed, for the
 * program's exit status. */
void begin_tests(int argc, char **argv);
int end_tests(int failed);

int64_t now_ms(void);

/* A host: a store. */
struct host {
	struct store *store;
	enum store_session session;
	int changes[3]; /* how often each was told */
	int events;	/* answers so far */
	int reads;	/* of watches */
	int64_t timeout_ms;
	int renewals; /* of the lease, */
	int64_t valid_until_ms;
	int beats;	    /* heartbeats that were answered, */
	int beats_renewals; /* and how often the lease was renewed before the last */
	int touches;
};

/* One operation and what came of it. */
struct call {
	int times; /* answered */
	int turn;  /* among the answers of its host */
	int error;
	char name[CLAIM_NAME_BYTES];
	int64_t order;
	bool listed;
	size_t count;
	struct claim_name claims[4]; /* of the first entries */
	size_t halves;		     /* among all */
	size_t orphans;		     /* likewise */
	int changes;		     /* of a queue that is attended to */
	int reads;		     /* of a watch, and the last of them */
	bool changed;		     /* and is about to be read again */
	char text[64];		     /* read; or where something was missing */
	int64_t stamp;
};

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

/* The znode of a lock, or of what stands below it. */
const char *znode(const char *path);

#endif
