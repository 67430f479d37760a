/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what every file of the store needs. Loop thread only.
 */
#include "stores/redis/state.h"

#include <errno.h>
#include <unistd.h>

void redis_wake(struct store_redis *store)
{
	const uint64_t one = 1;

	if (store->loop.is_awake)
		return;
	store->loop.is_awake = true;
	while (write(store->loop.wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void redis_starve(struct store_redis *store)
{
	store_local_expire(store->queues.home);
	redis_wake(store);
}
