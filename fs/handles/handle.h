/* SPDX-License-Identifier: Apache-2.0
 *
 * Open files, as the kernel counts them: one for each open(2), shared by its duplicates and by
 * forked children. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_HANDLE_H
#define DLOCKFS_HANDLES_HANDLE_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "handles/handle_table.h"
#include "journal/journal.h"
#include "journal/text.h"

struct audit_note;
struct filesystem;
struct holder;
struct inode;
struct kept_request;
struct owning;
struct recipient;
struct user;
struct waiting;

/* The third number of a place in the journal: the line of a handle, and those that belong to the
 * handle. */
enum { STATE_OF_HANDLE, STATE_OF_HANDLE_PARKED, STATE_OF_HANDLE_HOLDER };

struct handle {
	struct state_item item; /* first */
	uint64_t number;	/* the file handle that the kernel knows */
	struct filesystem *filesystem;
	struct user *user; /* who opened the file; has handle_shares() of USER_FILES */
	struct inode *inode;
	struct owner *owner; /* in the engine; NULL until the first lock is asked for */
	struct handle *owning_prev, *owning_next; /* of the path, if the handle has an owner */
	struct waiting *parked;	      /* its requests that are answered later: parked.h */
	struct holder *holders;	      /* processes that hold through the handle */
	struct fuse_pollhandle *poll; /* to wake poll(2) of the file; NULL: nobody asked for that */
	struct kept_request *polling; /* the POLL that asked for `poll`, or NULL */
	bool holder_unseen;	      /* the log says that a holder cannot be sent a signal */
	bool fenced;		      /* a lock was held and lost: of no use any more */
	bool has_written;	      /* into a lock file, since the last FLUSH */
	bool flushed; /* a process has closed the file, and others have it open; or perhaps, in
			 an earlier process of dlockfs */
};

/* The processes that hold the lock of one path (holder.h). While there is none, all but the signals
 * is zero. */
struct holders {
	int lost_signal, revoke_signal; /* 0: none */
	struct recipient *recipients;	/* the processes, once each */
	struct holder *ranges;		/* those by record locks */
	struct audit_note *audited;	/* record locks, for the log: audit_note.h */
};

struct handles {
	struct handle_table by_number;
	size_t count;
	uint64_t last_number;	    /* of what is open */
	struct owning *owning;	    /* by path */
	struct audit_note *audited; /* who holds by flock or exclusive open: audit_note.h */
	uint64_t last_holder;	    /* of holders, for their places in the journal */
};

/* Visits the handles in the order in which they were opened; not for who closes them. */
#define HANDLES_FOREACH(handles, handle)                                                           \
	for ((handle) = handle_table_next(&(handles)->by_number, 0); (handle) != NULL;             \
	     (handle) = handle_table_next(&(handles)->by_number, (handle)->number))

/* How many shares of USER_FILES an open file of that inode counts for. */
size_t handle_shares(const struct inode *inode);

/* Opens the inode, on the account of `uid`. Returns 0; -ENOMEM; or what user_check() says, if the
 * user may not have one more open file. */
int handle_open(struct filesystem *filesystem, struct inode *inode, uid_t uid, struct handle **ret);

/* Opens the inode by a handle that was opened in another process, under the number that the handle
 * got there. The user's limit does not count. Returns NULL when out of memory. */
struct handle *handle_reopen(struct filesystem *filesystem, struct inode *inode, uint64_t number,
			     uid_t uid);

/* Something that handle_save() writes has changed. */
void handle_mark(struct handle *handle);

/* Writes the handle, without its parked requests and its holders. */
void handle_save(const struct handle *handle, FILE *out);

/* Frees the handle and its owner. Only handle_close() calls this, once nothing waits there and no
 * holder is noted. */
void handle_free(struct handle *handle);

/* The handle is of no use from now on. Tells nobody: see telling.h. */
void handle_set_fenced(struct handle *handle);

/* The handle of the kernel's file handle in `info`; NULL: no handle has that number, or the node is
 * in .dlockfs, where files have no handles. */
struct handle *handle_find(const struct handles *handles, fuse_ino_t node,
			   const struct fuse_file_info *info);

/* The handle of that number; NULL: there is none. */
struct handle *handle_of_number(const struct handles *handles, uint64_t number);

/* Makes sure that the handle has an owner in the engine. Returns 0 or -ENOMEM. */
int handle_own(struct handle *handle);

/* Gives the handle the owner that the present line describes (engine/transfer.h). Returns 0; or
 * -EINVAL, -ENOMEM, with a line in the reader's `why`. */
int handle_restore_owner(struct handle *handle, struct state_reader *in);

/* The request that is being handled polls the file: `poll`, which becomes the handle's, wakes the
 * caller. Out of memory for the journal, the next process does not wake the caller. */
void handle_set_poll(struct handle *handle, struct fuse_pollhandle *poll);

/* Wakes poll(2) of the handle, so that its callers ask again. */
void handle_wake_poll(struct handle *handle);

/* The owner of the handle, or else any owner of the same lock. After unlink and a new open the path
 * is still the same lock. NULL: nobody has asked for that lock. */
struct owner *handle_any_owner(const struct handle *handle);

/* The holders of the handle's lock, for holder.c; NULL: nobody has asked for that lock. */
struct holders *handle_holders(const struct handle *handle);

#endif
