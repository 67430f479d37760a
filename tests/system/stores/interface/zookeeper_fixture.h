/* SPDX-License-Identifier: Apache-2.0
 *
 * The fixture of tests of stores, with what tests of the ZooKeeper store alone use besides.
 */
#ifndef DLOCKFS_ZOOKEEPER_FIXTURE_H
#define DLOCKFS_ZOOKEEPER_FIXTURE_H

#include "store_fixture.h"

#include <zookeeper/zookeeper.h>

#include "stores/zookeeper/operation.h"
#include "stores/zookeeper/store.h"

extern zhandle_t *raw; /* another client on the same server */

/* The znode of a lock, or of what stands below it. */
const char *znode(const char *path);

#endif
