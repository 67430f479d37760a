/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease, by lease.c; and touch(): a sync, which the leader answers by way of the server, and
 * writes nothing for. The path does not matter.
 */
#include "base/clock.h"
#include "stores/zookeeper/operation.h"

static void send_touch(struct operation *operation)
{
	operation->waited = 1;
	operation_sync(operation);
}

static void conclude_touch(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;

	operation_note_end(operation, operation_error(operation, operation->code, "cannot sync"));
	store->events->on_touched(store->context);
	operation_release(operation);
}

void zookeeper_touch(struct store *base)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation =
		operation_create(store, STORE_TOUCH, NULL, conclude_touch, "", NULL);

	lease_touch(&store->lease, clock_now_ms());
	zookeeper_seek_sent(store);
	if (operation != NULL)
		operation_start(operation, send_touch);
}

void zookeeper_touch_lease(struct store *base, int64_t now_ms, struct store_lease *ret)
{
	*ret = lease_describe(&((struct store_zookeeper *)base)->lease, now_ms);
}

void zookeeper_touch_defer(struct store *base)
{
	lease_beat(&((struct store_zookeeper *)base)->lease, clock_now_ms());
}

void zookeeper_touch_doubt(struct store *base, int64_t now_ms)
{
	lease_doubt(&((struct store_zookeeper *)base)->lease, now_ms);
}

void zookeeper_touch_resume(struct store *base, int64_t timeout_ms, int64_t saved_ms, bool doubtful)
{
	lease_resume(&((struct store_zookeeper *)base)->lease, timeout_ms, saved_ms, doubtful);
}
