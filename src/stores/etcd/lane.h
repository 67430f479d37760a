/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is of a lock: its operations, one after the other (operation.h); the claims that lists
 * leave out; and the slots that are in use. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_LANE_H
#define DLOCKFS_STORES_ETCD_LANE_H

#include <stdbool.h>
#include <stddef.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "stores/etcd/slots.h"

struct gone;
struct operation;
struct store_etcd;

struct lane {
	char *path;
	struct operation *operations; /* the first is under way */
	size_t withdrawals;	      /* under way, in the lane or not */
	struct gone *gone; /* claims that are not to be seen any more: their withdrawal was called,
			      or a watch has reported their end while a list is under way */
	struct slots slots;
	UT_hash_handle hh;
};

/* The lane of the lock; NULL: there is none. */
struct lane *etcd_lane_find(struct store_etcd *store, const char *path);

/* The lane of the lock, which is made if need be. NULL: out of memory. */
struct lane *etcd_lane_get(struct store_etcd *store, const char *path);

/* An operation has left the lane, which is freed if nothing is left in it. */
void etcd_lane_leave(struct store_etcd *store, struct lane *lane);

void etcd_lane_free_if_idle(struct store_etcd *store, struct lane *lane);
void etcd_lane_free(struct store_etcd *store, struct lane *lane);

/* A watch has reported that the claim is gone: lists that are under way leave it out. */
void etcd_lane_note_gone(struct store_etcd *store, const char *path, const char *name);

/* From its withdrawal on, a claim is left out of lists, unless the withdrawal was refused. The
 * first returns false when out of memory. */
bool etcd_lane_begin_withdrawal(struct store_etcd *store, const char *path, const char *name);
void etcd_lane_end_withdrawal(struct store_etcd *store, const char *path, const char *name,
			      bool is_gone);

/* Whether an operation on that claim is in the lane. */
bool etcd_lane_is_about(struct store_etcd *store, const char *path, const char *name);

/* Whether lists leave the claim out. */
bool etcd_lane_has_gone(struct store_etcd *store, const char *path, const char *name);

#endif
