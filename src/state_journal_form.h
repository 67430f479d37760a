/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of a journal's file, for state_journal.c, which writes it, and state_journal_read.c.
 * Numbers are as this machine has them: only its next daemon reads them.
 *
 *   head          a page
 *   area          for a request
 *   two regions   of transactions, one behind the other
 */
#ifndef DLOCKFS_STATE_JOURNAL_FORM_H
#define DLOCKFS_STATE_JOURNAL_FORM_H

#include <stdatomic.h>

#include "state_journal.h"

/* Another one for each change. */
#define STATE_JOURNAL_FORMAT "dlockfs state 1"

#define HEAD_BYTES     4096
#define AREA_BYTES_MAX ((size_t)1 << 24)

/* Regions are far apart; what was never written takes no memory. */
#define REGION_BYTES ((uint64_t)1 << 40)

struct head {
	char format[16];
	uint32_t request_bytes;
	atomic_uint attempts;
	atomic_ullong current; /* the bytes in the region that counts, times two, plus its number */
};

struct transaction {
	uint64_t bytes; /* of its records */
	uint64_t handled;
};

/* In a transaction: those gone, then the others, then the answers. */
struct record {
	uint32_t number; /* 0: an answer */
	uint32_t bytes;	 /* of its text, behind it; of an item: 0: there is nothing to say */
	struct state_place place;
};

/* That of 2 is the end of the file. */
static inline uint64_t region_start(unsigned int region)
{
	return (1 + region) * REGION_BYTES;
}

#endif
