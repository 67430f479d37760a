/* SPDX-License-Identifier: Apache-2.0
 *
 * Shards: the locks of one section [store] or [store "prefix"], with their store and their engine.
 * Shards are independent: when the store of one cannot be reached, or its session is lost, nothing
 * changes for the locks of the others.
 *
 * Loop thread only; nothing here blocks but shards_close().
 */
#ifndef DLOCKFS_FILES_SHARD_H
#define DLOCKFS_FILES_SHARD_H

#include <pthread.h>
#include <stdio.h>

#include "config/config.h"
#include "engine/engine.h"
#include "files/metrics.h"
#include "files/questions.h"
#include "journal/journal.h"
#include "lockfile/lockfiles.h"
#include "stores/statistics.h"
#include "view/view.h"

struct filesystem;
struct peers;
struct presence;

/* What a shard takes over from another process. */
struct shard_former {
	bool rehearsal; /* no server is to be reached: there is no store, unless it is a local one
			 */
	void *session;	/* as in struct store_options; its memory stays the caller's */
};

struct shard {
	struct state_item store_item, item;  /* the lines `store` and `shard` */
	int64_t marked_session, marked_seen; /* as of the last mark of `store_item` */
	int64_t marked_ms;		     /* when that mark was */
	struct filesystem *filesystem;	     /* set by serving_init() */
	const char *prefix;		     /* as in the configuration; "" for [store] */
	char *label;			     /* in metrics: store="prefix"; "" for [store] */
	struct engine *engine;
	struct lockfiles *lockfiles; /* the engine's */
	struct store *store;
	unsigned abilities;		    /* STORE_HAS_..., of the store */
	struct viewer *viewer;		    /* of the store; destroyed after the store */
	struct store_statistics statistics; /* of the store, if it has any */
	struct shard_metrics metrics;
	struct presence *presence; /* this host among those of the store */
	struct questions proofs;   /* of fsync(2) and the ioctl(2) for the token */
	size_t fenced;		   /* how many open files are fenced */
	struct view *sweep;	   /* the search for markers of lost holders; NULL: none runs */
	int64_t sweep_ms; /* when the next search begins: clock_now_ms(); INT64_MAX: never; 0: to be
			     set when the store is connected */
	bool silent;	  /* a request in .dlockfs has waited for the store in vain, and no view was
			     answered since, not even one that had been given up */
	uint64_t silent_at; /* viewer_progress() when `silent` was set */
	bool ending;	    /* the daemon ends: the guard watches until the mount has ended */
	const struct store_told *told; /* that the session may be ended; NULL: it may not */
	pthread_t closer;	       /* the thread that ends the session */
	bool has_closer;	       /* else the loop's thread does */
};

struct shards {
	struct shard *list; /* in the order of the configuration's stores */
	size_t count;
	struct peers *peers; /* where hosts tell each other of claims (files/peering.h); NULL: not
				yet, or nothing is served here */
	/* As of shards_conclude(), which has found them when engine_stirs() of all were so many: */
	uint64_t stirs;
	int64_t due_ms;	    /* when shards_advance() is needed; INT64_MAX: nothing is due */
	int64_t lease_ms;   /* when the first lease ends of those by which anything is held:
			       engine_held_lease() */
	int64_t timeout_ms; /* the shortest session timeout of the stores in which anything is held;
			       INT64_MAX: nothing is held */
};

/* What callers are told, with the shard as the context. */
struct shard_events {
	const struct engine_events *engine;
	const struct lockfile_events *lockfiles;
	const struct view_files *files; /* shows lock files */
};

/* The shard that has the lock at `path`. */
struct shard *shard_of(const struct filesystem *filesystem, const char *path);

/* The policy of a lock of the shard, by its path in the engine. */
struct lock_policy shard_policy(const struct shard *shard, const char *path);

/* Reads the files for TLS of each store, which may block. Returns 0; or -EINVAL and one line in
 * `why` if one of them cannot be used. */
int shards_check(const struct config *config, char *why, size_t why_bytes);

/* Asks each server of each store how it is, and writes a line for each: "RESULT: servers: TEXT",
 * RESULT as of dlockctl doctor. Takes `limit_ms` for each store at most. Returns whether all are
 * well. For a process that serves nothing. */
bool shards_ask(const struct config *config, int64_t limit_ms, FILE *out);

/* Opens a shard for each store of the configuration; `former` has as many, or is NULL. The
 * configuration stays the caller's, as do the events. To be called after the process went to the
 * background and has mounted, with the signals of the loop blocked: it starts threads. Returns 0 or
 * -errno. */
int shards_open(const struct config *config, const struct shard_events *events,
		const struct shard_former *former, struct shards *ret);

/* Whoever holds anything is told of its loss by the events of the engines, which send nothing to
 * their stores from now on. */
void shards_end(struct shards *shards);

/* Ends the sessions, all at the same time, so that a store which cannot be reached does not delay
 * the release of locks in another; then frees everything. May block for up to two seconds. Without
 * shards_end(), or while the file system has its connection with the kernel, the sessions are left
 * to their services instead: somebody may hold by them who was not told. */
void shards_close(struct shards *shards);

/* Tells the engines the time (engine_advance()), and does what is due. */
void shards_advance(struct shards *shards, int64_t now_ms);

/* The store's descriptor is readable. */
void shard_dispatch(struct shard *shard);

/* To be called at the end of each turn of the loop: if something has happened to a shard, finds
 * when shards_advance() is needed next, and tells the guard. */
void shards_conclude(struct shards *shards);

/* The configuration has been read anew. */
void shards_reload(struct shards *shards, const struct config *config);

/* Whether this host grants nothing new (engine_drain()), in all stores; other hosts are told. */
void shards_drain(struct shards *shards, bool drains);
bool shards_drained(const struct shards *shards);

/* Calls engine_doubt() of all engines. Returns whether there is a session to prove. */
bool shards_doubt(struct shards *shards, int64_t now_ms);

/* The shard's number among the stores, by which the guard knows the shard. */
size_t shard_number(const struct shard *shard);

/* Tells the guard (kernel/lease_board.h) when the shard's lease ends, if anything is held. To be
 * called before a caller learns of a grant, and whenever the session was proved. Costs one write to
 * memory. */
void shard_tell_guard(const struct shard *shard);

#endif
