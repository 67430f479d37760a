/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files (stores/store.h: alter()): names that exist for all hosts or for none, and end with
 * the session of the host that made them. They have no queue: a name is made, or is there already.
 * This module knows the files of its engine's session, keeps the session alive for them, and tells
 * when they are lost. It stands above the engine, as its tenant (engine/books/tenant.h says why).
 *
 * An *alteration* makes, replaces and removes such files, all or none:
 *
 *   state    event                          next
 *   -------  -----------------------------  ------------------------------------------------------
 *   WANTED   store connected                SENT
 *   SENT     done, and grants are allowed   decided 0
 *            done, and they are not         BARRED: made, but the session may be over
 *            refused                        decided with the error
 *            ambiguous                      DOUBTFUL
 *   DOUBTFUL store connected                what it was to make or remove is read; as found:
 *                                           decided 0 or BARRED, or WANTED again
 *   BARRED   grants are allowed             decided 0
 *   any      session lost                   WANTED if it only makes; else decided -EIO
 *            its limit has passed           decided -ETIMEDOUT; what the alteration makes, or has
 *                                           made, is removed as soon as that can be found out
 *
 * An ambiguous alteration that makes a file is not simply sent again: the file may have been made,
 * found by another host, and taken away by its user since. The alteration has happened if the file
 * is there with the text, whose first line is of this file only; if the alteration makes no file,
 * when the file that it removes is gone. Nothing is removed that is not known to be the file that
 * was meant: a removal that is sent again, or the removal of what is undone, could meet a file that
 * another host has made meanwhile. So what is there is read first; and a store that can check whose
 * the file is refuses the removal of another host's.
 *
 * Alterations about one path are sent one after the other, in the order of the calls. Alterations
 * that are not decided are kept in the journal, with their texts: another process finds them as
 * DOUBTFUL. There the kernel's request is handled again, and that call takes the place of the
 * former caller: a call with the same kinds, paths and versions, and with texts that differ in the
 * first line only or, where something is removed as well, in any way. The file that is made has the
 * former text then. An alteration that no call takes up in time is undone as if its limit had
 * passed; until then other calls about its paths wait behind it.
 *
 * A file of this host that another host may have taken away unseen (lockfiles_know()) is read
 * before it is replaced or removed: another host's may be in its place. A call that makes such a
 * file is not refused without asking the store.
 *
 * A call ends after the caller's limit at the latest. Signals do not end it.
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_LOCKFILES_H
#define DLOCKFS_LOCKFILE_LOCKFILES_H

#include "engine/engine.h"

struct lockfiles; /* of one engine */

/* Why a file of this host is gone. */
enum lockfile_end {
	LOCKFILE_LOST,	/* its session is over */
	LOCKFILE_TAKEN, /* somebody else has removed it, or taken its place */
};

/* What callers are told. The cookies are those of the calls; each call is answered once, never from
 * within the call. */
struct lockfile_events {
	/* error 0: all steps are done, for all hosts. -EEXIST, -ENOENT, -ESTALE as in
	 * stores/store.h; -ETIMEDOUT, the store could not be reached in time; -EIO, the session
	 * was lost; -EACCES; -ENOMEM. */
	void (*on_altered)(void *context, void *cookie, int error);

	/* error 0 and the file, whose session is 0 if there is no lock file but something else.
	 * -ENOENT; -ETIMEDOUT, -EACCES, -ENOMEM, -EIO. `ours`: the file is of this host. */
	void (*on_file)(void *context, void *cookie, int error, const struct store_claim *claim,
			bool ours);

	void (*on_files)(void *context, void *cookie, int error, const char *const *names,
			 size_t count);

	/* A file of this host is gone, and no call of this host has asked for that. */
	void (*on_file_gone)(void *context, const char *path, enum lockfile_end why);
};

/* Becomes the tenant of an engine that has none, before anything is restored. engine_destroy()
 * frees the lock files. NULL: out of memory. */
struct lockfiles *lockfiles_create(struct engine *engine, const struct lockfile_events *events,
				   void *context);

/* Everything is copied. After the limit, in milliseconds, the call is answered -ETIMEDOUT. Each
 * returns 0; or -ENOMEM, -ENOLCK (the store has no files: STORE_HAS_FILES; or a file is to be made,
 * and none removed, while the host drains: engine_drain()), -EMSGSIZE (more than
 * STORE_STEPS_BYTES_MAX), and no answer follows.
 *
 * A text of STEP_MAKE and STEP_TAKE has a first line that no other file ever has. Two steps are not
 * about the same path. A step that replaces or removes a file of this host has STORE_ANY_VERSION,
 * and is refused with -ENOENT if this host has no such file any more. */
int lockfiles_alter(struct lockfiles *lockfiles, const struct store_step *steps, size_t count,
		    int64_t limit_ms, void *cookie);

int lockfiles_read(struct lockfiles *lockfiles, const char *path, int64_t limit_ms, void *cookie);

/* The names below the directory, as struct store_files has them. */
int lockfiles_list(struct lockfiles *lockfiles, const char *directory, int64_t limit_ms,
		   void *cookie);

/* Whether the file of that path is of this host, and its session is certain to live now. O(1). */
bool lockfiles_have(const struct lockfiles *lockfiles, const char *path);

/* Whether, besides, no other host has taken the file away: the store would have told, but for a
 * moment ago (watch.h). If not, lockfiles_read() tells. O(1). */
bool lockfiles_know(const struct lockfiles *lockfiles, const char *path);

/* How many files this host has. O(1). */
size_t lockfiles_count(const struct lockfiles *lockfiles);

/* check_invariants() of struct tenant_kind: for tests. */
void lockfiles_check_invariants(const void *context);

#endif
