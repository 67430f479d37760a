/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the order of record locks: calls that are settled at once, and three parties.
 */
#ifndef DLOCKFS_ORDER_FIXTURE_H
#define DLOCKFS_ORDER_FIXTURE_H

#include "fixture.h"

/* A call that waits if it has to. */
static inline void ask(struct file *file, enum claim_mode mode, int64_t start, int64_t end)
{
	record_lock(file, mode, start, end, WAIT);
	settle(file->host->world);
}

static inline void drop(struct file *file, int64_t start, int64_t end)
{
	record_unlock(file, start, end);
	settle(file->host->world);
}

static inline void close_all(struct file *files, size_t count)
{
	struct world *world = files[0].host->world;

	for (size_t i = 0; i < count; i++)
		file_close(&files[i]);
	settle(world);
	assert_queue(world, "a", "");
}

/* Three parties on the hosts that the digits of `number` name. */
static inline void open_three(struct world *world, struct file files[3], int number)
{
	for (int i = 0; i < 3; i++, number /= HOSTS)
		file_open(&files[i], world->hosts[number % HOSTS], "a");
}

enum { ASSIGNMENTS = HOSTS * HOSTS * HOSTS };

#endif
