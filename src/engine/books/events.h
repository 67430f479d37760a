/* SPDX-License-Identifier: Apache-2.0
 *
 * Whom the engine serves: what a caller says of itself, and the functions by which the engine asks
 * and tells whoever has made it. engine.h says when they are called.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_EVENTS_H
#define DLOCKFS_ENGINE_BOOKS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "claim/name.h"
#include "claim/range_set.h"
#include "config/config.h"

struct owner;
struct state_reader;
struct wish;

/* The ways to take a lock through an open file. */
enum lock_kind {
	LOCK_KIND_OPEN,	  /* open(O_EXCL) */
	LOCK_KIND_FLOCK,  /* flock(2); as OPEN, replaced by the next flock of the same owner */
	LOCK_KIND_RECORD, /* fcntl(2): a range of bytes, of a process or an open file description */
};

/* Why what was held is lost. */
enum engine_loss {
	ENGINE_LOSS_NONE,
	ENGINE_LOSS_SESSION, /* the session is over, or may be */
	ENGINE_LOSS_BROKEN,  /* by ENGINE_BREAK, of any host */
	ENGINE_LOSS_EXPIRED, /* it was held for as long as it may be (term.h) */
	ENGINE_LOSS_TAKEN,   /* somebody took the claim away in the store */
	ENGINE_LOSS_STOPPED, /* the daemon stops */
};

/* The caller, as other hosts see it in the claim's data. */
struct engine_caller {
	int pid;
	uint32_t uid; /* claims go on among callers of one user (lock_policy: handoff, keep_ms) */
	const void *details; /* copied, for describe(); NULL: all zero */
};

/* The longest text of describe(), with its NUL. */
#define ENGINE_TEXT_BYTES 512

/* How the daemon of another host is reached: the daemon's own words, which the engine only keeps.
 */
struct engine_peer {
	uint8_t bytes[64];
};

/* The most names in one on_tell(). */
#define ENGINE_TOLD_MAX 16

/* What is in the way of a record lock. */
struct engine_conflict {
	struct range range;
	int pid; /* 0: of another host */
};

struct engine_events {
	size_t details_bytes; /* of a caller */

	/* What a caller says of itself to others, as text: "format=1" and more lines, with which
	 * the data of its claim begins. Asked for whenever the data is written. */
	void (*describe)(void *context, const struct engine_caller *caller, enum lock_kind kind,
			 enum claim_mode mode, char text[ENGINE_TEXT_BYTES]);

	/* The time of day, since 1970, for people of other hosts; NULL: they are not told. */
	int64_t (*wall_ms)(void *context);

	/* A wish is decided: 0 it is granted; -EWOULDBLOCK it was not to wait and would have had
	 * to; -EDEADLK it would have waited for somebody who waits for its own owner; -ENOLCK the
	 * store could not be reached in time or refused the claim; -ENOMEM. */
	void (*on_decided)(void *context, void *cookie, int result);

	/* The answer to engine_test_range(): error 0 and the first conflict, NULL if there is none;
	 * or -ENOLCK, -EIO. */
	void (*on_tested)(void *context, void *cookie, int error,
			  const struct engine_conflict *conflict);

	/* The answer to engine_prove(): 0 and the token, if that was asked for; -EIO what was held
	 * is lost; -ENODATA a token was asked for, and nothing is held; -EACCES the store does not
	 * tell, or does not let the claim be changed; -EMSGSIZE it takes no claim as long as that;
	 * -ENOMEM. */
	void (*on_proved)(void *context, void *cookie, int error, uint64_t token);

	/* The open file, or a process that has locked through it, held a lock and lost it: the
	 * session is over or the claim was taken away. Comes once for an open file; from now on
	 * everything that is asked for through it is -EIO. */
	void (*on_lost)(void *context, void *owner_cookie);

	/* Every loss that is known has been told, by on_lost() or files->on_file_gone(): nothing
	 * that depends on it was done before. May come twice for one event. May be NULL. */
	void (*on_told)(void *context);

	/* Somebody asks that what was locked through the open file be released. Comes once for each
	 * grant. */
	void (*on_revoked)(void *context, void *owner_cookie);

	/* Whether to write a line for the log that the user has caused; NULL: all are written. */
	bool (*may_log)(void *context, uint32_t uid);

	/* Hand-over by message (bequest.h): both are NULL, and then nothing of that is done, or
	 * neither. Both come behind the commit of the journal, with what is sent to the store.
	 *
	 * on_ask(): `claim`, of this host, waits for the claim `rival`, whose data name that peer
	 * (claim/data.h): that daemon is to have engine_peer_asked() called.
	 *
	 * on_tell(): names[0], which engine_peer_asked() was about, is released, and the others are
	 * as far as this host knows: the daemon of `claim`, which asked for it, is to have
	 * engine_peer_told() called. There are 1 to ENGINE_TOLD_MAX names. */
	void (*on_ask)(void *context, const char *path, const char *rival, const char *peer,
		       const char *claim);
	void (*on_tell)(void *context, const char *path, const struct engine_peer *asker,
			const char *claim, const char *const *names, size_t count);

	/* A claim is held from now on. What this returns is kept with it, and given back when it is
	 * held no longer: released, lost, or taken over from by another one. For who takes the
	 * time; both are NULL, or neither. */
	int64_t (*on_held)(void *context, enum lock_kind kind);
	void (*on_released)(void *context, enum lock_kind kind, int64_t kept);

	/* For who keeps accounts of the ranges that processes hold; both are NULL, or neither.
	 * Those of a process in a file are on the account of the open file through which it locked
	 * there first, of those that are still open.
	 *
	 * may_hold(): whether there may be so many more, at least 1, which are asked for, or made
	 * by releasing what is between them. on_ranges(): there are so many more, or less. */
	bool (*may_hold)(void *context, void *owner_cookie, size_t more, bool releases);
	void (*on_ranges)(void *context, void *owner_cookie, ptrdiff_t more);
};

/* What is known of owners and wishes outside: a number for each cookie, above 0, the same in both
 * processes. The context is the engine's. */
struct engine_transfer {
	uint64_t (*number_owner)(const void *owner_cookie);
	uint64_t (*number_wish)(const void *cookie);

	/* The details of a caller as keys of a line, and back. Reading notes what is wrong in the
	 * reader. */
	void (*save_details)(FILE *out, const void *details);
	void (*restore_details)(struct state_reader *in, void *details);

	struct lock_policy (*policy)(void *context, const char *path);

	/* The owner of that number, restored by engine_restore_owner(); NULL: there is none. */
	struct owner *(*find_owner)(void *context, uint64_t number);

	/* Visits all owners of the engine. */
	void (*each_owner)(void *context, void (*visit)(void *visitor, struct owner *owner),
			   void *visitor);

	/* Takes the wish of that number, and returns its cookie; NULL: there is
	 * none that was asked for through the file, or it was taken. */
	void *(*adopt_wish)(void *context, uint64_t number, const struct owner *file,
			    struct wish *wish);
};

#endif
