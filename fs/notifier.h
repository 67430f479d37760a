/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the kernel to forget names and attributes, on a thread of its own: the kernel locks the
 * directory for a name, and whoever has locked it may be waiting for an answer of the loop.
 *
 * All functions are called on the loop's thread; none blocks but notifier_destroy().
 */
#ifndef DLOCKFS_NOTIFIER_H
#define DLOCKFS_NOTIFIER_H

#include <fuse_lowlevel.h>
#include <stdio.h>

struct notifier;
struct state_journal;

/* Starts the thread. The journal, which may be NULL, must live longer: names that the kernel has
 * not forgotten yet are kept there. Returns 0 or -errno. */
int notifier_create(struct fuse_session *session, struct state_journal *journal,
		    struct notifier **ret);

/* Lets the kernel forget `name` in the directory, if it still means that node: it may be in use
 * again for another one. Out of memory: it stays cached until the kernel drops it by itself. */
void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name);

/* Lets the kernel ask for the attributes of the node anew. */
void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node);

/* The name is in use again: takes back what was ordered and has not begun. What has begun can hide
 * the new file's name, until the directory is listed or the name opened with O_CREAT: the kernel
 * drops the name before it compares nodes (fuse_reverse_inval_entry()). */
void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name);

/* Writes the names that are to be forgotten, and with which the thread, if it has not ended, has
 * not begun. */
void notifier_save_orders(struct notifier *notifier, FILE *out);

/* Takes out of the journal what the kernel has forgotten since the last time. To be called again
 * and again, where there is a journal. */
void notifier_settle(struct notifier *notifier);

/* Asks the thread to end after what it is doing now. */
void notifier_stop(struct notifier *notifier);

/* It has ended, but the mount is not given up: starts it again, for what was not begun and what
 * comes. Returns 0 or -errno. */
int notifier_resume(struct notifier *notifier);

/* A file descriptor that becomes readable when the thread has ended. Until then the loop must go on
 * answering the kernel. */
int notifier_descriptor(const struct notifier *notifier);

/* Waits for the thread to end, after notifier_stop(), and frees it. NULL is fine. */
void notifier_destroy(struct notifier *notifier);

#endif
