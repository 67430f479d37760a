/* SPDX-License-Identifier: Apache-2.0
 *
 * A view of queues as they are in the store, of all hosts and of other clients, as text, with what
 * only this host knows of its own claims. Views change nothing, and the engine does not know them.
 * At most VIEW_READS_MAX questions to the store are under way at a time, in all views together, so
 * that requests of locks wait for no more than those.
 *
 * The text has a line for the lock and one for each of its claims, in the order of the queue (here
 * divided):
 *
 *     lock=cron/backup claims=2 holders=1
 *     position=1 state=held mode=exclusive kind=flock host=web1 pid=4711 uid=0 command=flock
 *         since=1795305254 client=dlockfs session=0x10000c19ba40000 claim=_c_...
 *     position=2 state=waiting mode=shared kind=record ranges=r0-63 ...
 *
 * Keys come in this order. A key whose value is not known is left out; later versions may add more.
 * Values have no spaces: they are encoded as base/escape.h says. A value in the data of a claim is
 * left out if it is not well-formed, or longer than 1 KiB.
 *
 * A claim that passes from one caller of its host to the next (engine/handoff.c) is shown, on that
 * host, with the caller that uses it now. Callers that follow have a line each behind it, as no
 * other host knows them: position=1.1 and so on, without session and claim.
 *
 * A lock file is held by its being there: it is the first in the lines of its
 * name, held and exclusive, and counts as a claim and as a holder. Locks that are taken on the file
 * follow, and neither waits for the other. A file that was renamed, or is a hard link, may share
 * its queue with other names (claim/file_path.h): the queue is shown by each of them.
 *
 * In the line of the lock, where there are any:
 *
 *   kept         claims that nobody uses, which are no holders
 *   resting      claims that nobody uses any more, but that nobody gets yet: likewise
 *   lost         claims of lost holders, which count as no claims
 *   followers    lines of callers that follow, which are no claims
 *
 * In the line of a claim:
 *
 *   state        follows from the queue: a claim waits if an earlier one of another owner
 *                conflicts with it, or if its data says so; with slots, until it has one. It may be
 *                a moment old. kept: nobody uses the claim. resting: it was released, and its host
 *                keeps everybody out for the rest of min_hold (engine/books/term.h). lost: the
 *                claim has gone, and its holder had not released it; where lock_delay or min_hold
 *                is set, it blocks others for that time (engine/books/delay.h)
 *   maybe_kept   yes: this claim of another host may be kept unused
 *   maybe_former yes: this claim may pass from one caller of its host to the next: its data is of
 *                a caller that has used it, and may not use it any more
 *   mode         exclusive or shared; the stronger one, of record locks in both modes
 *   slots        so many may hold the lock at once, as the claim's host is configured
 *   slot         the claim's number among them, from 0 on, since it is held
 *   kind         open, flock or record; of a lock file: file, directory or
 *                symlink
 *   target       of a symlink: what it refers to
 *   ranges       of record locks, as in claim/data.h. If that is longer than 1 KiB, or not known,
 *                span=START-END instead
 *   host         pid, uid, command: who asked for the claim; of a file, who made it, with the uid
 *                of its owner
 *   since        when the claim was placed, in seconds since 1970 by the clock of the service; of
 *                another host's key of Redis: when this host saw that first; of a file, when it was
 * made, which on etcd is when its text was last changed, by the clock of that host clock host:
 * `since` is by the clock of the claim's host, and tells when the call was made: of a claim that is
 * passed on, of a follower, and where the service stamps nothing, as etcd does lost_since   of a
 * lost claim, if this host waits for the lock or removes the marker: when this host learned of the
 * loss, in seconds since 1970 by its clock delay_until  likewise: when this host will grant the
 * lock again. Of one that rests: until when, by the clock of the claim's host client       dlockfs,
 * or other: then there are only mode, since, session and claim, and the kind of a file session
 * none: the claim is not ephemeral, somebody has to delete it
 *
 * If a lock among others cannot be read, its line has error= and the name of the error (EACCES,
 * EIO) in place of its claims.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_VIEW_VIEW_H
#define DLOCKFS_VIEW_VIEW_H

#include "engine/engine.h"
#include "stores/store.h"

#define VIEW_READS_MAX 64

/* What a view shows of a lock file, besides what its store tells. Texts are
 * exact, and freed by the view; NULL: unknown. */
struct view_facts {
	const char *kind; /* "file", "directory", "symlink" */
	bool is_directory;
	char *target; /* of a symbolic link */
	char *queue;  /* the path of its lock's queue; NULL: it follows from the file's path */
	char *host;   /* that made it; NULL: another client did */
	int64_t pid;  /* which process; 0: unknown */
	int64_t uid;  /* its owner; -1: unknown */
	char *command;
	char name[64]; /* as that of a claim, which no other file has, and no claim */
};

/* Where such files are, and how they are to be read. */
struct view_files {
	/* The length of the path of the directory of files that the path is of, or is in; SIZE_MAX:
	 * it is in none. */
	size_t (*top_bytes)(const void *context, const char *path);

	/* Returns 0, or -ENOMEM; also then the texts in *ret are to be freed. */
	int (*read)(const struct store_claim *claim, struct view_facts *ret);
};

/* The text of view_runs(): for each lock that has runs (claim/runs.h), the latest one that has
 * succeeded, if there is one, and the latest of all:
 *
 *     lock=cron/report runs=12 failed=1
 *     start=1795305254123 took=50 every=300000 status=0 token=4711 uid=0 host=web1
 *     start=1795305554127 took=4 every=300000 status=1 token=4720 uid=0 host=web2
 */

/* The text of view_hosts(): for each host of the store a line, and a line for each of its settings
 * that have to be alike on all (claim/host_entry.h):
 *
 *     session=0x10000c19ba40000 since=1795305254 self=yes host=web1 version=0.9.0 settings=2f0c6a
 *     setting=[locks%20"job-*"]%20slots=4
 *
 *   since   when the entry was written, in seconds since 1970 by the clock of the service, on etcd
 *           of the host: when the session began, or the daemon was started anew or reloaded
 *   self    yes: it is this host
 */

struct viewer; /* makes the views of one store */
struct view;   /* a view under way */

struct view_events {
	/* error 0 and the text; or -ENOENT, -ECONNRESET, -EACCES, -ENOMEM, -EIO. The text is freed
	 * afterwards. */
	void (*on_text)(void *context, int error, const char *text, size_t text_bytes);

	/* error 0: how many claims stand in the queue of the lock itself, and the last components
	 * of the names below it, sorted. */
	void (*on_names)(void *context, int error, size_t claims, const char *const *names,
			 size_t names_count);

	/* The lock has claims of lost holders (store_entry.orphan). */
	void (*on_orphans)(void *context, const char *path);

	/* error 0: all locks were looked at, but for those with an error of their own. */
	void (*on_searched)(void *context, int error);
};

/* All stay the caller's. `engine` is that of this host, for what only this host knows; NULL: none.
 * `files`: NULL, the store has none. Returns NULL when out of memory. */
struct viewer *viewer_create(struct store *store, const struct engine *engine,
			     const struct view_files *files, const void *files_context);

/* Frees the viewer and the rest of its views, without calling their events. To be called after the
 * store was closed: until then it may still answer cancelled views. NULL is fine. */
void viewer_destroy(struct viewer *viewer);

/* The queue of one lock. An empty queue is a line for the lock. Returns 0 and the view in *ret, or
 * -ENOMEM. After 0, on_text() is called once, from within the store's dispatch(), and the view is
 * gone. */
int view_queue(struct viewer *viewer, const char *path, const struct view_events *events,
	       void *context, struct view **ret);

/* The queues of all locks that have claims, at and below `path` ("": all), sorted by path; a lock
 * that comes or goes meanwhile may be there or not. As view_queue() otherwise, but that no such
 * lock is no error. */
int view_queues(struct viewer *viewer, const char *path, const struct view_events *events,
		void *context, struct view **ret);

/* The runs of all jobs, sorted by the path of the lock. The store has STORE_HAS_KEPT. As
 * view_queues() otherwise. */
int view_runs(struct viewer *viewer, const struct view_events *events, void *context,
	      struct view **ret);

/* The hosts of the store, which has STORE_HAS_FILES. As view_queues() otherwise. */
int view_hosts(struct viewer *viewer, const struct view_events *events, void *context,
	       struct view **ret);

/* Asks what exists at the path; on_names() is called. As view_queue() otherwise. */
int view_names(struct viewer *viewer, const char *path, const struct view_events *events,
	       void *context, struct view **ret);

/* Looks for claims of lost holders at and below `path`. It has one question under way at a time:
 * there may be many locks, and nobody waits for the result. After 0, on_orphans() is called for
 * each lock that has some, and on_searched() once, when the view is gone. As view_queues()
 * otherwise. */
int view_search_orphans(struct viewer *viewer, const char *path, const struct view_events *events,
			void *context, struct view **ret);

/* How many answers of the store have come so far: for the view; for all views, also cancelled ones.
 */
uint64_t view_progress(const struct view *view);
uint64_t viewer_progress(const struct viewer *viewer);

/* Cancels the view: none of its events is called any more. */
void view_cancel(struct view *view);

#endif
