/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys of locks and claims in etcd. Below the root, such as "/dlockfs", for the lock "a/b":
 *
 *     a/b/write/<session>.<slot>           an exclusive claim of dlockfs
 *     a/b/read/<session>.<slot>            a shared one
 *     a/b/write/<session>.<slot>/data      its data
 *     a/b/694d8a1c2f3b5d07                 a claim of etcdctl lock, jetcd's Lock, Go's Mutex
 *     a/b/read/1700000000000000000         a claim of RWMutex of contrib/recipes
 *     .dlockfs/held/a/b/<session>.<slot>   the marker of a claim; its text with "/data",
 *                                          and its clock with "/clock"
 *     .dlockfs/sessions/<lease>            a session
 *     .dlockfs/settled                     the mark that the root is settled (epoch.c)
 *     .dlockfs/tokens                      what is added to revisions for tokens (tokens.c)
 *     .dlockfs/hosts/<lease>.host          what its host says of itself (claim/host_entry.h)
 *     .dlockfs/runs/a/b                    a file that is kept: the runs of a job (claim/runs.h)
 *
 * and the file "a//b" (claim/file_path.h), whose lock is the one above:
 *
 *     a/b                                  its value: a line with a time, and its text
 *
 * A claim has a lease; a key without one is no claim. Claims are ordered by create revision. Mutex
 * (clientv3/concurrency) waits for every key below "a/b/" that was created before its own, a writer
 * of RWMutex for every key that was changed last before its own, a reader for those below
 * "a/b/write". So the key of a claim is written once only: its data have another key, which comes
 * later and goes with the claim. A mutex does not count as a writer for RWMutex's readers; for
 * dlockfs it does.
 *
 * A key that has no lease, or more slashes, is no claim of the lock. So a claim of a lock below is
 * no claim of the upper lock, though Mutex and RWMutex on the upper lock would wait for it.
 *
 * The value of a claim of dlockfs is a line with its name without the number. Its data are placed
 * with it.
 *
 * etcd keeps each key in its index until the next compaction, also when it is deleted, and goes
 * through all of them for each list: so the keys are few, and used again. <session> is that of the
 * claim's id, <slot> the least number from 1 on of which there is no claim in that queue (slots.c).
 *
 * A key that is not of a lock by its form is a file. One directly below "a/b/" whose
 * value is that of a file of dlockfs is no claim of the lock "a/b", though Mutex waits for it.
 *
 * The *name* of a claim (stores/store.h) ends in its create revision, as if the store had numbered
 * it:
 *
 *     _c_<uuid>-k1-__WRIT__0000004711
 *     694d8a1c2f3b5d07-mutex-0000004711
 *     1700000000000000000-read-0000004711         and "-write-"
 *
 * where what other clients have in their keys is percent-encoded, but for printable ASCII without
 * '%'. So a name is of one claim only, though keys are used again.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_STORES_ETCD_KEYS_H
#define DLOCKFS_STORES_ETCD_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/name.h"

/* Any bytes. */
struct etcd_key {
	char *bytes; /* with a NUL behind them, which does not count */
	size_t count;
};

#define ETCD_PRIVATE "/.dlockfs/"

/* All these return false when out of memory; the key is to be freed by free(key.bytes). */

/* What the keys of the lock's claims begin with; "" is above all locks. */
bool etcd_key_of_queue(struct etcd_key *ret, const char *root, const char *path);

/* The key of a file (claim/file_path.h). */
bool etcd_key_of_file(struct etcd_key *ret, const char *root, const char *path);

/* What the keys of the markers of the lock's claims begin with. */
bool etcd_key_of_markers(struct etcd_key *ret, const char *root, const char *path);

/* The key of the marker of a claim that has a slot. */
bool etcd_key_of_marker(struct etcd_key *ret, const char *root, const char *path,
			const struct claim_name *name);

/* The key of a marker's clock (mark.c). */
bool etcd_key_of_clock(struct etcd_key *ret, const struct etcd_key *marker);

/* What the keys of the session's claims in that queue begin with, in that mode; and of their
 * markers. */
bool etcd_key_of_slots(struct etcd_key *ret, const char *root, const char *path, uint64_t session,
		       enum claim_mode mode);
bool etcd_key_of_marked_slots(struct etcd_key *ret, const char *root, const char *path,
			      uint64_t session);

/* The slot in what follows etcd_key_of_slots() or etcd_key_of_marked_slots() in a key; 0: there is
 * none. */
uint16_t etcd_key_slot(const char *rest, size_t bytes);

/* The key of the session with that lease; the mark that the root is settled; and the offset of
 * tokens. */
bool etcd_key_of_session(struct etcd_key *ret, const char *root, int64_t lease);
bool etcd_key_of_mark(struct etcd_key *ret, const char *root);
bool etcd_key_of_tokens(struct etcd_key *ret, const char *root);

/* The key of a claim that has a slot. */
bool etcd_key_of_new(struct etcd_key *ret, const char *root, const char *path,
		     const struct claim_name *name);

/* What a name tells. */
struct etcd_named {
	struct etcd_key key; /* bytes NULL: no claim here has such a name, or out of memory */
	int64_t order;
	bool is_file;		 /* the key is that of a file, which has no name */
	bool is_ours;		 /* the claim is one of dlockfs, and may have data: */
	struct claim_name parts; /* then the content of the name */
};

/* The claim that has this name in the queue of the lock. The key is to be freed. */
struct etcd_named etcd_key_of_claim(const char *root, const char *path, const char *name);

/* The end of the range of keys that begin with a prefix, or of a claim and its data. To be freed;
 * NULL: out of memory. */
bool etcd_key_end(struct etcd_key *ret, const struct etcd_key *key);
bool etcd_key_of_data(struct etcd_key *ret, const struct etcd_key *claim);
bool etcd_key_end_of_claim(struct etcd_key *ret, const struct etcd_key *claim);

/* Whether the key is that of a claim's data. */
bool etcd_key_is_data(const char *rest, size_t bytes);

/* Whether what follows the claim's key is that of its data. */
bool etcd_key_is_data_alone(const char *rest, size_t bytes);

/* Whether a key is that of a claim of the lock, by what follows etcd_key_of_queue() in the key. */
bool etcd_key_is_claim(const char *rest, size_t bytes);

/* Whether a key with that lease is one of a lock, and no file of the directory, by what follows the
 * directory in the key and the form of keys above: the key of a Mutex ends in its lease, that of an
 * RWMutex in a time in nanoseconds. */
bool etcd_key_is_of_lock(const char *rest, size_t bytes, int64_t lease);

/* Reads the key of a claim, and its value. Returns the claim's name, to be freed, and its content
 * in *ret; NULL: the key is no claim of that lock, or out of memory (errno). */
char *etcd_key_claim_parse(const char *rest, size_t bytes, const char *value, size_t value_bytes,
			   int64_t revision, struct claim_name *ret);

/* The value of a claim of ours: to be freed; NULL: out of memory. */
char *etcd_key_claim_value(const struct claim_name *claim);

/* The value of a file that is made, or whose text is replaced, then: in milliseconds since 1970, by
 * the clock of the host that does it. To be freed; NULL: out of memory. */
char *etcd_key_file_value(const char *text, int64_t now_ms, bool is_new);

/* Returns where the text begins; 0: the value is not in that form, and all of it is the text. */
size_t etcd_key_file_parse(const char *value, size_t bytes, int64_t *ret_ms, bool *ret_is_new);

#endif
