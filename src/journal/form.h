/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of a journal's file, for journal.c, which writes it, and read.c. Numbers have this
 * machine's byte order: only the next daemon of this machine reads them.
 *
 *   head          a page
 *   area          for a request
 *   log           records, one behind the other; what does not count any more takes no memory
 *
 * After a kill the file has all writes to memory up to one instruction, in the order of the
 * program, and none after it: shared memory is not written back later, as a disk is. So a reader
 * finds the extent that `current` points to whole, and all that was appended before. `current`
 * never points to anything torn: a transaction that was not published, or an extent that was just
 * being written.
 *
 * The checksums are for faults of this program or of the memory, which a kill cannot cause. Each
 * record has one, which includes the record's place in the file, and so has each extent. If one
 * does not match, the whole journal is refused. The area has none: the kernel writes it.
 */
#ifndef DLOCKFS_JOURNAL_FORM_H
#define DLOCKFS_JOURNAL_FORM_H

#include <stdatomic.h>

#include "journal/deadline.h"
#include "journal/journal.h"

/* Has to change with each change of the form. */
#define STATE_JOURNAL_FORMAT "dlockfs state 3"

#define HEAD_BYTES     4096
#define AREA_BYTES_MAX ((size_t)1 << 24)

/* The log never begins again at the front: the offsets last for a century at a gigabyte a second.
 */
#define LOG_START ((uint64_t)1 << 25)
#define LOG_END	  ((uint64_t)1 << 62)

/* The part of the log that counts, by offsets in the file. */
struct extent {
	uint64_t start;	 /* the oldest record of an item that is the latest of that */
	uint64_t latest; /* where the latest transaction begins */
	uint64_t end;	 /* of that */
	uint64_t handled;
	uint64_t serial;	/* the later extent has the greater one */
	uint64_t request_bytes; /* of the area */
	uint64_t checksum;	/* of all before */
};

enum { EXTENTS = 2 };

struct head {
	char format[16];
	atomic_uint attempts;
	atomic_uint current; /* which extent counts, from 1; 0: none */
	struct extent extents[EXTENTS];
	atomic_uint guards; /* not a part of the state: state_journal_count_guard() */
};

_Static_assert(sizeof(struct head) <= DEADLINE_OFFSET, "the last word of the head is the deadline");

/* The order in a transaction: items that are gone, changed items, answers, items that are written
 * again.
 */
struct record {
	uint32_t number;   /* 0: an answer */
	uint32_t bytes;	   /* of the text behind it; 0 for an item: it is gone, or has no lines */
	uint64_t checksum; /* of this, with 0 here, and the text */
	struct state_place place;
};

/* Of a record at that place of the file. */
uint64_t state_journal_sum_record(const struct record *record, const char *text, uint64_t at);

uint64_t state_journal_sum_extent(const struct extent *extent);

/* Which extent counts, from 1: the one that `current` points to; or the other one, if it is later
 * and whole, as the process may have been killed just before `current` was changed. 0: none;
 * -EBADMSG: the checksum of the one that `current` points to does not match. */
int state_journal_find_extent(const struct head *head);

#endif
