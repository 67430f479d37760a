/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginning of an operation: it is refused, waits for others, or is sent. The loop's thread.
 */
#include <string.h>

#include "stores/zookeeper/operation.h"

/* Why nothing is sent; ZOK: it is. */
static int refuse(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	/* The operations that prove that the session lives do not concern znodes below the root. */
	bool below = !operation->of_root && operation->kind != STORE_PROVE &&
		     operation->kind != STORE_TOUCH;

	if (store->root_state.barred != ZOK && below) {
		store->root_state.wanted = true; /* for the next operation */
		return store->root_state.barred;
	}
	if (store->handle == NULL || (!store->root_state.names_known &&
				      store->root_state.barred == ZOK && !operation->of_root))
		return ZCONNECTIONLOSS;
	if (operation->text != NULL)
		operation->packet_bytes = strlen(operation->path) + strlen(operation->text);
	return packets_refuse(&store->packets, operation->packet_bytes, operation->sent_us / 1000)
		       ? ZOOKEEPER_TOO_LONG
		       : ZOK;
}

void operation_start(struct operation *operation, void (*send)(struct operation *operation))
{
	int code;

	operation->sent_us = histogram_now_us();
	code = refuse(operation);
	if (code != ZOK) {
		operation->code = operation->list_code = code;
		operation_post(operation);
		return;
	}
	operation_attach(operation);
	if (operation->batched.kind != NULL) {
		zookeeper_batch_start(operation);
		return;
	}
	zookeeper_batch_flush(operation->store);
	send(operation);
}
