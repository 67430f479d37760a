/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of a Redis server (RESP 2), made by hiredis' reader from the bytes that come. Nobody
 * trusts the server: a reply has at most REPLY_ELEMENTS_MAX elements, which have none themselves,
 * and nothing is allocated for what it announces, but only for what has come, REPLY_BYTES_MAX at
 * most. Any other reply is an error, after which the connection is of no use. hiredis' own objects
 * have no such bounds; up to 1.0.0 its reader multiplies what an array announces without looking
 * (CVE-2021-32765). So it is given functions of ours, which make no objects.
 *
 * Does no I/O. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_WIRE_REPLY_H
#define DLOCKFS_STORES_REDIS_WIRE_REPLY_H

#include <stddef.h>
#include <stdint.h>

enum { REPLY_ELEMENTS_MAX = 3, REPLY_BYTES_MAX = 128 * 1024 };

enum reply_kind { REPLY_NIL, REPLY_STATUS, REPLY_ERROR, REPLY_STRING, REPLY_INTEGER, REPLY_ARRAY };

struct reply_value {
	enum reply_kind kind;
	int64_t integer;
	char *text; /* STATUS, ERROR, STRING: any bytes, and a NUL behind them; else NULL */
	size_t bytes;
};

struct reply {
	struct reply_value value;
	struct reply_value elements[REPLY_ELEMENTS_MAX]; /* of an ARRAY */
	size_t count;
};

struct reply_reader;

/* Returns NULL when out of memory. */
struct reply_reader *reply_reader_create(void);
void reply_reader_destroy(struct reply_reader *reader); /* NULL is fine */

/* Takes bytes that have come; all replies are to be taken out before more is given. Returns 0,
 * -ENOMEM or -EPROTO. */
int reply_reader_give(struct reply_reader *reader, const char *data, size_t bytes);

/* The next reply, which lives until the next call: *ret is NULL if there is none yet. Returns 0;
 * -EPROTO: what has come is no reply, or one that is too large. */
int reply_reader_take(struct reply_reader *reader, const struct reply **ret);

#endif
