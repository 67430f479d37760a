/* SPDX-License-Identifier: Apache-2.0
 *
 * How full the server is that there is a connection to: it is asked now and then. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_SPACE_H
#define DLOCKFS_STORES_ETCD_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "stores/etcd/message.h"
#include "stores/store.h"

struct store_etcd;

struct etcd_space {
	struct store_space known; /* as it was told last */
	bool is_asked;		  /* for, and has not been told yet, */
	int64_t due_ms;		  /* or is then; INT64_MAX: there was no connection yet */
};

void etcd_space_init(struct store_etcd *store);

#define ETCD_STATUS_METHOD "/etcdserverpb.Maintenance/Status"

/* What a member has told of its space. */
struct store_space etcd_space_read(const Etcd__StatusResponse *answer);

/* There is a connection. */
void etcd_space_connected(struct store_etcd *store);

/* Asks for the space when that is due; and when it is. */
void etcd_space_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_space_next_ms(const struct store_etcd *store);

#endif
