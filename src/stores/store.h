/* SPDX-License-Identifier: Apache-2.0
 *
 * A store keeps, for each lock, a queue of claims: in an order that the store gives out, and
 * ephemeral, that is gone when the session that placed them is over. struct store_ops is all
 * that the lock engine knows of a store, and with struct store_kind all that the daemon does.
 *
 * stores/zookeeper/store.c and stores/etcd/store.c ask servers, stores/local/store.c keeps the
 * queues in this process. The store that injects faults (tests/sim) wraps another one with the
 * same table.
 *
 * Rules that hold for every store:
 *
 * - Everything runs on one thread, the loop's. No function here blocks. Events are delivered from
 *   within dispatch(), never from within another function of the table.
 * - Operations on one lock take effect in the order in which they were called, and their events
 *   come in that order. Operations on other locks, prove() of several claims, and what views ask
 *   may be done before or after.
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
#include "config/access.h"
#include "config/contention.h"
#include "config/url.h"
#include "journal/journal.h"
#include "journal/text.h"

struct store_statistics;

/* The most in one transaction: claims, of which one of CLAIM_CURATOR_ANY counts as two; and bytes
 * of paths (each byte may become three), names and text. So a transaction stays below the 1 MB that
 * ZooKeeper takes (jute.maxbuffer): the server answers a longer one by closing the connection. And
 * below the 128 comparisons that etcd takes (--max-txn-ops): two for each claim, and one.
 * Administrators set jute.maxbuffer to less, too: a transaction of more than one claim stays below
 * 8 KiB. */
#define STORE_PROOFS_MAX       (60)
#define STORE_PROOF_BYTES_MAX  (800 * 1024)
#define STORE_PROOFS_BYTES_MAX (8 * 1024)

enum store_session {
	STORE_CONNECTED, /* a session lives and answers: a new one, or the former one again */
	STORE_SUSPENDED, /* the session may live or not, which is not known; operations are not
			    answered */
	STORE_LOST, /* the session is over, and its claims are or will be gone; a new one is being
		       made, and STORE_CONNECTED follows */
};

/* Why others may hold what the store does not show (engine/books/moratorium.h). */
enum store_moratorium {
	STORE_NEW_ROOT, /* the root is new, or was made anew: nobody knows what stood there */
	STORE_SET_BACK, /* the service has gone back to an earlier state than this host has seen */
};

/* One claim of a queue, as the store lists it. An entry that another client, or a person, has made
 * under the name of a claim may be listed too, though it does not end with a session: watch() finds
 * that out. */
struct store_entry {
	const char *name;
	struct claim_name claim; /* the content of the name */
	/* A claim of CLAIM_CURATOR_ANY without its companion, or a companion without its claim:
	 * somebody has deleted the other half. A whole claim is one entry, without the companion.
	 */
	bool half;
	/* The claim has gone while its marker stood (mark()): its holder was lost. The entry has
	 * the claim's place and name. */
	bool orphan;
};

/* As a version: the data is replaced however often it was changed. */
#define STORE_ANY_VERSION UINT32_MAX

/* A claim of this session that is to stand. */
struct store_proof {
	const char *path;
	const char *name; /* NULL: a file of this session (struct store_step) */
	const char *text; /* replaces the data, if that was changed `version` times; NULL: the data
			     stays */
	uint32_t version;
};

/* What a store knows of the lease: until when its session is certain to live. Only the store knows
 * what proves that, and how often it has to be proven anew; the file in its folder that has the
 * arithmetic says from where each rule is. Times are of clock_now_ms() (base/clock.h), in
 * milliseconds, and are reckoned from when something was sent, never from its answer. */
struct store_lease {
	/* From then on the session may be over without STORE_LOST, unless the lease is renewed.
	 * INT64_MAX: it cannot be; INT64_MIN: nothing is proven. */
	int64_t end_ms;
	int64_t proven_ms; /* the service had heard of the session then: what the lease counts from;
			      INT64_MIN: nothing is proven */
	int64_t saved_ms;  /* what resume() is to be told of the lease, whatever that is */
	/* Whether a first lock may be granted: the lease holds, can be renewed in time by
	 * heartbeats, and is not doubtful. */
	bool grants;
	/* After doubt(): the lease may rest on what was sent before it. What is held stays held
	 * until end_ms, but nothing may be granted. */
	bool doubtful;
	int64_t beat_ms;  /* when the next heartbeat is due, if anything is claimed: prove() with
			     the tag NULL, one at a time; INT64_MAX: no heartbeats are needed */
	int64_t touch_ms; /* when touch() is due; likewise */
};

/* Where events go. Pointers in arguments are valid during the call only. */
struct store_events {
	/* The session changed. It begins as STORE_SUSPENDED, without an event. With STORE_CONNECTED
	 * comes the session's timeout: after about so long without a sign of life the session is
	 * over, and its claims are gone. 0: it cannot end without STORE_LOST first. The lease of a
	 * session that is lost ends before the event. */
	void (*on_session)(void *context, enum store_session session, int64_t timeout_ms);

	/* Nothing is to be granted before `until_ms` (clock_now_ms()), whatever the store shows.
	 * Comes before on_session(STORE_CONNECTED). If the service has gone back,
	 * on_session(STORE_LOST) follows: what was placed or seen before does not count. */
	void (*on_moratorium)(void *context, enum store_moratorium why, int64_t until_ms);

	/* The lease is renewed: its end, by lease(), is later than before. Another event follows:
	 * of the operation whose answer proves it, or on_touched(). What else lease() says may
	 * change with any answer. */
	void (*on_renewed)(void *context);

	/* place() is done. error 0: the claim stands in the queue as `name` with `order`; entries
	 * is the whole queue at a moment after that (the claim itself included), or NULL if the
	 * queue was not asked for or could not be read. `after` is an order below the claim's own.
	 * Between the claim that has, or had, that order and this one no claim was placed that
	 * still stands, or whose orphan does. INT64_MAX: nothing is known of that. -ECONNRESET:
	 * ambiguous. -EACCES, -ENAMETOOLONG, -EMSGSIZE (the service takes nothing as long as the
	 * text), -ENOMEM, -EIO: it was not placed. -EAGAIN: likewise, and no claim of the lock is
	 * placed for a few seconds, so that the orders of a lock above it can start anew. */
	void (*on_placed)(void *context, void *tag, int error, const char *name, int64_t order,
			  int64_t after, const struct store_entry *entries, size_t count);

	/* list() is done: error 0 and the queue in its order (claim_name_compare), or -ECONNRESET,
	 * -EACCES, -EIO. A lock that was never used has an empty queue. */
	void (*on_listed)(void *context, void *tag, int error, const struct store_entry *entries,
			  size_t count);

	/* The queue that list() or place() was asked to attend to may have changed since then: a
	 * claim has come, or gone. */
	void (*on_changed)(void *context, void *tag);

	/* The data of a claim for which watch() was called, as text up to its first NUL: once when
	 * the watch is set up, and each time after the data has changed, or may have changed while
	 * there was no connection. NULL: the data has changed, or may have, and the text comes
	 * later. This is not the answer to watch(): on_watched() still comes. Events are in order:
	 * if no NULL came before a list, the data was as last reported when that list was made.
	 * `version`: how often it was changed. */
	void (*on_read)(void *context, void *tag, const char *text, uint32_t version);

	/* watch() is over. error 0: the claim is gone. -EOWNERDEAD: likewise, but its host has not
	 * withdrawn it, and may not know: only from a store that can tell. -ENXIO: the entry is no
	 * claim, because it does not end with a session; lists leave it out until that has changed
	 * or the connection is lost. -ECONNRESET: the watch could not be set up and nothing is
	 * known of the claim. Other errors as for on_listed. */
	void (*on_watched)(void *context, void *tag, int error);

	/* amend() is done: 0, the claim has the new data, or is gone; -ESTALE: it was changed more
	 * often than that, and keeps that data; -ECONNRESET: ambiguous; -EACCES, -EMSGSIZE,
	 * -ENOMEM, -EIO: it has the old data. */
	void (*on_amended)(void *context, void *tag, int error);

	/* mark() is done: 0, the marker stands; -ENOENT the claim is gone, and nothing was written;
	 * -ECONNRESET: ambiguous; -EACCES, -ENOMEM, -EIO: there is none. */
	void (*on_marked)(void *context, void *tag, int error);

	/* age() is done: 0, for how long at least the marker stands, and its data, as text up to
	 * its first NUL; -ENOENT it is gone; -ECONNRESET; -EACCES, -ENOMEM, -EIO: neither is known.
	 */
	void (*on_aged)(void *context, void *tag, int error, int64_t age_ms, const char *text);

	/* withdraw() is done: 0, the claim is gone (also if it was before); -ECONNRESET: ambiguous;
	 * -EACCES, -EIO: it still stands. The answer to bequeath(), too. */
	void (*on_withdrawn)(void *context, void *tag, int error);

	/* prove() is done. error 0: the session was alive after the call, and all the claims stood;
	 * if data was replaced, `stamp` is a number above 0 that is greater than that of every
	 * earlier change of any claim by any session, also if the service has gone back
	 * since (as far as stores/tokens.h says). -ENOENT: the session was alive, but a claim
	 * of the lock `missing` was gone, and nothing was replaced. -EACCES: likewise, but the host
	 * may not know whether the claim stands. -ESTALE: likewise, but a claim whose data was to
	 * be replaced was changed more often than that. -EMSGSIZE: the data was not replaced, and
	 * never will be. -ECONNRESET or another error: nothing is known. */
	void (*on_proved)(void *context, void *tag, int error, const char *missing, int64_t stamp);

	/* touch() is done, with success or without; or the lease was renewed by what nobody asked
	 * for. */
	void (*on_touched)(void *context);
};

/* Questions of views, and steering from outside: about claims of any session. The functions return
 * 0, or -ENOMEM and nothing follows. After 0 done() is called once, from within dispatch(), also if
 * the session is lost meanwhile (-ECONNRESET); until then the asker's struct, which begins with one
 * of these, has to stay. After close() it is not called. Errors: -ENOENT there is no such lock, or
 * claim; -ECONNRESET it cannot be found out now, or it is not known whether the change was made;
 * -EACCES, -ENOMEM, -EIO. */
struct store_look {
	/* The queue, and the last components of the paths of locks below, in no order; that of the
	 * path "a//b/" (claim/file_path.h) below "a" may be "/b/", or "b" where other locks are so
	 * named, too. */
	void (*done)(struct store_look *look, int error, const char *const *names,
		     size_t names_count, const struct store_entry *entries, size_t entries_count);
};

struct store_claim {
	const void *data; /* any bytes: anybody may have written them */
	size_t data_bytes;
	int64_t since_ms; /* when it was placed, by the clock of the service, since 1970; 0: unknown
			   */
	uint64_t session; /* the session that it ends with; 0: none, it is not ephemeral */
	uint32_t version; /* how often its data was changed */
	int64_t changed_ms; /* of a file: when that was last, as since_ms */
};

struct store_read {
	void (*done)(struct store_read *read, int error, const struct store_claim *claim);
};

struct store_change {
	void (*done)(struct store_change *change, int error);
};

/* A lock file is one entry of its own, which ends with the session that made
 * it (STEP_KEEP: with none), and has no queue: read() and alter() know it by its path, with the
 * name NULL. Its path, and that of its lock, are in the form of claim/file_path.h. */
struct store_files {
	/* What there is below the directory: each name as claim/file_path.h has it behind the
	 * directory, in no order. A name may be of something that is no file; read() tells. */
	void (*done)(struct store_files *files, int error, const char *const *names, size_t count);
};

enum store_step_kind {
	STEP_MAKE,    /* a new file of this session; -EEXIST: there is something by that path */
	STEP_TAKE,    /* the same in place of whatever file is there, of any session */
	STEP_REPLACE, /* the text of a file that is there, of any session; -ENOENT; -ESTALE */
	STEP_REMOVE,  /* a file that is there, of any session; -ENOENT; -ESTALE */
	STEP_CHECK,   /* nothing changes: a file of this session is there; -ENOENT */
	/* Of a store that has STORE_HAS_KEPT: */
	STEP_KEEP,  /* a new file that ends with no session; -EEXIST */
	STEP_STAND, /* nothing changes: the claim of this session that has the step's text as its
		       name stands in the queue of the path, and its data was changed `version`
		       times; -ENOENT; -ESTALE */
};

/* The most in one transaction: steps; and bytes, which are those of the steps' texts,
 * STORE_STEP_BYTES for each step, and three for each byte of its path. So a transaction stays below
 * the 1 MiB that ZooKeeper takes (jute.maxbuffer), with what its leader adds; etcd takes 1.5 MiB
 * (--max-request-bytes). Where administrators have set that to less, a longer one is answered
 * -EMSGSIZE. */
#define STORE_STEPS_MAX	      8
#define STORE_STEPS_BYTES_MAX ((size_t)(1024 - 1) * 1024)
#define STORE_STEP_BYTES      128

struct store_step {
	enum store_step_kind kind;
	const char *path;
	/* MAKE, TAKE, REPLACE, KEEP: any text. The first line is of this file only, but for a file
	 * that is kept. STAND: the claim's name. */
	const char *text;
	/* REPLACE, REMOVE: how often the text was changed; or STORE_ANY_VERSION, for a file of this
	 * session. STAND: likewise, of the claim's data. A service that can check whether the file
	 * is another session's by now answers -ENOENT then.
	 */
	uint32_t version;
};

/* How full the service is, as it has said lately. Numbers that are not known are negative. */
struct store_space {
	int64_t names;	      /* locks and directories directly below the root */
	int64_t bytes;	      /* the database of a server, */
	int64_t bytes_in_use; /* what of it is not free, */
	int64_t quota_bytes;  /* and how large it may become; */
	bool is_default;      /* the server did not say: that is what it is unless set otherwise */
	bool is_full;	      /* the service takes no more, until somebody ends that; */
	bool is_corrupt;      /* its servers do not agree; both false if not known */
};

struct store; /* every store's own struct begins with `const struct store_ops *ops` */

/* The proof that whoever has lost what goes by a call was told before it: only the engine can give
 * it, once the events that tell of losses have returned (engine/books/decisions.h). So nothing of a
 * session that somebody holds by can go before. It is good for the one call.
 *
 * remove() takes none, and so takes no claim of this session away. Nor does alter(): a file is no
 * claim, and no claim goes with it. Who has made one keeps nobody out but by its name, which any
 * process of any host may remove, as on any file system, and hears of that afterwards. */
struct store_told;

struct store_ops {
	/* A file descriptor that becomes readable when dispatch() has something to do. The
	 * descriptor stays the same, and belongs to the store. */
	int (*descriptor)(struct store *store);

	/* Delivers the events that have come. */
	void (*dispatch)(struct store *store);

	/* Whether dispatch() has something to do that the descriptor does not tell: what the store
	 * was asked since the last one. To be asked before the descriptor is waited for. NULL: the
	 * descriptor tells all. */
	bool (*is_due)(const struct store *store);

	/* Puts a claim at the end of the queue of `path`, with `text` (claim/data.h) as its data.
	 * In a store that other clients can see, a claim of CLAIM_CURATOR_ANY has a companion,
	 * which comes and goes with it: place(), prove(), withdraw() and remove() treat the two as
	 * one. The strings are copied; the name's order is ignored. With `list` the event has the
	 * queue, too, which costs no further round trip. If the event has it, and `attention` is
	 * not NULL, on_changed() comes once with that as its tag, as after list(). It comes before
	 * anything is told that happened after the change; but if the change is the end of a claim,
	 * on_watched() of that claim comes first. A store that cannot keep that order calls
	 * on_changed() before on_placed(). */
	void (*place)(struct store *store, void *tag, const char *path,
		      const struct claim_name *name, const char *text, bool list, void *attention);

	/* Asks for the queue of `path`. With `sync` it shows everything that happened anywhere
	 * before the call; without, everything that this session did and was told. If the queue is
	 * found empty, and most of its orders are used up, its orders start anew, if possible,
	 * before any operation that is called after the answer. With `attend`, and unless the
	 * answer is an error, on_changed() follows once: at the next change of that queue, or
	 * sooner, as when the connection is lost. Cannot be undone. */
	void (*list)(struct store *store, void *tag, const char *path, bool sync, bool attend);

	/* Replaces the data of a claim, if it was changed `version` times: an order that others
	 * have written there has to be read before it is replaced. The text is copied. */
	void (*amend)(struct store *store, void *tag, const char *path, const char *name,
		      const char *text, uint32_t version);

	/* Reads any session's claim, or with the name NULL a file, and waits for its end. Survives
	 * a lost connection. Cannot be undone. A file that is made anew right after its end may be
	 * told as another text instead of an end. */
	void (*watch)(struct store *store, void *tag, const char *path, const char *name);

	/* Leaves a marker, with that text as its data, at a claim of this session that stands. The
	 * marker outlives the claim and the session, until withdraw() takes it away. Up to
	 * `age_ms` age() is to be able to tell how old it is; 0: that is not asked. */
	void (*mark)(struct store *store, void *tag, const char *path, const char *name,
		     const char *text, int64_t age_ms);

	/* Reads the marker of an orphan, and asks since when it stands, by the clock of the
	 * service, which it itself compares with its own time now: this host's clock does not
	 * count. NULL in a store that cannot tell. */
	void (*age)(struct store *store, void *tag, const char *path, const char *name);

	/* Takes a claim away. `order` is the claim's: a store whose orders run out uses it to start
	 * a queue anew early. With `marker` the claim's marker goes too, and not
	 * after the claim; this may also be asked for an orphan. */
	void (*withdraw)(struct store *store, const struct store_told *told, void *tag,
			 const char *path, const char *name, int64_t order, bool marker);

	/* As withdraw(), of a claim that is one entry and has no marker, if the claim `heir`, of
	 * any session, stands in the same queue: the service itself looks, in the transaction that
	 * takes the claim away. on_withdrawn() is -ESTALE if the claim stands and the heir does
	 * not. NULL in a store that cannot. */
	void (*bequeath)(struct store *store, const struct store_told *told, void *tag,
			 const char *path, const char *name, int64_t order, const char *heir);

	/* Proves that the session lives, and that these claims stand: an answer that only the
	 * service as a whole can give (a quorum, not one server). All in one transaction: at most
	 * STORE_PROOFS_MAX claims of STORE_PROOFS_BYTES_MAX, or one of STORE_PROOF_BYTES_MAX, or
	 * none. Everything is copied. */
	void (*prove)(struct store *store, void *tag, const struct store_proof *proofs,
		      size_t count);

	/* Keeps the session alive and the lease fit to be renewed, without a write of the quorum.
	 * Several may be under way. NULL where it is never due. */
	void (*touch)(struct store *store);

	/* What is known of the lease now. NULL in a store whose sessions cannot end without
	 * STORE_LOST: then it never ends, and nothing is due. O(1). */
	void (*lease)(struct store *store, int64_t now_ms, struct store_lease *ret);

	/* The next heartbeat is due as if one were sent now. The only claim of the session is being
	 * placed, so a heartbeat would show of no other claim that it stands. A store in which a
	 * claim that was placed does not renew the lease ignores that. NULL as lease(). */
	void (*defer_beat)(struct store *store);

	/* The clock may have stood still until now, while that of the service went on, for a time
	 * that nobody knows. NULL as lease(). */
	void (*doubt)(struct store *store, int64_t now_ms);

	/* Another process had the session: the timeout that on_session() told there last, 0 if it
	 * never did, and saved_ms and doubtful of its lease. To be called, if at all, before the
	 * first dispatch(). The lease does not become longer by that. NULL as lease(). */
	void (*resume)(struct store *store, int64_t timeout_ms, int64_t saved_ms, bool doubtful);

	/* Reads the queue of `path`, and the names below; "" is above all locks and has no queue.
	 * The answer may be a moment old. */
	int (*look)(struct store *store, struct store_look *look, const char *path);

	/* Reads anybody's claim, or marker (claim/marker.h), once; or with the name NULL a file.
	 * The answer shows what this session did, and was told, before the call. */
	int (*read)(struct store *store, struct store_read *read, const char *path,
		    const char *name);

	/* Replaces the data of anybody's claim, if it was changed `version` times. -ESTALE: it
	 * was changed again. */
	int (*write)(struct store *store, struct store_change *change, const char *path,
		     const char *name, const char *text, uint32_t version);

	/* Takes away a claim of the session `session`, as read() has told it. -EPERM, at once: that
	 * is this store's own session, whose claims only withdraw() takes away. */
	int (*remove)(struct store *store, struct store_change *change, const char *path,
		      const char *name, uint64_t session);

	/* Lists the files of a directory. -ENOENT: it has none. As fresh as read(). */
	int (*files)(struct store *store, struct store_files *files, const char *directory);

	/* Carries out all the steps, about different files, or none of them: the error is that of
	 * the first step that cannot be done. Directories that are missing come into being. An
	 * answer other than -ECONNRESET proves the session as that of prove() does; and with
	 * STEP_CHECK no other answer than that of the service as a whole is given. -ECONNRESET is
	 * ambiguous. Nothing that was asked for before a connection was lost is carried out after
	 * an answer to what is asked in the next one. Without steps it changes nothing: a read()
	 * that is called after it shows everything that happened anywhere before. */
	int (*alter)(struct store *store, struct store_change *change,
		     const struct store_step *steps, size_t count);

	/* The store has not answered for suspiciously long: it looks for another way to the
	 * service, if there is one. Operations under way may be answered -ECONNRESET. Called again
	 * and again while there is no connection: a store whose session may be over without any
	 * server reporting it has to find that out on these calls. */
	void (*nudge)(struct store *store);

	/* Gives the session up, as if after STORE_LOST (which does not come), and makes a new one.
	 * The claims of the old session go as soon as the service can be told, or when the session
	 * times out: a store does not tell the service by itself, not even that a session has ended
	 * which it has given up, or lost.
	 *
	 * To be called after STORE_LOST, too: a store that has given a session up by itself, which
	 * the service may still keep, only then tells the service and makes a new one. For other
	 * stores the call has no effect there. */
	void (*renew)(struct store *store, const struct store_told *told);

	/* The time of on_moratorium() is over: leaves a mark, by which hosts that come later know
	 * that the root is not new. Nobody waits for it. NULL where on_moratorium() never comes. */
	void (*settle)(struct store *store);

	/* One line for people about where the claims are kept and how the connection is. */
	void (*describe)(struct store *store, char *text, size_t text_bytes);

	/* Why nothing can be locked, though the service may be reached: a constant. NULL: nothing
	 * is known to be wrong. */
	const char *(*trouble)(struct store *store);

	/* What the service has said of its space, which the store asks for now and then. NULL in a
	 * store that has no service. O(1). */
	void (*space)(const struct store *store, struct store_space *ret);

	/* What of the service's own settings endangers locks: calls say() with a line for people
	 * for each, that says what would be right. NULL in a store that knows nothing of them. */
	void (*warn)(const struct store *store, void (*say)(void *context, const char *text),
		     void *context);

	/* The session, if another process can go on with it in place of this one, which must then
	 * end without close(): a number that no other session has, and that read() tells of what
	 * ends with it; 0: there is none.
	 * seen() is a number that does not become less: how far this host has seen the service go.
	 * save_session() writes keys of a line (journal/text.h), also if there is none: that of the
	 * store's scheme, a flag, and what restore_session() wants. All three are NULL in a store
	 * that is not remote, or cannot go back; seen() alone in one that sees no such number. */
	int64_t (*session)(const struct store *store);
	int64_t (*seen)(const struct store *store);
	void (*save_session)(const struct store *store, FILE *out);

	/* For a store whose claims end with the process, else NULL: writes the claims for a process
	 * that goes on in place of this one; reads that, up to the first line that is not of it,
	 * into a store that is new, where all claims are of its session: 0, or -EINVAL or -ENOMEM
	 * and a line in the reader's `why`; keeps the claims in the journal from now on, with the
	 * present ones, in places that begin with that number. The journal stays the caller's;
	 * NULL: nothing is kept. */
	void (*save_claims)(const struct store *store, FILE *out);
	int (*restore_claims)(struct store *store, struct state_reader *in);
	void (*keep_claims)(struct store *store, struct state_journal *journal, uint64_t place);

	/* Does what is due by clock_now_ms() and has nothing to do with claims, such as taking away
	 * from the servers what nobody uses any more, without waiting for anything; and when that
	 * is to be called again: INT64_MAX, not before something else has happened. Both are NULL
	 * in a store that has nothing of that kind, or sees to it in dispatch(). */
	void (*tend)(struct store *store, int64_t now_ms);
	int64_t (*tend_ms)(const struct store *store);

	/* It counts in the statistics that it was opened with. */
	bool has_statistics;

	/* The orders of a lock's claims run out: from order_late on new claims are held back until
	 * the queue is empty and its orders start anew (engine/books/numbers.c); from order_unsure
	 * on several claims may have the same one, and nothing is granted by it. INT64_MAX: they
	 * never do. */
	int64_t order_late, order_unsure;

	/* The version of the data of a claim that was never changed since it was placed. Of claims
	 * that others have placed it may be another one. */
	uint32_t first_version;

	/* Ends the session, so that all its claims are gone, and frees the store. No event
	 * comes. May block for up to two seconds. NULL: there is no proof; the session is left to
	 * the service, where it times out. */
	void (*close)(struct store *store, const struct store_told *told);
};

struct store {
	const struct store_ops *ops;
};

struct store_options {
	const struct store_url *url;
	const struct store_access *access; /* the identity of this host, and what others may do */
	int64_t session_timeout_ms;	   /* asked for; the service may grant another */
	const struct store_contention *contention; /* in a store whose queues are of one host */
	int64_t replicas; /* so many must have what a server grants, if the user may say so */
	bool on_disk;	  /* so that it survives whatever becomes of their machines' memory */
	bool new_root;	  /* when it connects first, nobody holds anything below the root */
	bool read_only;	  /* the service is only asked, and nothing is ever put there, not even the
			     root: no claim is ever placed */
	struct store_statistics *statistics; /* where to count how long operations took and how they
						ended, until close() returns; NULL: nowhere */
	bool rehearsal; /* no server is to be reached, nor anything dispatched: it is only to be
			   seen whether restore_claims() can be done */
	const void *session; /* what restore_session() has read: the session to go on with, which is
				reported as lost if it is over by now, and what was known of the
				service; NULL: nothing, and a new one */
};

/* What a store can do. A call that needs what the store cannot do is refused by the engine. */
#define STORE_HAS_QUEUE	  (1U << 0) /* claims have an order over all hosts, so calls can wait */
#define STORE_HAS_SHARED  (1U << 1) /* claims can be CLAIM_SHARED */
#define STORE_HAS_RANGES  (1U << 2) /* claims can cover a part, as record locks need */
#define STORE_HAS_STAMPS  (1U << 3) /* prove() gives stamps, for tokens */
#define STORE_HAS_CLIENTS (1U << 4) /* other programs can lock by the same names */

#define STORE_HAS_FILES (1U << 5) /* lock files: files(), alter() */
#define STORE_HAS_KEPT	(1U << 6) /* and files that outlive all sessions: STEP_KEEP, STEP_STAND */
#define STORE_HAS_SLOTS (1U << 7) /* the claims of all hosts are in one queue: several may hold */

#define STORE_HAS_ALL ((1U << 8) - 1)

/* What a server says of itself, for people. */
enum store_health { STORE_WELL, STORE_SICK };

/* Who asks, and for how long at most. */
struct store_asker {
	int64_t limit_ms;
	/* One line about one server. */
	void (*say)(void *context, enum store_health health, const char *text);
	void *context;
};

/* What there is of a store before it is opened: files/stores.h has a list of them. */
struct store_kind {
	const char *scheme; /* of its URL */
	unsigned abilities; /* STORE_HAS_... */
	/* Which of them a store at that address has not; NULL: none. */
	unsigned (*lacks)(const struct store_url *url);
	/* The claims are in a service, which has servers, a root and a session timeout; */
	bool is_remote;
	/* though what claims there are, only this process knows: restore_claims(); */
	bool keeps_claims;
	/* and what this host creates there says by itself who may change it (enum store_acl). */
	bool has_acl;

	/* Reads the files for TLS. Returns true if they can be used; else false, with one line in
	 * `why`. NULL: the store has none. */
	bool (*check_files)(const struct store_access *access, char *why, size_t why_bytes);

	/* Asks each server by itself how it is; without a session, and changes nothing. Blocks,
	 * for the limit and a moment. Returns 0 or -errno. NULL: there are no servers, or this
	 * build cannot. */
	int (*ask)(const struct store_url *url, const struct store_access *access,
		   const struct store_asker *asker);

	/* Begins to connect, and keeps trying for as long as the store lives; never blocks. To be
	 * called after the process went to the background, with all signals blocked that the loop
	 * wants to receive: it may start threads. What the options point to is copied, but for the
	 * statistics. Returns 0 and the store in *ret, which ops->close() frees, or -errno. */
	int (*open)(const struct store_options *options, const struct store_events *events,
		    void *context, struct store **ret);

	/* Reads the session, and what is known of the service, from the line in which
	 * save_session() wrote it. Returns memory for free(3), or NULL if there is nothing; what is
	 * wrong is said to the reader. NULL in a store that is not remote. */
	void *(*restore_session)(struct state_reader *in);
};

#endif
