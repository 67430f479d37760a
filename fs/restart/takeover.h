/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process passes on to the program that goes on in its place (restart.h), and how that picks
 * it up: the mount, open files, calls that wait, and the books of the engines (engine/transfer.h),
 * as text in a file without a name. Its number is in the environment, with the word "rehearsal"
 * where the program is only to show that it understands all of it.
 *
 * Where there is a journal (journal/journal.h) the same lines are kept there all the time, so that
 * a process can go on with the mount of one that was killed. What lives in a process alone is not
 * there then: descriptors are void, and pidfds are opened anew (files/holder.h).
 *
 * The first line has two numbers: the format, which is raised with each key or line that is added,
 * taken away or meant otherwise (tests/system/formats.txt has them all), and the least format of
 * which a program has to be that goes on with it. So after a kill, where nobody rehearses, a
 * program of another version never passes over what it would have to know, nor takes what is
 * missing for none:
 *
 *   added, and who does not know it     TAKEOVER_FORMAT  TAKEOVER_READER  TAKEOVER_OLDEST
 *   is right all the same               raised           stays            stays
 *   and would be wrong                  raised           the same         stays
 *   and without which the rest cannot   raised           the same         the same
 *   be understood
 *
 * A key that may be missing in an older format is read by what `format` says. What does not fit is
 * refused in one line, with both versions; a line whose word is not known always is.
 *
 *   dlockfs   the format, and the process: where it was started, what it has mounted
 *   store     one of the configuration, with its session
 *   inode, status, handle, parked, request, holder, forget, numbers   the file system
 *   shard     which of the stores the engine's lines behind it are of
 *   end       the last line: nothing is missing
 *
 * Loop thread only, or before the loop begins; reads and writes memory, and does not block.
 */
#ifndef DLOCKFS_RESTART_TAKEOVER_H
#define DLOCKFS_RESTART_TAKEOVER_H

#include "engine/transfer.h"
#include "files/filesystem.h"
#include "journal/text.h"

#define TAKEOVER_FORMAT	     4 /* what this program writes, */
#define TAKEOVER_READER	     3 /* who may read that, */
#define TAKEOVER_OLDEST	     3 /* and what this program reads */
#define TAKEOVER_ENVIRONMENT "DLOCKFS_TAKE_OVER"
#define TAKEOVER_REHEARSAL   ",rehearsal"	    /* behind the number of the descriptor */
#define TAKEOVER_UNDERSTOOD  "dlockfs takes over\n" /* what a rehearsal that succeeds prints */

/* What the process says of itself. */
struct takeover_process {
	const char *folder; /* in which it was started */
	const char *mountpoint;
	bool background;
	int fuse;	  /* the descriptor of the mount, */
	int journal;	  /* and of the journal, of what is taken over; -1: none */
	const void *init; /* the kernel's greeting */
	size_t init_bytes;
};

struct takeover {
	int format; /* of what is taken over */
	bool rehearsal;
	bool kept;  /* in a journal: its descriptors are not valid any more */
	FILE *file; /* NULL: there is nothing to take over */
	struct state_reader in;
	struct takeover_process process; /* its texts and bytes are the struct's */
	unsigned int max_write;
	struct shard_former *former; /* as in the configuration, once that was checked */
	struct takeover_store *stores;
	size_t store_count;
	struct takeover_wish *wishes; /* while the file system is restored */
	struct takeover_request *requests;
	struct takeover_order *orders;
};

/* What engines know by numbers; their context is the shard. */
extern const struct engine_transfer takeover_transfer;

/* Writes everything, and filesystem->process. Errors stay with the stream. */
void takeover_save(const struct filesystem *filesystem, FILE *out);

/* Keeps the file system in the journal, from its next commit on. To be called once, while the file
 * system and its shards are new; the journal must live longer than both and the notifier. */
void takeover_keep(struct filesystem *filesystem, struct state_journal *journal);

/* filesystem->process has changed. */
void takeover_mark_process(struct filesystem *filesystem);

/* Marks what nobody tells of: the numbers given out, the sessions of stores, what was agreed on
 * with the kernel. To be called before each commit, where there is a journal. */
void takeover_mark_changed(struct filesystem *filesystem);

/* Does that, and then answers_send(). */
void takeover_commit(struct filesystem *filesystem, uint64_t handled);

/* Finds what the environment says, takes it away from there, and reads all up to the file system.
 * Returns 0, also if there is nothing to take over; or -errno and one line in `why`. In any case
 * takeover_finish() frees it. */
int takeover_begin(struct takeover *takeover, char *why, size_t why_bytes);

/* The same from a stream, which is the struct's from now on. */
int takeover_read(struct takeover *takeover, FILE *file, char *why, size_t why_bytes);

/* The same of what a journal says (state_journal_load()), of a process that has ended; `fuse` is
 * the descriptor of its mount. */
int takeover_read_kept(struct takeover *takeover, FILE *file, int fuse, char *why,
		       size_t why_bytes);

/* Whether the stores of the configuration are those of the former process. Fills in `former`.
 * Returns 0, or -errno and one line in `why`. */
int takeover_check(struct takeover *takeover, const struct config *config, char *why,
		   size_t why_bytes);

/* Reads the rest into the file system, which is new, as are its shards. Returns 0; or -errno and
 * one line in `why`: then the file system is good for nothing but serving_finish(). */
int takeover_restore(struct takeover *takeover, struct filesystem *filesystem, char *why,
		     size_t why_bytes);

/* Once there is a session with the kernel, and a notifier: handles the requests again that the
 * former process has not answered. */
void takeover_resume(struct takeover *takeover, struct filesystem *filesystem);

void takeover_finish(struct takeover *takeover);

#endif
