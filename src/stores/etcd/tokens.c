/* SPDX-License-Identifier: Apache-2.0
 *
 * The offset of tokens (stores/tokens.h) of the etcd store: the value of a key below the root,
 * which is not there until the service has gone back once. The transaction that brings a stamp
 * reads it, too, so it is the offset of that moment. It is raised if its key is still as it was
 * read.
 *
 * Loop thread only.
 */
#include "stores/etcd/tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/transaction.h"

static void on_raised(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;

	store->tokens.is_raised = false;
	store->tokens.error = etcd_meaning(store, status, text) == ETCD_DENIED ? -EACCES : 0;
	if (store->tokens.error)
		log_error("etcd: cannot raise the tokens: %s", text);
}

void etcd_tokens_note(struct store_etcd *store, const Etcd__TxnResponse *answer, size_t step)
{
	const Etcd__RangeResponse *found = etcd_transaction_found(answer, step);
	const Etcd__KeyValue *pair = found != NULL && found->n_kvs > 0 ? found->kvs[0] : NULL;
	int64_t offset =
		pair != NULL ? tokens_parse((const char *)pair->value.data, pair->value.len) : 0;

	if (offset < store->tokens.known.offset)
		tokens_note(&store->tokens.known, store->epoch.seen);
	store->tokens.known.offset = offset;
	store->tokens.version = pair != NULL ? pair->version : 0;
}

void etcd_tokens_raise(struct store_etcd *store, int64_t revision)
{
	int64_t offset = tokens_raise(&store->tokens.known, revision);
	char text[TOKENS_TEXT_BYTES];
	struct transaction transaction;
	struct etcd_key key;

	if (offset == 0 || store->tokens.is_raised || !etcd_key_of_tokens(&key, store->root))
		return;
	log_warning("etcd: tokens went further than revision %" PRId64
		    ", as it was before the store went back: raised by %" PRId64,
		    revision, offset - store->tokens.known.offset);
	snprintf(text, sizeof(text), "%" PRId64, offset);
	etcd_transaction_init(&transaction);
	etcd_transaction_require_version(&transaction, &key, store->tokens.version);
	etcd_transaction_put(&transaction.then, &key, text, 0);
	store->tokens.is_raised =
		etcd_transaction_send(&transaction, store->grpc, 0, on_raised, store) != NULL;
	etcd_wake(store);
	free(key.bytes);
}

int etcd_tokens_make(struct store_etcd *store, const Etcd__TxnResponse *answer, int64_t *ret)
{
	*ret = tokens_make(&store->tokens.known, answer->header->revision);
	if (*ret != 0)
		return 0;
	etcd_tokens_raise(store, answer->header->revision);
	return store->tokens.error ? store->tokens.error : -ECONNRESET;
}
