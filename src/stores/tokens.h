/* SPDX-License-Identifier: Apache-2.0
 *
 * Fencing tokens that go on growing when the service has gone back. A token is the sum of two
 * numbers: the stamp of a change, which the service gives, and the *offset*, which stands beside
 * the locks in the service and is 0 until it has gone back once. All hosts add the offset of the
 * moment of the change, so tokens grow as stamps do.
 *
 * Each host knows a *floor*: the greatest token that can have been told before the service was as
 * this host has seen it. The floor outlives the process, with the session. A host that finds the
 * service below its floor raises the offset, by comparing and setting it, and tells no token that
 * is not above its floor. What others have seen beyond that, up to TOKENS_MARGIN, is made up for
 * by raising it further.
 *
 *   token ^            /  lost with the set-back
 *         |           /                          . after the offset was raised
 *   floor +----------/-------------------- TOKENS_MARGIN
 *         |        /   |
 *         |      /     |  / without an offset
 *         +----/-------+/------------------------------> time
 *                   set back
 *
 * A host that has seen nothing of the service before the set-back cannot know of it, until a host
 * that has seen more connects.
 *
 * Pure functions, any thread.
 */
#ifndef DLOCKFS_STORES_TOKENS_H
#define DLOCKFS_STORES_TOKENS_H

#include <stddef.h>
#include <stdint.h>

/* How far others can have seen the service go beyond what this host has: 256 elections of
 * ZooKeeper, whose zxid has the epoch from its bit 32 on; years of etcd's revisions. There is room
 * for four million such steps. */
#define TOKENS_MARGIN ((int64_t)1 << 40)

/* Nothing greater is taken for an offset: what is told has 63 bits. */
#define TOKENS_OFFSET_MAX (INT64_MAX / 2)

enum { TOKENS_TEXT_BYTES = 20 };

struct store_tokens {
	int64_t offset; /* as it was read last, by the store */
	int64_t floor;	/* as it was noted last */
};

/* The floor, if the service has been seen as far as `seen`, a stamp. */
int64_t tokens_floor(const struct store_tokens *tokens, int64_t seen);

/* The floor is that from now on, whatever becomes of the offset and of the service. */
void tokens_note(struct store_tokens *tokens, int64_t seen);

/* The token of a change, by its stamp and the offset of that moment; 0: that is to be raised first.
 */
int64_t tokens_make(const struct store_tokens *tokens, int64_t stamp);

/* To what the offset is to be raised in a service that has come as far as `reached`; 0: it is not.
 */
int64_t tokens_raise(const struct store_tokens *tokens, int64_t reached);

/* The offset in a text of digits, up to its end or that of its line; 0: it is none. */
int64_t tokens_parse(const char *text, size_t bytes);

#endif
