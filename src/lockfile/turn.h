/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is to alter a file. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_TURN_H
#define DLOCKFS_LOCKFILE_TURN_H

#include "lockfile/books.h"

struct alteration_step;

/* The alterations about a path that are not decided, in the order of the calls. */
struct turn {
	UT_hash_handle hh; /* in lockfiles->turns, by path */
	struct alteration_step *steps;
	char path[];
};

/* Puts the step behind the others of its path. Returns 0 or -ENOMEM. */
int turn_queue(struct alteration_step *step, const char *path);

/* Takes the step out of its turn. A step without a turn is fine. */
void turn_leave(struct alteration_step *step);

/* Whether an alteration about the path is not decided. O(1). */
bool turn_is_busy(const struct lockfiles *lockfiles, const char *path);

/* Whether such an alteration may have been sent: what there is may be its work. O(1). */
bool turn_is_in_flux(const struct lockfiles *lockfiles, const char *path);

#endif
