/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden: a process of root that does for the daemon, which runs as a user of its own (key
 * `user`), the few things that take root's rights. It parses nothing but these requests, which have
 * a fixed form, and does nothing that the daemon could choose freely:
 *
 *   CALL         which system call a thread waits in (kernel/calling.h)
 *   HAS_FILE     whether a process has a file of an inode number open (kernel/descriptors.h)
 *   SIGNAL       a signal to the process of a pidfd, which has a file of the mount open (or may
 *                have made one of style = file), and which the user could signal (kill_right.h)
 *   GUARD        starts a guard of the daemon, with a writer and the daemon's descriptors for
 *                them; it signals whom the warden would
 *   OPEN         opens a file for reading: the configuration, a file that was named for it at the
 *                start, or one that the configuration names now
 *   CHANNEL      another socket for requests, for a rehearsal
 *   NO_LINKS     has the kernel follow no symbolic links in the mount
 *   UNMOUNT      unmounts
 *   REMOVE       removes the folder below the mount, if the daemon has made it
 *
 * There is one warden for a daemon and for the programs that go on in its process, and it ends when
 * they have closed their sockets. It is the program of the first of them, and so WARDEN_FORMAT is
 * part of the saved state.
 *
 * A warden may be stopped, or starve. So the loop waits for it for as long as it has said
 * (warden_hurry()) in all, and for a tenth of the time, answers that come at once left out; for
 * GUARD, OPEN and CHANNEL, which are rare, for WARDEN_PATIENCE_MS. A caller that asks for more, or
 * asks a warden that still owes an answer, gets -ETIMEDOUT at once, and goes on with what is right
 * without an answer:
 *
 *   CALL, HAS_FILE   what a process without root's rights would see
 *   SIGNAL           the guard sends it (lease_board_pass())
 *   GUARD            another one is asked for, a second later
 *   OPEN, CHANNEL    the file cannot be read, no program takes over: this one goes on as before
 *
 * The warden does not carry out a request that nobody waits for any more. A warden that has ended
 * is not asked any more; only the next process that begins as root has another one.
 *
 * Loop thread only, or before there is another one.
 */
#ifndef DLOCKFS_KERNEL_WARDEN_H
#define DLOCKFS_KERNEL_WARDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WARDEN_FORMAT	       2
#define WARDEN_DESCRIPTORS_MAX 6
#define WARDEN_TEXT_BYTES      4096

#define WARDEN_PATIENCE_MS 200

enum warden_kind {
	WARDEN_CALL,
	WARDEN_HAS_FILE,
	WARDEN_SIGNAL,
	WARDEN_GUARD,
	WARDEN_OPEN,
	WARDEN_CHANNEL,
	WARDEN_NO_LINKS,
	WARDEN_UNMOUNT,
	WARDEN_REMOVE,
	WARDEN_KINDS
};

struct warden_request {
	uint64_t id;	  /* comes back in the answer: warden_ask() sets it, */
	int64_t until_ms; /* and until when it waits, by clock_now_ms() */
	uint32_t kind;	  /* enum warden_kind */
	int32_t pid;
	uint32_t user;
	int32_t signal;
	uint64_t inode, looks;
};

struct warden_answer {
	uint64_t id;
	int64_t result; /* -errno: it cannot be done */
	uint64_t looks; /* HAS_FILE: that are left */
};

struct warden_plan {
	const char *mountpoint;
	bool unmounts;		  /* a guard does, when the daemon has died */
	bool made;		  /* the folder below the mount */
	bool has_files;		  /* style = file: who has made one need not have it open */
	const char *config;	  /* the configuration's file; NULL: there is none */
	const char *const *files; /* that it opens, too; NULL-terminated */
};

/* Starts a warden for this process; what it takes it has from the plan. To be called by root.
 * Returns 0 or -errno.
 */
int warden_start(const struct warden_plan *plan);

/* Goes on with the warden of the program before, by its socket, which this process owns now. */
void warden_resume(int socket);

/* The socket; -1: there is no warden, or none any more, and this process has its own rights. When
 * it is readable and nobody asks, warden_dispatch() is due. */
int warden_socket(void);
void warden_dispatch(void);

/* Whether there is a warden, or was one that has ended. */
bool warden_is_set(void);

/* Sets how long the loop may wait for the warden from now on, at most WARDEN_PATIENCE_MS; 0: the
 * loop does not run, and a request waits for five seconds. */
void warden_hurry(int patience_ms);

/* SILENT: it has owed an answer for a second. */
enum warden_state { WARDEN_NONE, WARDEN_ANSWERS, WARDEN_SILENT, WARDEN_ENDED };

/* Asks the warden whether it answers. NONE: this process never had one. */
enum warden_state warden_state(void);

/* The user and the group who have mounted: root, also after the warden's end, or this process's
 * own. */
uid_t warden_uid(void);
gid_t warden_gid(void);

/* Sends the request, with the text unless that is NULL, and with descriptors, which stay the
 * caller's. Returns 0 and the answer, and in *ret_descriptor, unless that is NULL, the descriptor
 * that came with it, or -1; or -errno: -ENOTCONN if there is no warden, -ETIMEDOUT if it does not
 * answer in time. */
int warden_ask(const struct warden_request *request, const char *text, const int *descriptors,
	       size_t count, struct warden_answer *ret, int *ret_descriptor);

/* The same for what has only a result: that, or -errno. */
int64_t warden_do(const struct warden_request *request);

#endif
