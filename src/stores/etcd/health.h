/* SPDX-License-Identifier: Apache-2.0
 *
 * ask() of struct store_kind.
 */
#ifndef DLOCKFS_STORES_ETCD_HEALTH_H
#define DLOCKFS_STORES_ETCD_HEALTH_H

#include "stores/store.h"

int etcd_health(const struct store_url *url, const struct store_access *access,
		const struct store_asker *asker);

#endif
