/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the kernel that are answered later, each exactly once: calls of flock(2), fcntl(2),
 * fsync(2) and ioctl(2), and the attributes that the kernel asks for before an exclusive open(2)
 * returns. A parked request costs a few hundred bytes and no thread.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_PARKED_H
#define DLOCKFS_HANDLES_PARKED_H

#include <linux/fuse.h>
#include <string.h>

#include "engine/engine.h"
#include "files/claim_text.h"
#include "files/questions.h"
#include "files/waiting.h"
#include "handles/handle.h"

/* The longest request that is parked is that of a lock. */
enum { PARKED_REQUEST_BYTES = sizeof(struct fuse_in_header) + sizeof(struct fuse_lk_in) };

enum parked_kind {
	PARKED_FLOCK,
	PARKED_OPEN,
	PARKED_RECORD, /* F_SETLK, F_SETLKW */
	PARKED_TEST,   /* F_GETLK */
	PARKED_FSYNC,
	PARKED_TOKEN,  /* ioctl(2) */
	PARKED_BESIDE, /* another GETATTR while that of a foreign exclusive open is parked */
};

extern const struct waiting_kind parked_kind;

struct parked {
	struct waiting waiting; /* first; in handle->parked. Without a request: an exclusive open
				   whose GETATTR has not come yet; or a proof that was interrupted,
				   of which the servers have been asked */
	struct handle *handle;
	union { /* in the engine: */
		struct wish *wish;
		struct test *test;   /* for TEST */
		struct proof *proof; /* for FSYNC and TOKEN; NULL until it is their turn */
	};
	int64_t since_us; /* the request, as histogram_now_us() */
	uint64_t number;  /* of this request, for engine/transfer.h */
	int result;	  /* the engine's, 0 or -errno, */
	bool decided; /* once it has decided; for an exclusive open, perhaps before the GETATTR has
			 come */
	enum parked_kind kind : 8;
	uint8_t request_bytes;
	unsigned char request[PARKED_REQUEST_BYTES]; /* as the kernel sent it, to be handled again
							by another process */
};

/* A proof, PARKED_FSYNC or PARKED_TOKEN. */
struct proving {
	struct parked parked;	  /* first */
	struct question question; /* in shard->proofs, until the engine has answered */
};

/* An exclusive open whose open(2) has not returned. One of a foreign pid namespace (thread 0),
 * whose GETATTR looks like that of any other foreign process, is the only one of its inode; see
 * fs/ops/open.c. If it has failed it stays, with its result, until the open file is closed. */
struct opening {
	struct parked parked;	     /* first */
	struct opening *prev, *next; /* in inode->opening */
	pid_t thread;		     /* the thread that called open(2); 0: a foreign one */
	uid_t uid;		     /* the owner of the new file, */
	gid_t gid;
	mode_t mode;	 /* and its permissions; */
	bool keeps_text; /* the file keeps its text, as its creator may not write to it */
	struct claim_details maker; /* the process; all zero if it asked in an earlier process of
				       dlockfs */
};

/* On the account of the caller `uid`, whose limit the caller of this function has checked; BESIDE
 * counts for nobody. Returns NULL when out of memory. */
struct parked *parked_create(struct handle *handle, enum parked_kind kind, uid_t uid);
struct proving *parked_create_proving(struct handle *handle, enum parked_kind kind, uid_t uid);
struct opening *parked_create_opening(struct handle *handle, const struct fuse_ctx *caller,
				      mode_t mode, bool keeps_text);

/* Parks the request: from now on a signal to its caller takes the wish back and answers EINTR.
 * Returns false if the signal has come already; the request is then still the caller's to answer.
 */
bool parked_hold(struct parked *parked, fuse_req_t req);

/* Whether the request was parked in another process. If so, the request is parked again, or
 * answered. */
bool parked_resume(struct handle *handle, fuse_req_t req);

/* Writes the parked request as a line, for another process. */
void parked_save(const struct parked *parked, FILE *out);

/* Parks what the present line describes, without the request, which is to be handled again. Returns
 * NULL when out of memory, or when the line makes no sense; the reader says which. */
struct parked *parked_restore(struct handle *handle, struct state_reader *in);

/* The engine has decided: 0 or -errno. Answers the request, if the request has come, and frees what
 * was parked. */
void parked_decide(struct parked *parked, int result);

/* The engine has answered a test: an error (-errno), or the conflict, NULL if there is none.
 * Answers and frees as parked_decide(). */
void parked_tell(struct parked *parked, int error, const struct engine_conflict *conflict);

/* The engine has proved: an error (-errno), or 0 and the token. Answers and frees as
 * parked_decide(). */
void parked_prove(struct parked *parked, int error, uint64_t token);

/* The wish was taken back, because a signal has come: answers the request with EINTR. */
void parked_interrupt(struct parked *parked, fuse_req_t req);

/* Whether the open file is that of a foreign exclusive open that has not got the lock. */
bool parked_lacks_lock(const struct handle *handle);

/* One of handle->parked. */
static inline struct parked *parked_of(struct waiting *waiting)
{
	return (struct parked *)waiting; /* its first member */
}

/* Frees what was parked, without an answer. The engine must have no pointer to it any more. */
void parked_free(struct parked *parked);

/* Answers F_GETLK: with the conflict, or that there is none (NULL). */
void parked_reply_lock(fuse_req_t req, const struct engine_conflict *conflict);

#endif
