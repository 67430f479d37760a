/* SPDX-License-Identifier: Apache-2.0
 *
 * The state that a process passes on to the program that goes on in its place (restart.h), and how
 * that program restores the state: the mount, open files, calls that wait, and the books of the
 * engines (engine/transfer.h), as text in a file without a name. The number of the file's
 * descriptor is in the environment, with the word "rehearsal" if the program is only to show that
 * it understands all.
 *
 * Where there is a journal (journal/journal.h) the same lines are kept there all the time, so that
 * a process can go on with the mount of a process that was killed. What belonged to the killed
 * process is gone: descriptors are void, and pidfds are opened anew (handles/holder.h).
 *
 * The first line has two numbers. The format is raised with each key or line that is added, removed
 * or given another meaning (tests/system/sources/formats.txt lists all keys and lines). The reader
 * is the oldest format that a program has to know to go on. So after a kill, without a rehearsal, a
 * program of another version never ignores a key that it would have to know, nor takes a missing
 * key for zero. For a key or line that is added:
 *
 *   a program that does not know it     TAKEOVER_FORMAT  TAKEOVER_READER  TAKEOVER_OLDEST
 *   is right all the same               raised           stays            stays
 *   would be wrong                      raised           as the format    stays
 *   and this program cannot do without  raised           as the format    as the format
 *
 * `format` of struct takeover decides whether a key may be missing. A state of another format is
 * refused in one line, with both versions, and so is any line whose word is not known.
 *
 *   dlockfs   the format, and the process: where it was started, what it has mounted
 *   store     one of the configuration, with its session
 *   inode, text, status, handle, parked, request, holder, forget, numbers   the file system
 *   shard     which of the stores the engine's lines behind it are of
 *   end       the last line: nothing is missing
 *
 * Loop thread only, or before the loop begins; reads and writes memory, and does not block.
 */
#ifndef DLOCKFS_RESTART_TAKEOVER_H
#define DLOCKFS_RESTART_TAKEOVER_H

#include "engine/transfer.h"
#include "files/shard.h"
#include "journal/text.h"

#define TAKEOVER_FORMAT	     16 /* the format that this program writes, */
#define TAKEOVER_READER	     15 /* the oldest that can read it, */
#define TAKEOVER_OLDEST	     13 /* and the oldest that this program reads */
#define TAKEOVER_ENVIRONMENT "DLOCKFS_TAKE_OVER"
#define TAKEOVER_REHEARSAL   ",rehearsal" /* behind the number of the descriptor */
#define TAKEOVER_WARDEN	     4		  /* where a rehearsal has its socket to the warden */
#define TAKEOVER_UNDERSTOOD  "dlockfs takes over\n" /* what a rehearsal that succeeds prints */

/* What the state says of the process. */
struct takeover_process {
	const char *folder; /* in which the program was started */
	const char *mountpoint;
	bool background;
	/* The INI file as it was read last without an error, for a program that finds an error in
	 * it now; NULL: there was none, or the former program goes on in that case. */
	const char *config;
	size_t config_bytes;
	/* Descriptors; -1: there is none. */
	int fuse;	  /* of the mount */
	int journal;	  /* of the journal */
	int warden;	  /* to the warden (kernel/warden.h) */
	const void *init; /* the kernel's greeting */
	size_t init_bytes;
};

struct takeover {
	int format; /* of the state that is taken over */
	bool rehearsal;
	bool kept;  /* the state was in a journal: the descriptors in it are void */
	FILE *file; /* NULL: there is nothing to take over */
	struct state_reader in;
	struct takeover_process process; /* whose texts and bytes this struct owns */
	unsigned int max_write;
	struct shard_former *former; /* as in the configuration, once that was checked */
	struct takeover_store *stores;
	size_t store_count;
	struct takeover_wish *wishes; /* while the file system is restored */
	struct takeover_request *requests;
	struct takeover_order *orders;
};

/* The latest numbers that were given out. */
struct takeover_numbers {
	uint64_t node, status, handle;
};

/* The lines of the journal that no other file owns. */
struct takeover_marks {
	struct filesystem *filesystem;
	const struct takeover_process *process; /* NULL: not yet */
	struct state_item process_item, numbers_item;
	/* As of the last mark: */
	struct takeover_numbers numbers;
	unsigned int max_write;
};

/* How numbers in the saved state are turned into pointers of engines; the context is the shard. */
extern const struct engine_transfer takeover_transfer;

/* Writes the whole state. Errors stay with the stream. */
void takeover_save(const struct filesystem *filesystem, const struct takeover_process *process,
		   FILE *out);

/* Keeps the file system in the journal, from its next commit on. To be called once, while the file
 * system and its shards are new; the journal and the marks, which are filled in, must live longer
 * than both and the notifier. */
void takeover_keep(struct filesystem *filesystem, struct state_journal *journal,
		   struct takeover_marks *marks);

/* Keeps the process, which stays the caller's, if there is a journal. */
void takeover_keep_process(struct filesystem *filesystem, const struct takeover_process *process);

/* Marks what changes without a call of state_journal_mark(): the numbers given out, the sessions of
 * stores, what was agreed on with the kernel. To be called before each commit, where there is a
 * journal. */
void takeover_mark_changed(struct filesystem *filesystem);

/* Judges the leases if an answer tells of a lock, marks what has changed, and calls answers_send().
 */
void takeover_commit(struct filesystem *filesystem, uint64_t handled);

/* Finds the state that the environment names, removes the variable, and reads the state up to the
 * file system. Returns 0, also if there is none; or -errno and one line in `why`. In any case
 * takeover_finish() frees it. */
int takeover_begin(struct takeover *takeover, char *why, size_t why_bytes);

/* takeover_begin() with a stream, which the struct owns from now on. */
int takeover_read(struct takeover *takeover, FILE *file, char *why, size_t why_bytes);

/* takeover_begin() with the content of a journal (state_journal_load()), of a process that has
 * ended; `fuse` is the descriptor of that process's mount. */
int takeover_read_kept(struct takeover *takeover, FILE *file, int fuse, char *why,
		       size_t why_bytes);

/* Whether the stores of the configuration are those of the former process. Fills in `former`.
 * Returns 0, or -errno and one line in `why`. */
int takeover_check(struct takeover *takeover, const struct config *config, char *why,
		   size_t why_bytes);

/* Reads the rest into the file system, which is new, as are its shards. Returns 0; or -errno and
 * one line in `why`: then only serving_finish() may be called for the file system. */
int takeover_restore(struct takeover *takeover, struct filesystem *filesystem, char *why,
		     size_t why_bytes);

/* Once there is a session with the kernel, and a notifier: handles the requests again that the
 * former process has not answered. */
void takeover_resume(struct takeover *takeover, struct filesystem *filesystem);

void takeover_finish(struct takeover *takeover);

#endif
