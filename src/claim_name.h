/* SPDX-License-Identifier: Apache-2.0
 *
 * How a claim is named in the store, and in which order claims stand.
 *
 * A claim is a sequential ephemeral znode under the znode of its lock. It is named as Apache
 * Curator's InterProcessReadWriteLock names its own, so that both exclude each other on one path:
 *
 *     _c_<uuid>-__WRIT__<number>      exclusive
 *     _c_<uuid>-__READ__<number>      shared
 *
 * The number comes from ZooKeeper: a signed 32-bit counter of the parent znode, printed with
 * "%010d", that may wrap and then turns negative. So it has ten digits, or a minus and ten digits
 * ("-2147483648" to "-1000000000"), or a minus and nine digits ("-999999999" to "-000000001").
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
 * the claims placed in it. Both zero: not a claim of dlockfs. Curator names its read-write locks in
 * the very same form, with a random uuid: only comparing with an id of one's own says anything. */
struct claim_id {
	uint64_t session;
	uint64_t number;
};

/* The longest name that claim_name_format() writes, without the digits, with the final NUL. */
#define CLAIM_NAME_PREFIX_BYTES 56

/* Writes the name of the claim up to the sequence number, which the store appends. The uuid is
 * written as 8-4-4-4-12 hex digits of session then number. */
void claim_name_format(char name[CLAIM_NAME_PREFIX_BYTES], struct claim_id id,
		       enum claim_mode mode);

/* What a child of a lock's znode is. Reads liberally, so that claims of other clients count: every
 * name that ends in a number as above is a claim, exclusive unless the text before the number ends
 * in a marker of a shared one ("__READ__", "__rlock__", "read-"). The id is read only from the
 * exact form that claim_name_format() writes, and is zero otherwise.
 *
 * Some clients put a minus before the number as a separator ("lock-0000000012"). Before ten digits
 * it is a sign only if they make at least 1000000000 and it stands alone, or after another minus or
 * an underscore ("lock--1500000000", "__WRIT__-1500000000"), or the number would not fit without it
 * ("-2147483648"). Before nine digits it is always a sign.
 *
 * Returns false, and leaves the outputs untouched, if the name is no claim. */
bool claim_name_parse(const char *name, struct claim_id *ret_id, enum claim_mode *ret_mode,
		      int32_t *ret_sequence);

/* Orders claims of one lock as they stand in its queue: by sequence number, which may wrap (RFC
 * 1982 serial numbers; exactly 2^31 apart: the smaller one first), then by name. Negative, zero or
 * positive as for strcmp(3). */
int claim_name_compare(int32_t sequence_a, const char *name_a, int32_t sequence_b,
		       const char *name_b);

#endif
