/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads have looked up last, in directories of `style = file`.
 *
 * LOOKUP is answered with the directory locked, and that of a name which this host has made is
 * answered from memory, though another host may have removed it a moment ago. The kernel's next
 * request, of the same thread and about the inode that was found, comes without that lock: it asks
 * the store. If the name turns out to be gone, it is answered ESTALE: then the kernel looks the
 * name up once more (retry_estale() of fs/namei.c), and is told what the store says. A request
 * about an open file comes from a thread that has not looked it up just before: it goes on with the
 * file, name or not.
 *
 * The kernel does that once in a call. If a directory on the path has gone again by then, or the
 * call began in one that has gone, its next ESTALE would be the caller's: so it is ENOENT, as on
 * one host, where a directory that has been removed has no names.
 *
 * What was found stays until the thread's next call, also if it loses its name meanwhile: who has
 * found a file opens it.
 *
 * Threads of foreign pid namespaces, all of which have the number 0, are not known here. Another
 * process knows nothing of this. Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_FILES_LOOKED_H
#define DLOCKFS_FILES_LOOKED_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct filesystem;
struct fuse_in_header;
struct inode;

/* Calls of so many threads are known at a time. */
#define LOOKED_MAX 256

/* Before each request: forgets what the thread has looked up for an earlier call. */
void looked_pass(struct filesystem *filesystem, const struct fuse_in_header *request);

/* The thread's LOOKUP is answered with the inode; `unsure`: from memory. Returns false if that
 * cannot be noted: the thread is not known, or there is no memory. */
bool looked_note(struct filesystem *filesystem, pid_t thread, struct inode *inode, bool unsure);

/* Whether the thread was told ESTALE in this call: the store is to be asked. */
bool looked_again(const struct filesystem *filesystem, pid_t thread);

/* Whether the thread's request is about an inode that the thread was told of from memory. */
bool looked_is_unsure(const struct filesystem *filesystem, pid_t thread, const struct inode *inode);

/* The store has the name by which the thread has found the inode. */
void looked_settle(struct filesystem *filesystem, pid_t thread, const struct inode *inode);

/* The thread's request is answered ESTALE. */
void looked_note_stale(struct filesystem *filesystem, pid_t thread);

/* What the thread's request is about is gone. Returns what it is to be answered: -ESTALE, which is
 * noted, or -ENOENT if the thread was told ESTALE in this call. */
int looked_stale(struct filesystem *filesystem, pid_t thread);

/* Answers the request with what looked_stale() returns. */
void looked_refuse(fuse_req_t req);

/* Forgets all. */
void looked_finish(struct filesystem *filesystem);

#endif
