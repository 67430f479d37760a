/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the engine: two hosts on one service of claims, a client of another kind, a
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

#include "engine.h"
#include "store_faulty.h"

#define EX   CLAIM_EXCLUSIVE
#define SH   CLAIM_SHARED
#define WAIT true
#define TRY  false

enum { LINGER_MS = 40, TRY_LIMIT_MS = 500, TIMEOUT_MS = 4000 };

struct host {
	struct world *world;
	struct engine *engine;
	struct store *store;
	long operations;
	long break_at; /* the operation during which the connection breaks, from 1; 0: none */
	int break_how; /* see break_connection() in test_engine_faults.c */
};

struct world {
	int64_t now_ms;
	struct prng prng;
	struct local_service *service;
	struct lock_policy policy;
	struct host one, two;
	struct store *foreign;
	size_t count; /* of the queue that the foreign client listed last */
	char names[16][96];
	enum claim_mode modes[16];
	int32_t sequences[16];
	void (*on_operation)(struct host *host);
};

/* An open file, and the call on it that was made last. */
struct file {
	struct host *host;
	struct owner *owner;
	struct claim *claim;
	int lost;
	int decisions; /* of the last call: 0 or 1 */
	int result;
};

int world_setup(void **state);
int world_teardown(void **state);

/* Lets everything happen that is due now, on both hosts. */
void settle(struct world *world);

/* Moves the clock, and lets happen on the way what is due. */
void pass(struct world *world, int64_t ms);

/* What the hosts' engines tell files. */
extern const struct engine_events file_events;

void file_open(struct file *file, struct host *host, const char *path);
void file_close(struct file *file);

/* flock(2) and open(O_EXCL). Nothing is sent or heard until settle(). */
void file_lock(struct file *file, enum claim_mode mode, bool waits);
void file_lock_by_open(struct file *file, bool waits);
void file_unlock(struct file *file);
void file_cancel(struct file *file);

bool file_holds(const struct file *file);
bool file_waits(const struct file *file);

/* Claims in the queue of a lock; what they are is in world->names and so on. */
size_t queue_length(struct world *world, const char *path);

/* What the foreign client does. */
void foreign_place(struct world *world, const char *path, enum claim_mode mode);
void foreign_withdraw(struct world *world, const char *path, size_t place);

void disconnect(struct host *host);
void reconnect(struct host *host);

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
