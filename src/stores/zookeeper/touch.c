/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease, by lease.c; and touch(): asks the server whether the root of all locks exists. The
 * server answers by itself, whatever the answer is, and notes that the session is used.
 */
#include <errno.h>

#include "base/clock.h"
#include "stores/zookeeper/operation.h"

static void conclude_touch(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error = 0;

	if (operation->code != ZNONODE && operation->code != ZNOAUTH)
		error = operation_error(operation, operation->code, "cannot look for");
	operation_note_end(operation, error);
	store->events->on_touched(store->context, error == 0 ? 0 : -ECONNRESET);
	operation_release(operation);
}

void zookeeper_touch(struct store *base)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation =
		operation_create(store, STORE_TOUCH, NULL, conclude_touch, "", NULL);

	lease_touch(&store->lease, clock_now_ms());
	if (operation)
		operation_start(operation, operation_look);
}

void zookeeper_lease(struct store *base, int64_t now_ms, struct store_lease *ret)
{
	*ret = lease_describe(&((struct store_zookeeper *)base)->lease, now_ms);
}

void zookeeper_defer_beat(struct store *base)
{
	lease_beat(&((struct store_zookeeper *)base)->lease, clock_now_ms());
}

void zookeeper_doubt(struct store *base, int64_t now_ms)
{
	lease_doubt(&((struct store_zookeeper *)base)->lease, now_ms);
}

void zookeeper_resume(struct store *base, int64_t timeout_ms, int64_t saved_ms, bool doubtful)
{
	lease_resume(&((struct store_zookeeper *)base)->lease, timeout_ms, saved_ms, doubtful);
}
