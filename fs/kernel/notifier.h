/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks the kernel to forget names and attributes, through a process of its own
 * (notifier_process.h): to drop a name the kernel locks its directory, and the process that has
 * locked the directory may be waiting for an answer of the loop. Orders are carried out one after
 * the other. If that process dies, another one is started with the next order, and begins with the
 * orders that were not carried out; to carry one out twice does no harm.
 *
 * All functions are called on the loop's thread; none blocks but notifier_create() and
 * notifier_destroy(), and notifier_advance() for the warden (warden.h).
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
struct notifier_mount; /* notifier_process.h */
struct state_journal;

/* Of what is written to the kernel, at most: a name has 255. */
#define NOTIFIER_MESSAGE_BYTES                                                                     \
	(sizeof(struct fuse_out_header) + sizeof(struct fuse_notify_delete_out) + 255 + 1)

/* Starts the process. What `mount` names must live longer, as must the journal: names that the
 * kernel has not forgotten yet are kept there; NULL: there is none. The same holds for the board of
 * the leases, which the guard watches. Waits for the process to begin, two seconds at most. Returns
 * 0 or -errno. */
int notifier_create(const struct notifier_mount *mount, struct state_journal *journal,
		    const struct lease_board *board, struct notifier **ret);

/* Starts the process anew if it has ended while there is something to guard: locks that are held,
 * or a mount that must not stay. Tries once a second. */
void notifier_advance(struct notifier *notifier, int64_t now_ms);

/* Lets the kernel forget `name` in the directory, if the name still means that node: it may be in
 * use again for another node. Out of memory: the name stays cached until the kernel drops it by
 * itself. */
void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name);

/* dlockfs has made a directory of that name without a request: lets the kernel, which may remember
 * that there is no such name, look it up. Takes back earlier orders for the name. Out of memory: as
 * above. */
void notifier_renew_name(struct notifier *notifier, fuse_ino_t parent, const char *name);

/* Lets the kernel ask for the attributes of the node anew. */
void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node);

/* The name is in use again: takes back the order for it, unless it has begun. An order that has
 * begun can hide the new file's name, until the directory is listed or the name opened with
 * O_CREAT: the kernel drops the name before it compares nodes (fuse_reverse_inval_entry()). This
 * concerns only a file that is created between the writer's last look at the turn, right before its
 * write(2), and the time at which the kernel has locked the directory for that write. Its creator
 * has the directory locked meanwhile, so CREATE must not wait for the writer. */
void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name);

/* How many orders have not been carried out. */
size_t notifier_backlog(const struct notifier *notifier);

/* Writes the names that are to be forgotten, or to be looked up (node 0): the orders that another
 * process has to give again. */
void notifier_save_orders(const struct notifier *notifier, FILE *out);

/* A file descriptor that becomes readable when notifier_dispatch() has something to do. */
int notifier_descriptor(const struct notifier *notifier);
void notifier_dispatch(struct notifier *notifier);

/* No more orders: the process ends after its current one. Until notifier_has_ended() the loop must
 * go on answering the kernel. */
void notifier_stop(struct notifier *notifier);
bool notifier_has_ended(const struct notifier *notifier);

/* Waits for the end of the process for two seconds at most, unless notifier_stop() was called
 * before, and frees the notifier. NULL is fine. */
void notifier_destroy(struct notifier *notifier);

#endif
