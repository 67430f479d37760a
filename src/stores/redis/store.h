/* SPDX-License-Identifier: Apache-2.0
 *
 * The store that has a key of Redis for each lock and host. The claims of this host queue in this
 * process (stores/local/store.h), for as long as the host has the lock's key; what others hold
 * stands in the queue as one claim (key.h). So order, shared locks and byte ranges are those of one
 * host's callers, and the host as a whole is one contender. etc/doc/redis.md says what that means.
 *
 * Everything runs on the loop's thread.
 */
#ifndef DLOCKFS_STORES_REDIS_STORE_H
#define DLOCKFS_STORES_REDIS_STORE_H

#include "stores/store.h"

extern const struct store_kind store_redis_kind;

#endif
