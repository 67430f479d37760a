/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of a journal's file, for state_journal.c, which writes it, and state_journal_read.c.
 * Numbers are as this machine has them: only its next daemon reads them.
 *
 *   head          a page
 *   area          for a request
 *   log           records, one behind the other; what does not count any more takes no memory
 */
#ifndef DLOCKFS_STATE_JOURNAL_FORM_H
#define DLOCKFS_STATE_JOURNAL_FORM_H

#include <stdatomic.h>

#include "state_journal.h"

/* Another one for each change. */
#define STATE_JOURNAL_FORMAT "dlockfs state 2"

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
};

enum { EXTENTS = 2 };

struct head {
	char format[16];
	uint32_t request_bytes;
	atomic_uint attempts;
	atomic_uint current; /* which extent counts, from 1; 0: none does */
	struct extent extents[EXTENTS];
};

/* In a transaction: those gone, then those changed, the answers, and those that are written again.
 */
struct record {
	uint32_t number; /* 0: an answer */
	uint32_t bytes;	 /* of its text, behind it; of an item: 0: there is nothing to say */
	struct state_place place;
};

#endif
