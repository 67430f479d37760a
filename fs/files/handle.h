/* SPDX-License-Identifier: Apache-2.0
 *
 * Open files, as the kernel counts them: one for each open(2), shared by its duplicates and by
 * forked children. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_HANDLE_H
#define DLOCKFS_FILES_HANDLE_H

#include "files/filesystem.h"
#include "files/holder.h"
#include "journal/journal.h"
#include "journal/text.h"

struct parked;

/* Where the line of a handle stands in the journal, and what belongs to it: the third number of the
 * place. */
enum { STATE_OF_HANDLE, STATE_OF_HANDLE_PARKED, STATE_OF_HANDLE_HOLDER };

struct handle {
	struct state_item item;	  /* first */
	uint64_t number;	  /* what the kernel is told */
	UT_hash_handle by_number; /* in filesystem->handles */
	struct filesystem *filesystem;
	struct user *user; /* who opened it: has a share of USER_FILES for it */
	struct inode *inode;
	struct owner *owner;   /* in the engine; NULL until the first lock is asked for */
	struct owning *owning; /* what else of its path has an owner, once it has one itself */
	struct handle *owning_prev, *owning_next;
	struct parked *parked;	      /* its requests that are answered later */
	struct holder *holders;	      /* who holds through it: holder.c */
	struct fuse_pollhandle *poll; /* who polls the file; NULL: nobody asked to be woken */
	struct kept_request *polling; /* the request that did; NULL: as that says */
	bool holder_unseen;	      /* told that a holder cannot be sent a signal */
	bool fenced;		      /* it held a lock and lost it: of no use any more */
};

/* Opens the inode, on the account of `uid`, whatever that may have. Returns NULL when out of
 * memory.
 */
struct handle *handle_open(struct filesystem *filesystem, struct inode *inode, uid_t uid);

/* The same of one that was opened in another process, under the number that it got there. */
struct handle *handle_reopen(struct filesystem *filesystem, struct inode *inode, uint64_t number,
			     uid_t uid);

/* What it says in the journal has changed: whatever handle_save() writes. */
void handle_mark(struct handle *handle);

/* Writes the handle, without what it waits for and who holds through it. */
void handle_save(const struct handle *handle, FILE *out);

/* Closes the file: what it holds is released, what it waits for withdrawn. */
void handle_close(struct handle *handle);

/* The handle has lost a lock: of no use from now on. Who holds through it gets the signal of the
 * configuration, whoever polls it is told. */
void handle_fence(struct handle *handle);

/* The same of one that was fenced in another process: nobody is told any more. */
void handle_set_fenced(struct handle *handle);

/* Somebody asks for what the handle holds: whoever polls it is told. */
void handle_revoke(struct handle *handle);

/* The handle that the kernel means by what it was told when the node was opened; NULL: there is
 * none of that number, or it is a file of .dlockfs, which has none. */
struct handle *handle_find(struct filesystem *filesystem, fuse_ino_t node,
			   const struct fuse_file_info *info);

/* The handle of that number; NULL: there is none. */
struct handle *handle_of_number(struct filesystem *filesystem, uint64_t number);

/* Makes sure that the handle has an owner in the engine. Returns 0 or -ENOMEM. */
int handle_own(struct handle *handle);

/* Gives the handle the owner that the present line is about (engine/transfer.h). Returns 0; or
 * -EINVAL, -ENOMEM, with a line in the reader's `why`. */
int handle_restore_owner(struct handle *handle, struct state_reader *in);

/* Lets the request that is being handled poll the file: it is woken by `poll`, which becomes the
 * handle's. Out of memory for the journal: who polls is not woken by another process. */
void handle_set_poll(struct handle *handle, struct fuse_pollhandle *poll);

/* Whoever polls asks again. */
void handle_wake_poll(struct handle *handle);

/* The owner of the handle, or else any of its path, also where the name was taken away and made
 * anew: that is the same lock. NULL: nobody has asked for a lock through one. */
struct owner *handle_any_owner(const struct handle *handle);

/* Who holds the lock at the path of the handle, for holder.c; NULL: as above. */
struct holders *handle_holders(const struct handle *handle);

#endif
