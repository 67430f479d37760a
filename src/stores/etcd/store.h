/* SPDX-License-Identifier: Apache-2.0
 *
 * The store that keeps its claims in etcd. Everything runs on the loop's thread. Names are
 * resolved, connections made and TLS spoken without waiting (grpc.h).
 */
#ifndef DLOCKFS_STORES_ETCD_STORE_H
#define DLOCKFS_STORES_ETCD_STORE_H

#include "stores/store.h"

extern const struct store_kind store_etcd_kind;

#endif
