/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a session by its own host. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_FAREWELL_H
#define DLOCKFS_STORES_ETCD_FAREWELL_H

#include <stdint.h>

struct store_etcd;

/* Ends the lease, which may take until then, if there is a connection. */
void etcd_farewell(struct store_etcd *store, int64_t lease, int64_t until_ms);

#endif
