/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the state of a daemon in a file without a name (memfd_create(2)) that outlives the daemon,
 * so that the next one goes on even if this one was killed between any two instructions.
 *
 * The state consists of items: members of other structs (a claim, an open file), each with some
 * lines of text (text.h). Code that changes something in those lines marks the item. A commit
 * writes all marked items as one transaction, with the answers to the kernel that are sent after
 * it: so the next daemon knows the state behind every answer, and sends an answer that was not
 * sent. The request that is being handled is in the file, too, where it was read: unless a
 * transaction says that it was handled, the next daemon handles it again.
 *
 * The file: a page with its head; the area for a request; and a log of records; one word in the
 * head says which part of the log counts. A transaction is appended, and then that word changes.
 * The part that counts begins with the oldest record that is the latest of its item. When the log
 * has grown to a multiple of the size of the state, each transaction also writes the oldest items
 * again, as many bytes as it has for changes, so that the log begins later: it does not grow
 * further, and no commit takes long because there are many items. The memory before the beginning
 * of the log is freed.
 *
 * All of it has checksums: if one does not match, nothing is read.
 *
 * Out of memory nothing is kept, which is logged, until everything could be written in one
 * transaction; or for good, if there is no memory even for the number of an item. The daemon goes
 * on. One thread.
 */
#ifndef DLOCKFS_JOURNAL_JOURNAL_H
#define DLOCKFS_JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>

struct state_journal;
struct state_item;

/* Where the lines of an item stand among all lines: places are compared from the first number on.
 */
struct state_place {
	uint64_t at[4];
};

/* The first number. */
enum {
	STATE_PLACE_PROCESS = 1, /* of the daemon itself */
	STATE_PLACE_STORE,
	STATE_PLACE_INODE,
	STATE_PLACE_STATUS,
	STATE_PLACE_HANDLE, /* and what belongs to it */
	STATE_PLACE_NUMBERS,
	STATE_PLACE_ORDER,
	STATE_PLACE_REQUEST,	/* that waits, and belongs to no open file */
	STATE_PLACE_SHARD = 16, /* the first one; another for each */
};

struct state_kind {
	struct state_place (*place)(const struct state_item *item);
	/* May write nothing. */
	void (*save)(const struct state_item *item, FILE *out);
};

/* A member of the struct that it describes. All zero: it has never been marked. */
struct state_item {
	uint32_t number;  /* in the journal, from 1; 0: it is not there */
	uint32_t changed; /* its place among those that were marked, from 1; 0: it was not */
};

/* The struct, as a pointer to it, of which the item is that member. */
#define STATE_WHOLE(item, type, member) ((type *)(void *)((char *)(item)-offsetof(type, member)))

/* Begins to keep items in the file, which is empty, or was read by state_journal_load(), or was
 * written by this process before. The next commit writes all items; until then the former content
 * of the file counts. `handled` is the request that was handled last, as the content says (0:
 * none). The descriptor becomes the journal's. Returns 0, or -errno of mmap(2) and the like, and
 * the descriptor stays the caller's. */
int state_journal_create(int descriptor, size_t request_bytes, uint64_t handled,
			 struct state_journal **ret);

/* The items must be gone, or never be marked again. */
void state_journal_destroy(struct state_journal *journal);

/* Where a request of the kernel is to be read. */
void *state_journal_request_area(const struct state_journal *journal);

int state_journal_descriptor(const struct state_journal *journal);

/* Something in the item's lines has changed, or the item is new. The journal may be NULL: nothing
 * is kept. */
void state_journal_mark(struct state_journal *journal, struct state_item *item,
			const struct state_kind *kind);

/* What is to be done with each of many items, in the order of their places. */
struct state_visit {
	FILE *out; /* it is saved there; NULL: it is marked */
	struct state_journal *journal;
};

void state_journal_visit(const struct state_visit *visit, struct state_item *item,
			 const struct state_kind *kind);

/* The item is about to be freed. The journal may be NULL. */
void state_journal_remove(struct state_journal *journal, struct state_item *item);

/* Whether anything was marked or removed since the last commit. */
bool state_journal_is_changed(const struct state_journal *journal);

/* Whether nothing is kept, after an error, for now or for good. */
bool state_journal_has_failed(const struct state_journal *journal);

/* Writes the marked items and the answers. The caller sends the answers once this returns, even
 * after an error. `handled` is the number of the request that led to them; 0: no request did. Every
 * marked item has to be in a consistent state. */
void state_journal_commit(struct state_journal *journal, uint64_t handled,
			  const struct iovec *answers, size_t count);

/* Notes that the next daemon is to begin anew. */
void state_journal_end(struct state_journal *journal);

/* Reading */

struct state_journal_content {
	FILE *text;    /* the lines of all items, in their order; and "end": to be read, once */
	void *request; /* the area: the kernel's latest request, unless that is `handled` */
	size_t request_bytes;  /* of the area */
	uint64_t handled;      /* the request that was handled last; 0: there was none */
	struct iovec *answers; /* of the latest transaction: they may not have been sent */
	size_t answer_count;
};

/* Reads what a daemon has kept, and leaves the file as it is. The text is read out of the file:
 * that has to be done before another journal commits to it. Returns 0; or -errno with one line in
 * `why` and nothing to be freed: -ENODATA if nothing was kept, -EINVAL if another version wrote it,
 * -EBADMSG if a checksum does not match. */
int state_journal_load(int descriptor, struct state_journal_content *ret, char *why,
		       size_t why_bytes);

void state_journal_content_finish(struct state_journal_content *content);

/* The guards (fs/kernel/notifier_process.h) of all processes that have used the file. The first
 * function counts one more. Both return how many there have been, or -errno. */
int state_journal_count_guard(int descriptor);
int state_journal_guards(int descriptor);

/* Notes deadline_read(); INT64_MAX: nothing is held. The journal may be NULL. */
void state_journal_set_deadline(struct state_journal *journal, int64_t time_ms);

/* Counts an attempt to go on with the journal. Returns how many attempts there were since the last
 * call of state_journal_settle(), or -errno. */
int state_journal_count_attempt(int descriptor);
void state_journal_settle(struct state_journal *journal);

#endif
