/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether what a server of ZooKeeper sends is well-formed. The client library (3.8 and 3.9) copies
 * and frees by the lengths and counts of an answer without looking whether they fit, so that one
 * wrong answer makes it write to foreign memory. Hence everything is looked at before the library
 * has it whole: the frames, and the shape of each answer by the request that it belongs to
 * (zookeeper.jute of the servers' source has the shapes). What an answer says may still be a lie.
 *
 * An answer is well-formed if:
 * - its frame is neither empty nor longer than ZOOKEEPER_FRAME_MAX_BYTES;
 * - it belongs to the oldest request without an answer, or to one of those that are answered out of
 *   order (a ping, an identity, a list of watches), or it is an event that a watch was set for;
 * - each length and each count is within the frame; names, paths and identities are there (not
 *   NULL), names are those of one child, and paths are absolute;
 * - a transaction has one result for each operation: all succeed, or none does and one says why;
 * - the session is one that a client can go on with: it has a number and a password of 16 bytes,
 *   can be written to, and its timeout is from ZOOKEEPER_TIMEOUT_MIN_MS to
 *   ZOOKEEPER_TIMEOUT_MAX_MS.
 *
 * No I/O and no clock. A wire belongs to one thread at a time; nothing blocks.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_WIRE_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A list of 300,000 claims has 20 MB. The servers themselves limit what clients send, not what they
 * answer. */
#define ZOOKEEPER_FRAME_MAX_BYTES (32 << 20)
#define ZOOKEEPER_TIMEOUT_MIN_MS  100
#define ZOOKEEPER_TIMEOUT_MAX_MS  86400000 /* the library multiplies it by 2, in an int */

/* A request without an answer. */
struct zookeeper_request;

/* A stream that is cut into frames, each with its length in front. */
struct zookeeper_frames {
	unsigned char prefix[4];
	size_t have;	      /* bytes of the present frame, the prefix included */
	size_t bytes;	      /* the length of the frame, once the prefix is there */
	unsigned char *frame; /* its beginning, if it does not come in one piece */
};

/* A connection: what was sent, and what has come. */
struct zookeeper_wire {
	struct zookeeper_frames out, in;
	bool introduced;  /* the client has sent the first frame, which asks for a session */
	bool accepted;	  /* and the server has answered it */
	int64_t session;  /* that was asked for; 0: a new one */
	bool starved;	  /* out of memory */
	uint64_t watches; /* that were set, less the events */
	unsigned pings;	  /* without an answer */
	unsigned auths;
	unsigned watch_lists;
	/* The others, in a ring, the oldest one first. */
	struct zookeeper_request *requests;
	size_t room, first, count;
};

/* A new connection. Until finish() the wire owns memory. */
void zookeeper_wire_init(struct zookeeper_wire *wire);
void zookeeper_wire_finish(struct zookeeper_wire *wire);

/* The client has sent these bytes, the next ones of the connection. */
void zookeeper_wire_sent(struct zookeeper_wire *wire, const void *bytes, size_t count);

/* The server has sent these bytes, the next ones. Returns NULL; or what is wrong with them, as a
 * constant, for the log: then no part of them may reach the client, and the connection has to end.
 */
const char *zookeeper_wire_received(struct zookeeper_wire *wire, const void *bytes, size_t count);

#endif
