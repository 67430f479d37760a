/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of a claim: lines of "key=value", for people and for other hosts. It begins with the
 * version of this format:
 *
 *     format=1
 *     host=...            and more about who asked, by the one who asked (fs/files/claim_text.c)
 *     ranges=w0-63,r100-199,w4096-9223372036854775807
 *     holds=r0-9,w31-31
 *     waits=12
 *     exact=yes
 *     keep=yes
 *     requeue=17
 *     revoke=root@web1
 *
 * `ranges` is there for record locks: what the claim covers, in order, "w" exclusive and "r"
 * shared, both offsets inclusive. Always a part of the span in its name, and it only ever becomes
 * less. `waits`: the claim is not held, and the one of that number blocks it, or did; one that may
 * be in the way of others says so (engine/queue.c). Without it, nothing is said about that.
 * `holds`, of a claim with an anchor (name.h): what its owner held when the claim was placed;
 * never changes. The claim takes precedence over those that wait for one of these ranges. `exact`:
 * the host of the claim compares with the `holds` of others; one that does not say so only knows
 * the span in the name, and so that is what counts between the two (engine/precedence.c).
 * `keep`: perhaps nobody uses the claim, and its host keeps it until another one waits behind it
 * (engine/lead.c); what the asker says of itself is about one who has used it.
 * `requeue` is added to a claim that waits, by the host of the claim of that number, which waits
 * for it in a cycle (engine/deadlock.c): it is to be queued again, and until its host has done
 * that, everybody goes before it. `revoke` is added by whoever asks the holder to release the lock,
 * `break` by whoever is about to take the claim away: both say who that is, for logs, and are read
 * by the holder's host.
 *
 * Unknown lines are skipped. Data of another format, or without a valid first line, says nothing
 * here: the claim covers the whole span of its name in the mode of its name. Any thread.
 */
#ifndef DLOCKFS_CLAIM_DATA_H
#define DLOCKFS_CLAIM_DATA_H

#include "claim/range_set.h"

/* What the Revoker of Apache Curator puts in place of the data of a claim. */
#define CLAIM_DATA_CURATOR_REVOKE "__REVOKE__"

#define CLAIM_DATA_WHO_BYTES 128

/* More than dlockfs ever writes. With an order added, and the longest path, it stays below the 1 MB
 * that ZooKeeper takes (jute.maxbuffer): the server answers more by closing the connection. */
#define CLAIM_DATA_BYTES_MAX (768 * 1024)

struct claim_data {
	bool has_ranges;
	struct range_set ranges; /* to be freed by the caller if has_ranges */
	bool has_holds;
	struct range_set holds; /* likewise */
	bool waits;
	int32_t waits_for; /* a sequence number */
	bool exact;
	bool keeps;
	bool requeue;
	bool valid; /* parsed: of this format; else it says nothing */
};

/* Frees what parsed data has. */
void claim_data_finish(struct claim_data *data);

/* What somebody who steers from outside has put into the data of a claim. */
enum claim_order { CLAIM_ORDER_NONE, CLAIM_ORDER_REVOKE, CLAIM_ORDER_BREAK };

/* Returns the text of the asker (its lines, "format=1" first, each ended by a newline), followed by
 * the lines for what *data has. To be freed by the caller; NULL: out of memory. */
char *claim_data_format(const char *asker, const struct claim_data *data);

/* Returns 0 and what the text says in *ret, or -ENOMEM. A line whose value makes no sense (no
 * ranges, or ranges out of order, overlapping, without an end, beyond the offsets; a number that is
 * none) is as if it were not there. */
int claim_data_parse(const char *text, struct claim_data *ret);

/* What is wanted of the holder, and in `who` by whom: printable ASCII without spaces. A break wins
 * over a revoke. */
enum claim_order claim_data_order(const char *text, char who[CLAIM_DATA_WHO_BYTES]);

/* The user of the process that asked. Returns false if the data does not say. */
bool claim_data_uid(const char *text, uint32_t *ret);

/* The data of a claim with the line added that it is to be queued again, because of the claim of
 * that number. To be freed; NULL: out of memory. */
char *claim_data_add_requeue(const char *text, int32_t sequence);

/* The data of a claim with the line of an order added. Of a claim whose data is of another format,
 * or longer than CLAIM_DATA_BYTES_MAX, what Curator would put there. To be freed; NULL: out of
 * memory, or a break of such a claim, for which there is no word. */
char *claim_data_add_order(const char *text, enum claim_order order, const char *who);

#endif
