/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of a journal's file, for journal.c, which writes it, and read.c. Numbers are as this
 * machine has them: only its next daemon reads them.
 *
 *   head          a page
 *   area          for a request
 *   log           records, one behind the other; what does not count any more takes no memory
 *
 * A kill leaves the stores of this process up to one instruction, in the order of the program, and
 * none behind that one: memory that is shared is not written back later, as a disk is. So a reader
 * finds a whole extent wherever `current` shows to it, and all that was appended before. What is
 * torn is never shown to: the rest of a transaction that was not published, and an extent that was
 * just being written.
 *
 * The checksums are for what no kill can do: a fault of this program or of the memory. Each record
 * has one, which counts where in the file the record is, and each extent. What does not verify is
 * refused as a whole. The area has none: the kernel writes it.
 */
#ifndef DLOCKFS_JOURNAL_FORM_H
#define DLOCKFS_JOURNAL_FORM_H

#include <stdatomic.h>

#include "journal/journal.h"

/* Another one for each change. */
#define STATE_JOURNAL_FORMAT "dlockfs state 3"

#define HEAD_BYTES     4096
#define AREA_BYTES_MAX ((size_t)1 << 24)

/* The log goes on and on: at a gigabyte a second for a century. */
#define LOG_START ((uint64_t)1 << 25)
#define LOG_END	  ((uint64_t)1 << 62)

/* What of the log counts, by where in the file it is. */
struct extent {
	uint64_t start;	 /* the oldest record of an item that is the latest of that */
	uint64_t latest; /* where the latest transaction begins */
	uint64_t end;	 /* of that */
	uint64_t handled;
	uint64_t serial;	/* the later one is greater */
	uint64_t request_bytes; /* of the area */
	uint64_t checksum;	/* of all before */
};

enum { EXTENTS = 2 };

struct head {
	char format[16];
	atomic_uint attempts;
	atomic_uint current; /* which extent counts, from 1; 0: none does */
	struct extent extents[EXTENTS];
	atomic_uint guards; /* no part of what is kept: state_journal_count_guard() */
};

/* In a transaction: those gone, then those changed, the answers, and those that are written again.
 */
struct record {
	uint32_t number;   /* 0: an answer */
	uint32_t bytes;	   /* of its text, behind it; of an item: 0: there is nothing to say */
	uint64_t checksum; /* of this, with 0 here, and the text */
	struct state_place place;
};

/* Of a record at that place of the file. */
uint64_t state_journal_sum_record(const struct record *record, const char *text, uint64_t at);

uint64_t state_journal_sum_extent(const struct extent *extent);

/* Which extent counts, from 1: the one that is shown to; or the other one, if that is later, and
 * whole: this process was killed just before it was shown to. 0: none does; -EBADMSG: the one that
 * is shown to does not verify. */
int state_journal_find_extent(const struct head *head);

#endif
