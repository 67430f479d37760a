/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for a link while the present one is in doubt; seek.c has the rules. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_SEEK_H
#define DLOCKFS_STORES_ETCD_SEEK_H

#include <stdint.h>

struct seeker;
struct store_etcd;

struct etcd_seek {
	struct seeker *seeker;
	int64_t due_ms; /* when the answer to a keep-alive is late; INT64_MAX: none is awaited */
};

/* Returns 0 or -errno. */
int etcd_seek_init(struct store_etcd *store);

/* There is a connection; or none any more. */
void etcd_seek_connected(struct store_etcd *store);
void etcd_seek_lost(struct store_etcd *store);

/* A keep-alive is sent; it is answered, or nothing depends on the link any more. */
void etcd_seek_sent(struct store_etcd *store);
void etcd_seek_end(struct store_etcd *store);

/* To be called at `due_ms`. */
void etcd_seek_on_time(struct store_etcd *store, int64_t now_ms);

#endif
