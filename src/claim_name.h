/* SPDX-License-Identifier: Apache-2.0
 *
 * How a claim is named in the store, and in which order claims stand.
 *
 * A claim is a sequential ephemeral znode under the znode of its lock. It is named as Apache
 * Curator's InterProcessReadWriteLock names its own, so that both exclude each other on one path:
 *
 *     _c_<uuid>-__WRIT__<10 digits>      exclusive
 *     _c_<uuid>-__READ__<10 digits>      shared
 *
 * The digits come from ZooKeeper: a signed 32-bit counter of the parent znode, printed with
 * "%010d", that may wrap and then turns negative ("-2147483648").
 *
 * Pure functions: no I/O, no allocation, any thread.
 */
#ifndef DLOCKFS_CLAIM_NAME_H
#define DLOCKFS_CLAIM_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum claim_mode { CLAIM_SHARED, CLAIM_EXCLUSIVE };

/* Tells a claim of dlockfs apart from every other. `session` is random and drawn anew for each
 * session with the store, so a claim that carries it was created in that session; `number` counts
 * the claims placed in it. Both zero: not a claim of dlockfs. */
struct claim_id {
	uint64_t session;
	uint64_t number;
};

/* The longest name that claim_name_format() writes, without the digits, with the final NUL. */
#define CLAIM_NAME_PREFIX_BYTES 56

/* Writes the name of the claim up to the sequence number, which the store appends. The uuid is
 * written as 8-4-4-4-12 hex digits of session then number. */
void claim_name_format(char name[CLAIM_NAME_PREFIX_BYTES], struct claim_id id, enum claim_mode mode);

/* What a child of a lock's znode is. Reads liberally, so that claims of other clients count:
 * every name that ends in ten digits with an optional minus before them is a claim, exclusive unless
 * the text before the number ends in a marker of a shared one ("__READ__", "__rlock__", "read-").
 * A minus counts as a sign only where the number it makes fits 32 bits and is negative, and as the
 * separator of "read-" or "lock-" otherwise (Go's and C's clients write "lock-0000000012").
 *
 * Returns false, and leaves the outputs untouched, if the name is no claim. */
bool claim_name_parse(const char *name, struct claim_id *ret_id, enum claim_mode *ret_mode,
		      int32_t *ret_sequence);

/* Orders claims of one lock as they stand in its queue: by sequence number, which may wrap (RFC
 * 1982 serial numbers), then by name. Negative, zero or positive as for strcmp(3). */
int claim_name_compare(int32_t sequence_a, const char *name_a, int32_t sequence_b,
		       const char *name_b);

#endif
