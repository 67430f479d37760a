/* SPDX-License-Identifier: Apache-2.0
 *
 * touch(): asks the server whether the root of all locks exists. The server answers by itself,
 * whatever the answer is, and notes that the session is used.
 */
#include <errno.h>

#include "stores/zookeeper/operation.h"

static void conclude_touch(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error = 0;

	if (operation->code != ZNONODE && operation->code != ZNOAUTH)
		error = operation_error(operation, operation->code, "cannot look for");
	operation_count(operation, error);
	store->events->on_touched(store->context, error == 0 ? 0 : -ECONNRESET);
	operation_release(operation);
}

void zookeeper_touch(struct store *base)
{
	struct operation *operation = operation_create((struct store_zookeeper *)base, STORE_TOUCH,
						       NULL, conclude_touch, "", NULL);

	if (operation)
		operation_start(operation, operation_look);
}
