/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of a claim: lines of "key=value", for people and for other hosts. It begins with the
 * version of this format:
 *
 *     format=1
 *     host=...            and more about who asked, by the one who asked (fs/claim_text.c)
 *     ranges=w0-63,r100-199,w4096-9223372036854775807
 *     waits=12
 *
 * `ranges` is there for record locks: what the claim covers, in order, "w" exclusive and "r"
 * shared, both offsets inclusive. Always a part of the span in its name, and it only ever becomes
 * less. `waits`: the claim is not held, and the one of that number blocks it, or did; one that may
 * be in the way of others says so (engine_queue.c). Without it, nothing is said about that.
 *
 * Unknown lines are skipped. Data of another format, or without a valid first line, says nothing
 * here: the claim covers the whole span of its name in the mode of its name. Any thread.
 */
#ifndef DLOCKFS_CLAIM_DATA_H
#define DLOCKFS_CLAIM_DATA_H

#include "range_set.h"

struct claim_data {
	bool has_ranges;
	struct range_set ranges; /* to be freed by the caller if has_ranges */
	bool waits;
	int32_t waits_for; /* a sequence number */
};

/* Returns the text of the asker (its lines, "format=1" first, each ended by a newline), followed by
 * the lines for what *data has. To be freed by the caller; NULL: out of memory. */
char *claim_data_format(const char *asker, const struct claim_data *data);

/* Returns 0 and what the text says in *ret, or -ENOMEM. A line whose value makes no sense (no
 * ranges, or ranges out of order, overlapping, without an end, beyond the offsets; a number that is
 * none) is as if it were not there. */
int claim_data_parse(const char *text, struct claim_data *ret);

#endif
