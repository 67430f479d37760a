/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves the state for the program that goes on: all at once, or in the journal, where the code that
 * changes a thing marks it. Owns the lines that no other file owns. Loop thread only.
 */
#include <stddef.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/kept_request.h"
#include "files/request.h"
#include "handles/answers.h"
#include "handles/handle.h"
#include "handles/holder.h"
#include "handles/parked.h"
#include "kernel/notifier.h"
#include "restart/takeover.h"
#include "restart/takeover_process.h"
#include "status/status.h"

/* How often the journal is told how far a store was seen to go: each answer may have gone further.
 */
enum { MARK_SEEN_MS = 1000 };

/* The process */

static struct state_place place_process(const struct state_item *item)
{
	(void)item;
	return (struct state_place){{STATE_PLACE_PROCESS}};
}

static void save_process_item(const struct state_item *item, FILE *out)
{
	const struct takeover_marks *marks =
		STATE_WHOLE(item, const struct takeover_marks, process_item);

	if (marks->process != NULL)
		takeover_process_save(marks->filesystem, marks->process, out);
}

static void mark_process(struct takeover_marks *marks)
{
	static const struct state_kind kind = {place_process, save_process_item};

	marks->max_write = marks->filesystem->requests->max_write;
	state_journal_mark(marks->filesystem->journal, &marks->process_item, &kind);
}

void takeover_keep_process(struct filesystem *filesystem, const struct takeover_process *process)
{
	if (filesystem->marks == NULL)
		return;
	filesystem->marks->process = process;
	mark_process(filesystem->marks);
}

/* Stores and shards */

static uint64_t index_of(const struct shard *shard)
{
	return (uint64_t)(shard - shard->filesystem->shards->list);
}

static struct state_place place_store(const struct state_item *item)
{
	const struct shard *shard = STATE_WHOLE(item, const struct shard, store_item);
	return (struct state_place){{STATE_PLACE_STORE, index_of(shard)}};
}

static void mark_store(struct shard *shard)
{
	static const struct state_kind kind = {place_store, takeover_store_save};
	state_journal_mark(shard->filesystem->journal, &shard->store_item, &kind);
}

/* A new session is not announced: marks it if it is another than at the last mark; and how far the
 * store was seen to go, once a second. */
static void mark_session(struct shard *shard)
{
	const struct store_ops *ops = shard->store->ops;
	int64_t now_ms = shard->filesystem->now_ms;
	int64_t session = ops->session != NULL ? ops->session(shard->store) : 0;
	int64_t seen = ops->seen != NULL ? ops->seen(shard->store) : 0;

	if (session == shard->marked_session &&
	    (seen == shard->marked_seen || now_ms - shard->marked_ms < MARK_SEEN_MS))
		return;
	shard->marked_session = session;
	shard->marked_seen = seen;
	shard->marked_ms = now_ms;
	mark_store(shard);
}

static struct state_place place_shard(const struct state_item *item)
{
	const struct shard *shard = STATE_WHOLE(item, const struct shard, item);
	return (struct state_place){{STATE_PLACE_SHARD + index_of(shard)}};
}

static void save_shard(const struct state_item *item, FILE *out)
{
	state_begin(out, "shard");
	state_unsigned(out, "number", index_of(STATE_WHOLE(item, const struct shard, item)));
	state_end(out);
}

static void keep_shard(struct shard *shard)
{
	static const struct state_kind kind = {place_shard, save_shard};

	state_journal_mark(shard->filesystem->journal, &shard->item, &kind);
	mark_store(shard);
	if (shard->store->ops->keep_claims != NULL)
		shard->store->ops->keep_claims(shard->store, shard->filesystem->journal,
					       STATE_PLACE_SHARD + index_of(shard));
	engine_set_journal(shard->engine, shard->filesystem->journal, &takeover_transfer,
			   STATE_PLACE_SHARD + index_of(shard));
}

/* Numbers */

static struct takeover_numbers numbers_of(const struct filesystem *filesystem)
{
	return (struct takeover_numbers){
		.node = filesystem->inodes->last_node,
		.status = filesystem->status->last_number,
		.handle = filesystem->handles->last_number,
	};
}

static void save_numbers(const struct takeover_numbers *numbers, FILE *out)
{
	state_begin(out, "numbers");
	fields_save(takeover_number_fields, numbers, out);
	state_end(out);
}

static struct state_place place_numbers(const struct state_item *item)
{
	(void)item;
	return (struct state_place){{STATE_PLACE_NUMBERS}};
}

static void save_numbers_item(const struct state_item *item, FILE *out)
{
	save_numbers(&STATE_WHOLE(item, const struct takeover_marks, numbers_item)->numbers, out);
}

/* The numbers are given out in too many places to mark them there. */
static void mark_numbers(struct takeover_marks *marks)
{
	static const struct state_kind kind = {place_numbers, save_numbers_item};
	const struct takeover_numbers numbers = numbers_of(marks->filesystem);

	if (memcmp(&numbers, &marks->numbers, sizeof(numbers)) == 0)
		return;
	marks->numbers = numbers;
	state_journal_mark(marks->filesystem->journal, &marks->numbers_item, &kind);
}

/* The journal */

void takeover_keep(struct filesystem *filesystem, struct state_journal *journal,
		   struct takeover_marks *marks)
{
	*marks = (struct takeover_marks){.filesystem = filesystem};
	filesystem->journal = journal;
	filesystem->marks = marks;
	mark_process(marks);
	inode_mark(filesystem->inodes->root);
	for (size_t i = 0; i < filesystem->shards->count; i++)
		keep_shard(&filesystem->shards->list[i]);
}

void takeover_mark_changed(struct filesystem *filesystem)
{
	if (filesystem->marks->max_write != filesystem->requests->max_write)
		mark_process(filesystem->marks);
	for (size_t i = 0; i < filesystem->shards->count; i++)
		mark_session(&filesystem->shards->list[i]);
	mark_numbers(filesystem->marks);
}

void takeover_commit(struct filesystem *filesystem, uint64_t handled)
{
	if (answers_tell(filesystem))
		shards_advance(filesystem->shards, clock_now_ms());
	if (filesystem->journal != NULL)
		takeover_mark_changed(filesystem);
	answers_send(filesystem, handled);
}

/* All at once */

static void save_handles(const struct filesystem *filesystem, FILE *out)
{
	const struct handle *handle;
	struct waiting *waiting;

	HANDLES_FOREACH (filesystem->handles, handle) {
		handle_save(handle, out);
		DL_FOREACH (handle->parked, waiting) {
			parked_save(parked_of(waiting), out);
		}
		holder_save_all(handle, out);
	}
}

void takeover_save(const struct filesystem *filesystem, const struct takeover_process *process,
		   FILE *out)
{
	const struct inode *inode;
	const struct status_node *node;

	takeover_process_save(filesystem, process, out);
	for (size_t i = 0; i < filesystem->shards->count; i++)
		takeover_store_save(&filesystem->shards->list[i].store_item, out);
	for (inode = filesystem->inodes->by_node; inode != NULL; inode = inode->by_node.next) {
		inode_save(inode, out);
		text_save_blocks(&inode->text, out);
	}
	for (node = filesystem->status->by_number; node != NULL; node = node->by_number.next)
		status_node_save(&node->item, out);
	save_handles(filesystem, out);
	const struct takeover_numbers numbers = numbers_of(filesystem);
	save_numbers(&numbers, out);
	if (filesystem->notifier != NULL)
		notifier_save_orders(filesystem->notifier, out);
	kept_request_save_all(filesystem->requests, out);
	for (size_t i = 0; i < filesystem->shards->count; i++) {
		const struct shard *shard = &filesystem->shards->list[i];
		save_shard(&shard->item, out);
		if (shard->store->ops->save_claims != NULL)
			shard->store->ops->save_claims(shard->store, out);
		engine_save(shard->engine, &takeover_transfer, out);
	}
	state_begin(out, "end");
	state_end(out);
}
