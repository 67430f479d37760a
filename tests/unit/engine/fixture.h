/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the engine: three hosts on one service of claims, a client of another kind, a
 * network without delay that can be broken (tests/sim/store_faulty.h), and a clock that stands
 * until it is moved. After everything that happens the engines' invariants are checked.
 */
#ifndef DLOCKFS_ENGINE_FIXTURE_H
#define DLOCKFS_ENGINE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "store_faulty.h"
#include "unclaimed.h"

#define EX   CLAIM_EXCLUSIVE
#define SH   CLAIM_SHARED
#define WAIT true
#define TRY  false

enum { LINGER_MS = 40, TRY_LIMIT_MS = 500, TIMEOUT_MS = 4000 };
enum { PROCESS_RANGES = 3000, FILE_RANGES = 4000 };
enum { HOSTS = 3, QUEUE_MAX = 128 };

struct host {
	struct world *world;
	struct engine *engine;
	struct lockfiles *lockfiles; /* the engine's, in the tests of those */
	struct store *store;
	long operations;
	long break_at; /* the operation during which the connection breaks, from 1; 0: none */
	int break_how; /* see break_connection() */
	uint64_t processes;
	bool paused;	   /* its machine is, */
	int64_t paused_ms; /* since then */
	int64_t behind_ms; /* so long its clock has stood still before */
	char gone[256];	   /* lock files that it has heard to be gone: "PATH lost, " */
};

struct world {
	int64_t now_ms;
	struct prng prng;
	struct local_service *service;
	struct lock_policy policy;
	struct host one, two, three;
	struct host *hosts[HOSTS];
	struct unclaimed_set unclaimed; /* for the hosts, not for the foreign client */
	struct store *foreign;
	size_t count; /* of the queue that the foreign client listed last */
	char names[QUEUE_MAX][192];
	struct claim_name claims[QUEUE_MAX];
	uintptr_t reading; /* the last claim whose data the foreign client asked for */
	char data[4096];
	char text[8192]; /* see queue_text() */
	void (*on_operation)(struct host *host);
	void (*on_step)(struct world *world); /* after everything that happens on a host */
	void *context;			      /* of the test */
	bool shuffled;			      /* the hosts take their steps by chance */
};

/* An open file, a process that uses it, and the call that it made last. */
struct file {
	struct host *host;
	struct owner *owner;
	uint64_t process; /* of its host, by the kernel's number for record locks */
	unsigned uid;
	struct wish *wish; /* NULL: it was a test */
	struct test *test;
	struct proof *proof;
	uint64_t token; /* by the last proof */
	int lost;
	size_t lost_among; /* so many claims its host held then */
	int revoked;
	ptrdiff_t account; /* ranges that are on it, */
	ptrdiff_t limit;   /* and how many may be; 0: any number */
	int decisions;	   /* of the last call: 0 or 1 */
	int result;
	bool in_the_way; /* by the last test: something is, namely */
	struct engine_conflict conflict;
	char ranges[512]; /* see record_ranges() */
};

int world_setup(void **state);

/* The same, but whoever does not get an answer can turn to another server. */
int world_setup_with_servers(void **state);

/* The same as the first, but the service is an etcd. */
int world_setup_etcd(void **state);
int world_teardown(void **state);

/* Lets one thing happen that is due now, on some host. Returns false if nothing was. */
bool step(struct world *world);

/* Lets everything happen that is due now, on all hosts. */
void settle(struct world *world);

/* The same on one host: the others do not run, and what they have sent does not arrive. */
void settle_alone(struct host *host);

/* Moves the clock, and lets happen on the way what is due. */
void pass(struct world *world, int64_t ms);

/* What the hosts' engines tell files. */
extern const struct engine_events file_events;

/* What they are made with: those, unless a test has others. */
extern const struct engine_events *fixture_events;

void file_open(struct file *file, struct host *host, const char *path);
void file_close(struct file *file);

/* Another process with the same open file; file_close() is for one of them. */
void file_share(struct file *file, const struct file *other);

/* Another file of the same process. */
void file_open_too(struct file *file, const struct file *other, const char *path);

/* flock(2) and open(O_EXCL). Nothing is sent or heard until settle(). */
void file_lock(struct file *file, enum claim_mode mode, bool waits);
void file_lock_by_open(struct file *file, bool waits);
void file_unlock(struct file *file);

/* Opens the lock "a" on the host, and asks for it; the second exclusively, and the file holds it.
 * In both everything happens that is due. */
void file_open_and_lock(struct file *file, struct host *host, enum claim_mode mode);
void file_take(struct file *file, struct host *host);
void file_cancel(struct file *file);

/* fsync(2), or with `token` the ioctl(2). */
void file_prove(struct file *file, bool token);
void file_cancel_proof(struct file *file);

bool file_holds(const struct file *file);
bool file_waits(const struct file *file);

/* fcntl(2), by the process that uses the file. */
void record_lock(struct file *file, enum claim_mode mode, int64_t start, int64_t end, bool waits);
int record_try(struct file *file, enum claim_mode mode, int64_t start, int64_t end);
void record_unlock(struct file *file, int64_t start, int64_t end);
void record_test(struct file *file, enum claim_mode mode, int64_t start, int64_t end);
void record_flush(struct file *file);

/* What the process holds in the file: "w0-9,r20-29". */
const char *record_ranges(struct file *file);

/* Claims in the queue of a lock; what they are is in world->names and so on. */
size_t queue_length(struct world *world, const char *path);

/* The queue as others read it: "w0-9,r20-29 | W", which is record locks by one claim, and a whole
 * file by another one. One that says that it waits has a "?" behind it. */
const char *queue_text(struct world *world, const char *path);

/* What the foreign client does. */
void foreign_write(struct world *world, const char *path, size_t place, const char *data);
void foreign_place(struct world *world, const char *path, enum claim_mode mode);
void foreign_place_as(struct world *world, const char *path, enum claim_mode mode,
		      enum claim_recipe recipe);
void foreign_withdraw(struct world *world, const char *path, size_t place);

/* Losing the connection at each operation of a scenario, in each of these ways. */
enum break_how {
	BREAK_BEFORE, /* the operation never happens, all earlier ones do */
	BREAK_AFTER,  /* it happens, but nobody hears */
	BREAK_LATE,   /* it happens when the client has long heard that it may not have */
	BREAK_EXPIRE, /* it happens, and the session ends */
	BREAK_COUNT,
};

/* For world->on_operation: breaks the connection at the host's operation number break_at. */
void break_connection(struct host *host);

/* A virtual machine that is paused, and its clock with it, while others run; what comes meanwhile
 * is read when it goes on. */
void machine_pause(struct host *host);
void machine_resume(struct host *host);
int64_t host_clock(const struct host *host);

/* How long the host's lease lasts unless it is renewed. */
int64_t lease_ms(const struct host *host);

void disconnect(struct host *host);
void reconnect(struct host *host);

#define assert_ranges(file, text)	assert_string_equal(record_ranges(file), text)
#define assert_queue(world, path, what) assert_string_equal(queue_text(world, path), what)
#define assert_granted(file)                                                                       \
	do {                                                                                       \
		assert_int_equal((file)->decisions, 1);                                            \
		assert_int_equal((file)->result, 0);                                               \
	} while (0)
#define assert_denied(file, why)                                                                   \
	do {                                                                                       \
		assert_int_equal((file)->decisions, 1);                                            \
		assert_int_equal((file)->result, why);                                             \
	} while (0)
#define assert_holds(file) assert_true(file_holds(file))
#define assert_waits(file) assert_true(file_waits(file))
#define assert_idle(file)  assert_true(!file_holds(file) && !file_waits(file))
#define assert_refused(file, why)                                                                  \
	do {                                                                                       \
		assert_int_equal((file)->decisions, 1);                                            \
		assert_int_equal((file)->result, why);                                             \
		assert_idle(file);                                                                 \
	} while (0)

#endif
