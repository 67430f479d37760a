/* SPDX-License-Identifier: Apache-2.0
 *
 * A store keeps, for each lock, a queue of claims: ordered by a number that it hands out, and
 * ephemeral, that is gone when the session that placed them is over. This table of functions is all
 * that the lock engine knows of it.
 *
 * stores/zookeeper/store.c is the real one, stores/local/store.c keeps the queues in this process.
 * A store whose behaviour is bent on purpose (tests/sim) wraps another one with the same table.
 *
 * Rules that hold for every store:
 *
 * - Everything runs on one thread, the loop's. No function here blocks. Events are delivered from
 *   within dispatch(), never from within another function of the table.
 * - Operations of one session take effect in the order in which they were called, and their events
 *   come in that order.
 * - Each operation is answered by exactly one event with its tag, unless the session is lost first:
 *   after on_session(STORE_LOST) no event comes for anything called before it.
 * - An operation may be called in any session state; without a connection it may wait for one
 *   or be answered -ECONNRESET.
 * - -ECONNRESET is *ambiguous*: the operation may have happened, may happen soon, or not at all.
 * - Paths are lock paths ("a/b", any bytes but NUL); names are the store's own names of claims.
 */
#ifndef DLOCKFS_STORES_STORE_H
#define DLOCKFS_STORES_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/name.h"

/* Of one transaction: so many claims, one of CLAIM_CURATOR_ANY as two, and so many bytes of paths,
 * where each may become three, names and text. It stays below the 1 MB that ZooKeeper takes
 * (jute.maxbuffer): the server answers what is longer by closing the connection. */
#define STORE_PROOFS_MAX      64
#define STORE_PROOF_BYTES_MAX (800 * 1024)

enum store_session {
	STORE_CONNECTED, /* a session lives and answers: a new one, or the former one again */
	STORE_SUSPENDED, /* nothing is known: the session may live or not; operations are not
			    answered */
	STORE_LOST,	 /* the session is over, and its claims are or will be gone; a new one is
			    being made, and STORE_CONNECTED will tell of it */
};

/* One claim of a queue, as the store lists it. What another client, or a person, has put there
 * under the name of a claim may be listed too, though it does not end with a session: watch()
 * tells. */
struct store_entry {
	const char *name;
	struct claim_name claim; /* what the name says */
	/* A claim of CLAIM_CURATOR_ANY without its companion, or the other way round: somebody has
	 * taken the other half away. A whole one is one entry, without the companion. */
	bool half;
	/* The claim has gone while its marker stood (mark()): its holder was lost. The entry is in
	 * the place of the claim, and carries its name. */
	bool orphan;
};

/* As a version: the data is replaced however often it was changed. */
#define STORE_ANY_VERSION UINT32_MAX

/* A claim of this session that is to stand. */
struct store_proof {
	const char *path;
	const char *name;
	const char
		*text; /* replaces its data, if that was changed `version` times; NULL: it stays */
	uint32_t version;
};

/* Where events go. Pointers in arguments are valid during the call only. */
struct store_events {
	/* The session changed. Starts as STORE_SUSPENDED, untold. With STORE_CONNECTED comes the
	 * session's timeout: without a sign of life for so long it is over, and its claims are
	 * gone. 0: it cannot end without STORE_LOST being told first. */
	void (*on_session)(void *context, enum store_session session, int64_t timeout_ms);

	/* place() is done. error 0: the claim stands in the queue as `name` with `sequence`;
	 * entries is the whole queue at a moment after that (the claim itself included), or NULL
	 * where it was not asked for or could not be had. -ECONNRESET: ambiguous. -EACCES,
	 * -ENAMETOOLONG, -ENOMEM, -EIO: it was not placed. -EAGAIN: likewise, and none of the lock
	 * is for a few seconds, so that the numbers of one above it can start anew. */
	void (*on_placed)(void *context, void *tag, int error, const char *name, int32_t sequence,
			  const struct store_entry *entries, size_t count);

	/* list() is done: error 0 and the queue in its order (claim_name_compare), or -ECONNRESET,
	 * -EACCES, -EIO. A lock that was never used has an empty queue. */
	void (*on_listed)(void *context, void *tag, int error, const struct store_entry *entries,
			  size_t count);

	/* The queue that list() was asked to attend to may have changed since then: a claim has
	 * come, or gone. */
	void (*on_changed)(void *context, void *tag);

	/* The data of a claim that watch() was called for, as text up to its first NUL: once the
	 * watch is set up, and each time the data has changed since, or may have while there was no
	 * connection. NULL: that is so, and what it is now comes later. Not the answer:
	 * on_watched() still comes. In order with other events: without NULL before a list, the
	 * data was as told when that list was made. `version`: how often it was changed. */
	void (*on_read)(void *context, void *tag, const char *text, uint32_t version);

	/* watch() is over. error 0: the claim is gone. -ENXIO: what stands there is no claim, for
	 * it does not end with a session; lists leave it out from now on, until that has changed or
	 * the connection is lost. -ECONNRESET: the watch could not be set up and nothing is known
	 * of the claim. Other errors as for on_listed. */
	void (*on_watched)(void *context, void *tag, int error);

	/* amend() is done: 0, the claim has the new data, or is gone; -ESTALE: it was changed more
	 * often than that, and has the data of whoever did; -ECONNRESET: ambiguous; -EACCES,
	 * -ENOMEM, -EIO: it has the old data. */
	void (*on_amended)(void *context, void *tag, int error);

	/* mark() is done: 0, the marker stands; -ENOENT the claim is gone, and nothing was written;
	 * -ECONNRESET: ambiguous; -EACCES, -ENOMEM, -EIO: there is none. */
	void (*on_marked)(void *context, void *tag, int error);

	/* withdraw() is done: 0, the claim is gone (also if it was before); -ECONNRESET: ambiguous;
	 * -EACCES, -EIO: it still stands. */
	void (*on_withdrawn)(void *context, void *tag, int error);

	/* prove() is done. error 0: the session was alive after the call, and all the claims stood;
	 * if data was replaced, `stamp` is a number above 0 that is greater than that of every
	 * earlier change of any claim by any session. -ENOENT: the session was alive, but a claim
	 * of the lock `missing` was gone, and nothing was replaced. -EACCES: likewise, but
	 * of a claim it may not be known whether it stands. -ESTALE: likewise, but one whose data
	 * was to be replaced was changed more often than that. -ECONNRESET or another error:
	 * nothing is known. */
	void (*on_proved)(void *context, void *tag, int error, const char *missing, int64_t stamp);

	/* touch() is done: 0, or -ECONNRESET. */
	void (*on_touched)(void *context, int error);
};

/* What somebody asks who only looks on, or steers from outside: it concerns no claim of this
 * session, but anybody's. The functions return 0, or -ENOMEM and nothing follows. After 0 done() is
 * called once, from within dispatch(), also if the session is lost meanwhile (-ECONNRESET); until
 * then the asker's struct, which begins with one of these, has to stay. After close() it is not
 * called. Errors: -ENOENT there is no such lock, or claim; -ECONNRESET it cannot be known now, or
 * whether it happened; -EACCES, -ENOMEM, -EIO. */
struct store_look {
	/* The queue, and the last components of the paths of locks below, in no order. */
	void (*done)(struct store_look *look, int error, const char *const *names,
		     size_t names_count, const struct store_entry *entries, size_t entries_count);
};

struct store_claim {
	const void *data; /* anything: whoever wrote it */
	size_t data_bytes;
	int64_t since_ms; /* when it was placed, by the clock of the service, since 1970; 0: unknown
			   */
	uint64_t session; /* of whom; 0: of none, it is not ephemeral */
	uint32_t version; /* how often its data was changed */
};

struct store_read {
	void (*done)(struct store_read *read, int error, const struct store_claim *claim);
};

struct store_change {
	void (*done)(struct store_change *change, int error);
};

struct store; /* every store's own struct begins with `const struct store_ops *ops` */

struct store_ops {
	/* A file descriptor that becomes readable when dispatch() has something to do. It stays
	 * the same, and the store's own. */
	int (*descriptor)(struct store *store);

	/* Delivers the events that have come. */
	void (*dispatch)(struct store *store);

	/* Puts a claim at the end of the queue of `path`, with `text` (claim/data.h) as its data.
	 * It takes as many numbers as claim_recipe_znodes() says, one after the other, and
	 * `sequence` is the last of them. Where other clients can see it, a claim of
	 * CLAIM_CURATOR_ANY has a companion, which comes and goes with it: here and for prove(),
	 * withdraw() and remove() both are one. The strings are copied; the name's sequence is not
	 * looked at. With `list` the event brings the queue along; that costs no further round
	 * trip. */
	void (*place)(struct store *store, void *tag, const char *path,
		      const struct claim_name *name, const char *text, bool list);

	/* Asks for the queue of `path`. With `sync` it shows everything that happened
	 * anywhere before the call; without, everything that this session did and has heard of.
	 * A queue that is seen to be empty, and whose numbers are used up for the greater part,
	 * starts anew before what is called after the answer, if it can.
	 * With `attend`, and unless the answer is an error, on_changed() follows once: at the next
	 * change of that queue, or sooner, as when the connection is lost. Cannot be undone. */
	void (*list)(struct store *store, void *tag, const char *path, bool sync, bool attend);

	/* Replaces the data of a claim, if it was changed `version` times: what others have written
	 * there, who ask for the lock, is to be read before it is replaced. The text is copied. */
	void (*amend)(struct store *store, void *tag, const char *path, const char *name,
		      const char *text, uint32_t version);

	/* Reads somebody's claim and waits for its end. Survives a lost connection. Cannot be
	 * undone. */
	void (*watch)(struct store *store, void *tag, const char *path, const char *name);

	/* Leaves a marker, with that text as its data, at a claim of this session that stands. The
	 * marker outlives the claim and the session, until withdraw() takes it away. */
	void (*mark)(struct store *store, void *tag, const char *path, const char *name,
		     const char *text);

	/* Takes a claim away. `sequence` is the claim's number: a store whose numbers run out uses
	 * it to start a queue anew early. With `marker` the claim's marker goes too, and not
	 * after the claim; this may also be asked for an orphan. */
	void (*withdraw)(struct store *store, void *tag, const char *path, const char *name,
			 int32_t sequence, bool marker);

	/* Proves that the session lives, and that these claims stand: an answer that only the
	 * service as a whole can give (a quorum, not one server). All in one transaction: at most
	 * STORE_PROOFS_MAX claims of STORE_PROOF_BYTES_MAX, or none. Everything is copied. */
	void (*prove)(struct store *store, void *tag, const struct store_proof *proofs,
		      size_t count);

	/* Shows a server that this session is used, which costs no write: some server answers, and
	 * that alone proves nothing (engine/lease.h). NULL in a store whose sessions have no
	 * timeout. */
	void (*touch)(struct store *store);

	/* Looks at the queue of `path` and at what is below; "" is above all locks and has no
	 * queue. May show what was a moment ago. */
	int (*look)(struct store *store, struct store_look *look, const char *path);

	/* Reads anybody's claim, or marker (claim/marker.h), once. */
	int (*read)(struct store *store, struct store_read *read, const char *path,
		    const char *name);

	/* Replaces the data of anybody's claim, if it was changed `version` times. -ESTALE: it
	 * was changed again. */
	int (*write)(struct store *store, struct store_change *change, const char *path,
		     const char *name, const char *text, uint32_t version);

	/* Takes anybody's claim away. */
	int (*remove)(struct store *store, struct store_change *change, const char *path,
		      const char *name);

	/* It has not answered for suspiciously long: another way to the service is looked for, if
	 * there is one. What is under way may be answered -ECONNRESET. Called again and again while
	 * there is no connection: a store whose session may be over without any server that says
	 * so has to find that out by then. */
	void (*nudge)(struct store *store);

	/* Gives the session up, as if STORE_LOST had just been told (it is not told), and makes a
	 * new one. What the old one placed goes as soon as the service can be told, or when the
	 * session times out.
	 *
	 * To be called after STORE_LOST, too: a store that gives a session up by itself, though the
	 * service may keep it, tells the service of that and makes a new one only then. Else it has
	 * no effect there. */
	void (*renew)(struct store *store);

	/* One line for people about where the claims are kept and how the connection is. */
	void (*describe)(struct store *store, char *text, size_t text_bytes);

	/* Why nothing can be locked, though the service may be reached: a constant. NULL: nothing
	 * is known to be wrong. */
	const char *(*trouble)(struct store *store);

	/* Ends the session, so that all its claims are gone, and frees the store. No event
	 * comes. May block for up to two seconds. */
	void (*close)(struct store *store);
};

struct store {
	const struct store_ops *ops;
};

#endif
