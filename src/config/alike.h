/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that have to be alike on all hosts of a store: what one host does for a lock, others
 * rely on, as they wait for as long as that host would, or let in as many as it does. They are
 * session_timeout of the store; and slots, lock_delay, min_hold, recipe, style, owner, group and
 * mode of [locks], which count for all locks, and of each [locks "pattern"], in the file's order.
 *
 * Not thread-safe, as config.h.
 */
#ifndef DLOCKFS_CONFIG_ALIKE_H
#define DLOCKFS_CONFIG_ALIKE_H

#include "config/config.h"

/* Calls say() for each of them, with a line such as `[locks "job-*"] slots=4`. Where an option of
 * the command line wins over all patterns, only that is said. */
void config_alike_each(const struct config *config, size_t store,
		       void (*say)(void *context, const char *line), void *context);

/* A number that differs if any of these lines does. */
uint64_t config_alike_hash(const struct config *config, size_t store);

#endif
