/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of the notifier, for programs without a kernel: it only notes what it is asked for.
 */
#ifndef DLOCKFS_NOTIFIER_DOUBLE_H
#define DLOCKFS_NOTIFIER_DOUBLE_H

#include "kernel/notifier.h"

struct notifier_double {
	size_t calls;
	size_t backlog; /* what notifier_backlog() says */
	/* A name is to be forgotten; with name NULL, attributes. NULL: nobody looks. */
	void (*on_forget)(fuse_ino_t parent, fuse_ino_t node, const char *name);
};

extern struct notifier_double notifier_double;

#endif
