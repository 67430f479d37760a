/* SPDX-License-Identifier: Apache-2.0
 *
 * The offset of tokens (stores/tokens.h) of the ZooKeeper store: a line "dlockfs-tokens=NUMBER" in
 * the root's data, which is not there until the service has gone back once. It is read with the
 * root, and written if the root's data is still as it was read then: whatever else stands there is
 * kept.
 *
 * A token needs the offset of the moment of its stamp. The root is watched, and a server tells of a
 * change before it answers what was done after that; the client library keeps that order
 * (ZooKeeper's guarantee about watches). So as long as no event has come since the root was read,
 * the stamps that have come were made with the offset that was read. In between the offset is not
 * known, and a change that brings a stamp then is one that may have happened or not.
 *
 * Runs on the loop's thread, but for the callback, which runs on ZooKeeper's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "claim/root_line.h"
#include "stores/zookeeper/operation.h"

#define KEY "dlockfs-tokens="

static const char *find(const char *data, size_t bytes, size_t *ret_bytes)
{
	return root_line_find(data, bytes, KEY, ret_bytes);
}

void zookeeper_tokens_read(struct store_zookeeper *store, const char *data, size_t bytes)
{
	size_t value_bytes;
	const char *value = data != NULL ? find(data, bytes, &value_bytes) : NULL;

	tokens_note(&store->tokens, store->seen);
	store->tokens.offset = value != NULL ? tokens_parse(value, value_bytes) : 0;
	store->root_state.tokens_known = true;
}

static void on_raised(int code, const struct Stat *stat, const void *data)
{
	operation_on_done(code, data);
}

static void send_raise(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_aset(operation->store->handle, operation->path, operation->text,
				(int)operation->text_bytes, operation->version, on_raised,
				operation),
		       &operation->code);
}

/* What was written, or was written by another host meanwhile, is an event, and read. */
static void conclude_raise(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;

	if (operation->code != ZOK && operation->code != ZBADVERSION) {
		store->root_state.tokens_error = operation_error(
			operation, operation->code, "cannot raise the tokens in the data of");
		store->root_state.prepared = false;
	}
	operation_release(operation);
}

/* The data with another offset, and a NUL behind them. NULL: out of memory. */
static char *write_line(const char *data, size_t bytes, int64_t offset, size_t *ret_bytes)
{
	size_t value_bytes = 0;
	const char *value = find(data, bytes, &value_bytes);
	size_t before = value != NULL ? (size_t)(value - data) - strlen(KEY) : bytes;
	size_t behind = value != NULL ? before + strlen(KEY) + value_bytes : bytes;
	bool open = value == NULL && bytes > 0 && data[bytes - 1] != '\n';
	size_t room = bytes + strlen("\n" KEY "\n") + TOKENS_TEXT_BYTES + 1;
	char *text = malloc(room);
	size_t written;

	if (text == NULL)
		return NULL;
	memcpy(text, data, before);
	written = before + (size_t)snprintf(text + before, room - before, "%s" KEY "%" PRId64 "%s",
					    open ? "\n" : "", offset, value ? "" : "\n");
	memcpy(text + written, data + behind, bytes - behind);
	text[written + bytes - behind] = '\0';
	*ret_bytes = written + bytes - behind;
	return text;
}

void zookeeper_tokens_raise(struct store_zookeeper *store, const char *data, size_t bytes,
			    int32_t version, int64_t zxid)
{
	int64_t offset = tokens_raise(&store->tokens, zxid);
	struct operation *operation;

	if (offset == 0)
		return;
	operation = operation_create(store, STORE_LOOK, NULL, conclude_raise, "", NULL);
	if (operation == NULL)
		return;
	operation->text = write_line(data, bytes, offset, &operation->text_bytes);
	operation->version = version;
	operation->of_root = true;
	if (operation->text == NULL) {
		operation_starve(operation);
		return;
	}
	log_warning("ZooKeeper: tokens went further than zxid 0x%" PRIx64
		    ", as it was before the store went back: raised by %" PRId64,
		    (uint64_t)zxid, offset - store->tokens.offset);
	operation_start(operation, send_raise);
	operation->sent_us = 0;
}

int zookeeper_tokens_make(struct store_zookeeper *store, int64_t stamp, int64_t *ret)
{
	int64_t token = store->root_state.tokens_known ? tokens_make(&store->tokens, stamp) : 0;

	*ret = token;
	if (token != 0)
		return 0;
	store->root_state.wanted |= store->root_state.tokens_known;
	return store->root_state.tokens_error ? store->root_state.tokens_error : -ECONNRESET;
}
