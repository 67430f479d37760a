/* SPDX-License-Identifier: Apache-2.0
 *
 * The store that keeps claims in ZooKeeper: see stores/store.h for what a store does.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_STORE_H
#define DLOCKFS_STORES_ZOOKEEPER_STORE_H

#include "stores/store.h"

extern const struct store_kind store_zookeeper_kind;

#endif
