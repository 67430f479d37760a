/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds what only this host knows of the claims of a lock, which are in the order of the queue. Pure
 * but for memory and the time of day.
 */
#ifndef DLOCKFS_VIEW_USER_H
#define DLOCKFS_VIEW_USER_H

#include "view/claim.h"

/* Whether this host's own claims are held, and who uses them. Returns 0 or -ENOMEM. */
int view_users_add(struct view_claim *claims, size_t count, const struct engine *engine,
		   const char *path);

/* Since when orphans are known, and until when this host waits for them. */
void view_users_add_orphans(struct view_claim *claims, size_t count, const struct engine *engine,
			    const char *path);

#endif
