/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a request may be. Servers answer one that is longer than their jute.maxbuffer by closing
 * the connection, without a word of why, and do not tell what that limit is. Sent again and again,
 * it would cost all locks of the host. So the store learns: a request that is longer than any that
 * was answered, and is lost with the connection PACKETS_LOSSES times in a row, is taken for the
 * reason. From then on none of that length is sent, for PACKETS_FORGET_MS.
 *
 * Several requests may be lost with one connection. The longest of them is its suspect. Of the
 * suspects of several connections the shortest counts: the request that was sent over each of them
 * is not longer than that.
 *
 * Requests up to PACKETS_LEAST_BYTES are never suspected: those that are shorter are all others.
 *
 * No I/O and no clock.
 */
#ifndef DLOCKFS_STORES_ZOOKEEPER_SESSION_PACKETS_H
#define DLOCKFS_STORES_ZOOKEEPER_SESSION_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKETS_LEAST_BYTES ((size_t)4096)
#define PACKETS_LOSSES	    3
#define PACKETS_FORGET_MS   3600000

/* Zero at first. Lengths are those of what the caller varies: data and path. */
struct packets {
	size_t answered; /* the longest that was answered */
	size_t lost;	 /* the longest that was lost since the connection was made; 0: none */
	size_t suspect;	 /* the shortest such one of the connections before; 0: there is none */
	unsigned losses; /* connections that it was lost with */
	size_t limit;	 /* none of that length is sent; 0: none is known */
	int64_t until_ms;
};

/* There is a connection again. Returns the limit if it was found by that, else 0. */
size_t packets_connected(struct packets *packets, int64_t now_ms);

/* A request was answered, or was lost with the connection. */
void packets_note(struct packets *packets, size_t bytes, bool answered);

/* Whether such a request is not to be sent. */
bool packets_refuse(const struct packets *packets, size_t bytes, int64_t now_ms);

#endif
