/* SPDX-License-Identifier: Apache-2.0
 *
 * The offset of tokens (stores/tokens.h), in a key of its own; tokens.c has the rules. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_TOKENS_H
#define DLOCKFS_STORES_ETCD_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/tokens.h"

struct store_etcd;

struct etcd_tokens {
	struct store_tokens known;
	int64_t version; /* of the key of their offset; 0: there is none */
	bool is_raised;	 /* the offset is being raised */
	int error;	 /* why the last raise was refused, -errno; 0: it was not */
};

/* The step of the answer has read the offset of tokens. */
void etcd_tokens_note(struct store_etcd *store, const Etcd__TxnResponse *answer, size_t step);

/* Raises the offset, if the service, at that revision, is below the floor. Not to be waited for. */
void etcd_tokens_raise(struct store_etcd *store, int64_t revision);

/* The token of the change that the answer tells of, which was noted. Returns 0; -ECONNRESET: the
 * change is to be made again; -EACCES: the offset is to be raised, and may not be, which was
 * logged. */
int etcd_tokens_make(struct store_etcd *store, const Etcd__TxnResponse *answer, int64_t *ret);

#endif
