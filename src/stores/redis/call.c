/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns nothing. Loop thread only.
 */
#include "stores/redis/call.h"

#include <assert.h>

#include "base/clock.h"
#include "stores/redis/lock.h"

static struct store *home_of(struct store *base)
{
	return store_redis_from(base)->queues.home;
}

void redis_call_place(struct store *base, void *tag, const char *path,
		      const struct claim_name *name, const char *text, bool list, void *attention)
{
	struct store_redis *store = store_redis_from(base);
	struct redis_lock *lock = redis_lock_open(store, path);
	const struct redis_call call = {
		.kind = CALL_PLACE,
		.tag = tag,
		.list = list,
		.attention = attention,
		.name = *name,
	};

	if (lock == NULL) {
		redis_starve(store);
	} else if (key_must_wait(&lock->key, true)) {
		redis_lock_wait(lock, &call, text);
	} else {
		redis_lock_place(lock, &call, text);
		redis_lock_settle(lock);
	}
}

/* Of a lock that nobody here wants, the servers alone know who has it. */
void redis_call_list(struct store *base, void *tag, const char *path, bool sync, bool attend)
{
	struct store_redis *store = store_redis_from(base);
	struct redis_lock *lock =
		sync ? redis_lock_open(store, path) : redis_lock_find(store, path);
	const struct redis_call call = {
		.kind = CALL_LIST, .tag = tag, .sync = sync, .attend = attend};

	if (lock == NULL && sync)
		redis_starve(store);
	else if (lock != NULL && key_must_wait(&lock->key, false))
		redis_lock_wait(lock, &call, NULL);
	else
		home_of(base)->ops->list(home_of(base), tag, path, sync, attend);
}

/* Of others' claims the engine changes only that of a gate, which is to be queued again. */
void redis_call_amend(struct store *base, void *tag, const char *path, const char *name,
		      const char *text, uint32_t version)
{
	struct redis_lock *lock = redis_lock_find(store_redis_from(base), path);

	home_of(base)->ops->amend(home_of(base), tag, path, name, text, version);
	if (lock == NULL || !redis_gate_is(&lock->gate, name))
		return;
	key_requeue(&lock->key);
	redis_lock_settle(lock);
}

void redis_call_watch(struct store *base, void *tag, const char *path, const char *name)
{
	home_of(base)->ops->watch(home_of(base), tag, path, name);
}

void redis_call_mark(struct store *base, void *tag, const char *path, const char *name,
		     const char *text, int64_t age_ms)
{
	home_of(base)->ops->mark(home_of(base), tag, path, name, text, age_ms);
}

void redis_call_withdraw(struct store *base, const struct store_told *told, void *tag,
			 const char *path, const char *name, int64_t order, bool marker)
{
	struct store *home = home_of(base);
	struct redis_lock *lock = redis_lock_find(store_redis_from(base), path);
	bool stood = store_local_has(home, path, name);
	struct claim_name claim;

	assert(told != NULL);
	home->ops->withdraw(home, told, tag, path, name, order, marker);
	if (lock == NULL || !stood || !claim_name_parse(name, &claim))
		return;
	key_left(&lock->key, redis_lock_is_in_turn(lock, &claim), clock_now_ms());
	redis_lock_settle(lock);
}
