/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of one transaction about names of lock files, with the texts that the names get. A name
 * is that of an inode. Loop thread only.
 *
 *     struct steps steps = {0};
 *     steps_make(&steps, STEP_MAKE, inode, 1);
 *     steps_remove(&steps, other);
 *     steps_ask(&steps, asking);
 */
#ifndef DLOCKFS_OPS_STEPS_H
#define DLOCKFS_OPS_STEPS_H

#include "ops/asking.h"

/* All zeros: no steps. There are STORE_STEPS_MAX at most, which the callers see to. */
struct steps {
	struct store_step list[STORE_STEPS_MAX];
	size_t count;
	int error; /* -ENOMEM: a text could not be made */
};

/* MAKE or TAKE: the store gets the name, with that number of links. */
void steps_make(struct steps *steps, enum store_step_kind kind, const struct inode *inode,
		nlink_t links);

/* The name gets the text that the inode has now, with that number of links, if the store has that
 * version of it. */
void steps_replace(struct steps *steps, const struct inode *inode, nlink_t links, uint32_t version);

/* Each name of the content that is this host's, except one, gets that number of links. */
void steps_renumber(struct steps *steps, struct inode *inode, const struct inode *except,
		    nlink_t links);

/* The name goes: this host's whatever its version, another host's as this host knows it. */
void steps_remove(struct steps *steps, const struct inode *inode);

/* What has that path in the store goes, if it has that version. The path is not copied. */
void steps_remove_path(struct steps *steps, const char *path, uint32_t version);

/* The name must stand. */
void steps_check(struct steps *steps, const struct inode *inode);

/* asking_alter() with the steps, or with their error; finishes them. */
void steps_ask(struct steps *steps, struct asking *asking);

/* Frees the texts. Only for steps that were not asked. */
void steps_finish(struct steps *steps);

#endif
