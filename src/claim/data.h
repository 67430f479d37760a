/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of a claim: lines of "key=value", for people and for other hosts. It begins with the
 * version of this format:
 *
 *     format=1
 *     host=...            and more about the caller (fs/files/claim_text.c)
 *     ranges=w0-63,r100-199,w4096-9223372036854775807
 *     holds=r0-9,w31-31
 *     waits=12
 *     keep=yes
 *     rest=1795305254
 *     slots=8
 *     slot=3
 *     trip=20
 *     peer=192.0.2.7:4711/dGVzdA
 *     hold=web1
 *     for=3600000
 *     token=4711
 *     requeue=17
 *     revoke=root@web1
 *
 * `ranges`, of record locks: the exact ranges, in order, "w" exclusive and "r" shared, both offsets
 * inclusive. They are within the span in the claim's name, and only ever shrink.
 *
 * `waits`: the claim is not held. The claim of that number blocks it, or has blocked it. A claim
 * that may block others writes this (engine/settle.c). Without the line the claim may be held or
 * wait.
 *
 * `holds`, of a claim with an anchor (name.h): the ranges that its owner held when the claim was
 * placed; never changes. The claim takes precedence over claims that wait for one of these ranges.
 *
 * `keep`: perhaps nobody uses the claim, and its host keeps it until another claim waits behind it
 * (engine/handoff.c). The lines about the caller are of one that has used it.
 *
 * `rest`: nobody uses the claim, and its host keeps it until then, in seconds since 1970 by the
 * clock of that host, for people only (engine/books/term.h). The lines about the caller are of the
 * one that has released it.
 *
 * `slots`: so many may hold the lock at once, by the configuration of the claim's host when the
 * claim was placed; never changes. The claim takes a slot, and `slot` is its number, from 0 on: it
 * is written with the grant, and never changes. Without the line `slots` it takes none
 * (engine/books/slots.h).
 *
 * `trip`: how many milliseconds a write of the claim's host takes, in quiet, to the store and back.
 * The release of the claim may be on its way for so long (engine/books/grace.h). Without the line
 * it is less than one millisecond, or not known.
 *
 * `peer`: where the daemon of the claim's host listens for those of other hosts, as it says itself
 * among the lines about the caller: printable ASCII without spaces. Without the line nobody asks it
 * for anything (engine/books/bequest.h).
 *
 * `hold`, of a hold (engine/books/hold.h): its owner, encoded as base/escape.h says. `for`: after
 * so many milliseconds it is over; without the line it stands until somebody takes it away.
 * `token`: what its maker was told (dlockfs.h); never changes. The lines about the caller are of
 * its maker.
 *
 * `requeue` is added to a claim that waits, by the host of the claim of that number, which waits
 * for it in a cycle (engine/records/deadlock.c). The claim is to be queued again; until its host
 * has done that, all other claims go before it.
 *
 * `revoke` is added by a host that asks the holder to release the lock, `break` by one that is
 * about to take the claim away. Both name the user and the host, for logs, and are read by the
 * holder's host.
 *
 * Unknown lines are skipped. Data of another format, or without a valid first line, counts as
 * empty: the claim covers the whole span of its name in the mode of its name. Any thread.
 */
#ifndef DLOCKFS_CLAIM_DATA_H
#define DLOCKFS_CLAIM_DATA_H

#include "claim/range_set.h"

/* What the Revoker of Apache Curator puts in place of the data of a claim. */
#define CLAIM_DATA_CURATOR_REVOKE "__REVOKE__"

#define CLAIM_DATA_WHO_BYTES 128

/* The longest value of `peer`, with its NUL; a longer one is ignored. */
#define CLAIM_DATA_PEER_BYTES 128

/* More than dlockfs ever writes. With an order added, and the longest path, it stays below the 1 MB
 * that ZooKeeper takes (jute.maxbuffer): the server answers more by closing the connection. */
#define CLAIM_DATA_BYTES_MAX (768 * 1024)

/* The most slots that a lock has. */
#define CLAIM_DATA_SLOTS_MAX 4096

/* The longest trip that is believed. */
#define CLAIM_DATA_TRIP_MAX_MS 1000

struct claim_data {
	bool has_ranges;
	struct range_set ranges; /* to be freed by the caller if has_ranges */
	bool has_holds;
	struct range_set holds; /* likewise */
	bool waits;
	int64_t waits_for; /* an order */
	bool keeps;
	int64_t rest;	 /* 0: it does not rest */
	int64_t trip_ms; /* 0: not known */
	uint32_t slots;	 /* 0: it takes none */
	int slot;	 /* -1: it has none yet */
	bool requeue;
	int64_t for_ms; /* 0: for ever; read, and never written by claim_data_format() */
	char peer[CLAIM_DATA_PEER_BYTES]; /* empty: there is none; read, and never written */
	bool valid;			  /* parsed: of this format; else it says nothing */
};

/* Frees what parsed data has. */
void claim_data_finish(struct claim_data *data);

/* An order that somebody has put into the data of a claim, from outside. */
enum claim_order { CLAIM_ORDER_NONE, CLAIM_ORDER_REVOKE, CLAIM_ORDER_BREAK };

/* Returns the text about the caller (lines that end in a newline, "format=1" first), followed by
 * the lines of the members that *data has. To be freed by the caller; NULL: out of memory. */
char *claim_data_format(const char *asker, const struct claim_data *data);

/* Returns 0 and the content of the text in *ret, or -ENOMEM. A line whose value makes no sense (no
 * ranges, or ranges out of order, overlapping, without an end, beyond the offsets; a malformed
 * number) is ignored. */
int claim_data_parse(const char *text, struct claim_data *ret);

/* The order to the holder, and in `who` its sender: printable ASCII without spaces. A break wins
 * over a revoke. */
enum claim_order claim_data_order(const char *text, char who[CLAIM_DATA_WHO_BYTES]);

/* The user of the caller. Returns false if the data does not name one. */
bool claim_data_uid(const char *text, uint32_t *ret);

/* The caller in words for logs, "process 4711 (backup)"; "a process" if the data says no more. */
void claim_data_words(const char *text, char words[CLAIM_DATA_WHO_BYTES]);

/* The longest time of a hold, a year. */
#define CLAIM_DATA_FOR_MAX_MS (INT64_C(366) * 24 * 3600 * 1000)

/* The lines of a hold, to follow those of claim_data_format(): its owner, encoded; for_ms 0: for
 * ever. To be freed; NULL: out of memory. */
char *claim_data_hold(const char *owner, int64_t for_ms, uint64_t token);

/* The data of a hold with another time, 0: for ever. To be freed; NULL: out of memory. */
char *claim_data_set_for(const char *text, int64_t for_ms);

/* The data of a claim with a line added that asks its host to queue it again, because of the claim
 * of that order. To be freed; NULL: out of memory. */
char *claim_data_add_requeue(const char *text, int64_t order);

/* The data of a claim with the line of an order added. If the data is of another format, or longer
 * than CLAIM_DATA_BYTES_MAX, the text that Curator would put there. To be freed; NULL: out of
 * memory, or a break of such a claim, for which Curator has no text. */
char *claim_data_add_order(const char *text, enum claim_order order, const char *who);

#endif
