/* SPDX-License-Identifier: Apache-2.0
 *
 * While something waits for an answer: looks for another leader (leader.h), and leaves the server
 * if what was asked was dropped. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_TERM_H
#define DLOCKFS_STORES_ETCD_TERM_H

#include <stdint.h>

struct store_etcd;

/* Does what is due; and when that is, by clock_now_ms() (INT64_MAX: never). */
void etcd_term_on_time(struct store_etcd *store, int64_t now_ms);
int64_t etcd_term_next_ms(const struct store_etcd *store);

#endif
