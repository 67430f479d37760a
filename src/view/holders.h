/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the holders of a lock. Pure but for memory.
 */
#ifndef DLOCKFS_VIEW_HOLDERS_H
#define DLOCKFS_VIEW_HOLDERS_H

#include "view/claim.h"

/* Finds out which claims of one lock, in the order of the queue, are held. Claims that are gone do
 * not count. Returns 0 or -ENOMEM. */
int view_holders_find(struct view_claim *claims, size_t count);

#endif
