/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns nothing. Loop thread only.
 */
#include "stores/redis/outside.h"

#include <errno.h>

#include "stores/redis/lock.h"

static struct store *home_of(struct store *base)
{
	return store_redis_from(base)->queues.home;
}

/* Of a lock that nobody here wants, the servers are asked, if they can be. */
int redis_outside_look(struct store *base, struct store_look *look, const char *path)
{
	struct store_redis *store = store_redis_from(base);
	bool asks = *path != '\0' && redis_is_connected(store->service);
	struct redis_lock *lock = asks ? redis_lock_open(store, path) : NULL;
	const struct redis_call call = {.kind = CALL_LOOK, .tag = look};

	if (lock == NULL || lock->key.gate || !key_must_wait(&lock->key, false))
		return home_of(base)->ops->look(home_of(base), look, path);
	redis_lock_wait(lock, &call, NULL);
	return 0;
}

int redis_outside_read(struct store *base, struct store_read *read, const char *path,
		       const char *name)
{
	return home_of(base)->ops->read(home_of(base), read, path, name);
}

static bool is_gate(struct store *base, const char *path, const char *name)
{
	const struct redis_lock *lock = redis_lock_find(store_redis_from(base), path);

	return lock != NULL && redis_gate_is(&lock->gate, name);
}

/* Nobody would read what is written to a gate. */
int redis_outside_write(struct store *base, struct store_change *change, const char *path,
			const char *name, const char *text, uint32_t version)
{
	if (is_gate(base, path, name))
		return -EOPNOTSUPP;
	return home_of(base)->ops->write(home_of(base), change, path, name, text, version);
}

int redis_outside_remove(struct store *base, struct store_change *change, const char *path,
			 const char *name, uint64_t session)
{
	if (is_gate(base, path, name))
		return -EOPNOTSUPP;
	return home_of(base)->ops->remove(home_of(base), change, path, name, session);
}

int redis_outside_files(struct store *base, struct store_files *files, const char *directory)
{
	(void)base;
	(void)files;
	(void)directory;
	return -EOPNOTSUPP;
}

int redis_outside_alter(struct store *base, struct store_change *change,
			const struct store_step *steps, size_t count)
{
	(void)base;
	(void)change;
	(void)steps;
	(void)count;
	return -EOPNOTSUPP;
}
