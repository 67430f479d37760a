/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the kernel to forget names and attributes, through a process of its own
 * (notifier_process.h): the kernel locks the directory for a name, and whoever has locked it may be
 * waiting for an answer of the loop. Orders are carried out one after the other. If that process
 * dies another one is started with the next order, and begins with those that were not carried out;
 * to give one again does no harm.
 *
 * All functions are called on the loop's thread; none blocks but notifier_destroy().
 */
#ifndef DLOCKFS_KERNEL_NOTIFIER_H
#define DLOCKFS_KERNEL_NOTIFIER_H

#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct lease_board;
struct notifier;
struct state_journal;

/* Of what is written to the kernel, at most: a name has 255. */
#define NOTIFIER_MESSAGE_BYTES                                                                     \
	(sizeof(struct fuse_out_header) + sizeof(struct fuse_notify_delete_out) + 255 + 1)

/* Starts the process. `fuse` is the session's descriptor, which must live longer, as must the mount
 * point's path and the journal: names that the kernel has not forgotten yet are kept there; NULL:
 * there is none. The same holds for the board of the leases, which the guard watches. Returns 0 or
 * -errno. */
int notifier_create(int fuse, const char *mountpoint, struct state_journal *journal,
		    const struct lease_board *board, struct notifier **ret);

/* Starts the process anew if it has ended and locks are held, which nobody would guard. Tries that
 * once a second. */
void notifier_advance(struct notifier *notifier, int64_t now_ms);

/* Lets the kernel forget `name` in the directory, if it still means that node: it may be in use
 * again for another one. Out of memory: it stays cached until the kernel drops it by itself. */
void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name);

/* A directory has come by itself under that name: lets the kernel look it up, which may remember
 * that there is no such name. Takes back what was ordered for the name before. Out of memory: as
 * above. */
void notifier_renew_name(struct notifier *notifier, fuse_ino_t parent, const char *name);

/* Lets the kernel ask for the attributes of the node anew. */
void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node);

/* The name is in use again: takes back what was ordered and has not begun. What has begun can hide
 * the new file's name, until the directory is listed or the name opened with O_CREAT: the kernel
 * drops the name before it compares nodes (fuse_reverse_inval_entry()). That concerns a file that
 * is created between the writer's last look at whose turn it is, right before its write(2), and the
 * time at which the kernel has locked the directory for it: nothing else comes between the two. Its
 * creator has the directory locked meanwhile, so CREATE must not wait for the writer. */
void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name);

/* How many orders have not been carried out. */
size_t notifier_backlog(const struct notifier *notifier);

/* Writes the names that are to be forgotten, or to be looked up (node 0): what another process has
 * to order again. */
void notifier_save_orders(const struct notifier *notifier, FILE *out);

/* A file descriptor that becomes readable when notifier_dispatch() has something to do. */
int notifier_descriptor(const struct notifier *notifier);
void notifier_dispatch(struct notifier *notifier);

/* No more orders: the process ends after what it is doing now. Until notifier_has_ended() the loop
 * must go on answering the kernel. */
void notifier_stop(struct notifier *notifier);
bool notifier_has_ended(const struct notifier *notifier);

/* Waits for the end of the process for two seconds at most, and frees what is here. NULL is fine.
 */
void notifier_destroy(struct notifier *notifier);

#endif
