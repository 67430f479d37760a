/* SPDX-License-Identifier: Apache-2.0
 *
 * Which slots of this session's are in use, lock by lock (keys.h has what they are for). A slot is
 * taken before its claim is placed, and free again when the claim was withdrawn, or could not be
 * placed. A slot that is found to be in use, by a process before this one, counts as taken, until
 * its claim is withdrawn. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_SLOTS_H
#define DLOCKFS_STORES_ETCD_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_etcd;

struct slots {
	size_t words, taken;
	uint64_t *bits; /* from slot 1 on */
};

/* Takes the least slot that is free; 0: there is none, or no memory. */
uint16_t etcd_slot_take(struct store_etcd *store, const char *path);

/* The slot is in use. Returns false when out of memory. */
bool etcd_slot_note(struct store_etcd *store, const char *path, uint16_t slot);

/* The slot is free again. */
void etcd_slot_give(struct store_etcd *store, const char *path, uint16_t slot);

#endif
