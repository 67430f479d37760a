/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention to queues. It ends with the first change of its queue behind the list. If the list
 * is older than where the watch begins, which takes a request that overtook the other one, the
 * watch is set up again, from the list on. Loop thread only.
 */
#include "stores/etcd/attention.h"

#include <stdlib.h>

#include "stores/etcd/keys.h"
#include "stores/etcd/state.h"
#include "stores/etcd/stream.h"

struct attention {
	struct etcd_watcher watcher; /* first */
	void *tag;
	struct etcd_key queue; /* what the keys of the queue begin with, */
	struct etcd_key end;   /* and where they end */
	int64_t begun;	       /* 0: not yet */
	bool is_behind;	       /* it was set up again, from the list on */
	int64_t changed;       /* the latest change that was seen */
	int64_t listed;	       /* 0: not yet */
};

static struct attention *attention_of(struct etcd_watcher *watcher)
{
	return (struct attention *)watcher;
}

static void free_attention(struct attention *attention)
{
	free(attention->queue.bytes);
	free(attention->end.bytes);
	free(attention);
}

/* Whoever waits for the list is told when it comes. */
static void conclude(struct attention *attention)
{
	const struct store_etcd *store = attention->watcher.store;

	etcd_stream_leave(&attention->watcher);
	if (attention->listed > 0)
		store->events->on_changed(store->context, attention->tag);
	free_attention(attention);
}

/* What is known of the change, or of the beginning of the watch, has changed. */
static void go_on(struct attention *attention)
{
	if (attention->listed == 0)
		return;
	if (attention->changed > attention->listed) {
		conclude(attention);
	} else if (!attention->is_behind && attention->begun > attention->listed) {
		attention->is_behind = true;
		etcd_stream_leave(&attention->watcher);
		if (!etcd_stream_watch(&attention->watcher, &attention->queue, &attention->end,
				       etcd_message_revision_after(attention->listed)))
			conclude(attention);
	}
}

static void on_begun(struct etcd_watcher *watcher, int64_t revision)
{
	struct attention *attention = attention_of(watcher);

	attention->begun = revision;
	go_on(attention);
}

/* The latest revision at which a claim has come or gone, by what changed below the lock: not data,
 * nor locks below. 0: none has. */
static int64_t latest_change(const struct attention *attention, const Etcd__WatchResponse *response)
{
	int64_t latest = 0;

	for (size_t i = 0; i < response->n_events; i++) {
		const Etcd__KeyValue *kv = response->events[i]->kv;
		const char *rest;
		size_t bytes;

		if (kv != NULL && kv->mod_revision > latest &&
		    etcd_message_rest(kv, &attention->queue, &rest, &bytes) &&
		    etcd_key_is_claim(rest, bytes))
			latest = kv->mod_revision;
	}
	return latest;
}

static void on_events(struct etcd_watcher *watcher, const Etcd__WatchResponse *response)
{
	struct attention *attention = attention_of(watcher);
	int64_t latest = latest_change(attention, response);

	if (latest > attention->changed)
		attention->changed = latest;
	go_on(attention);
}

static void on_over(struct etcd_watcher *watcher)
{
	conclude(attention_of(watcher));
}

static void on_dropped(struct etcd_watcher *watcher)
{
	free_attention(attention_of(watcher));
}

static const struct etcd_watcher_kind kind = {
	.begun = on_begun,
	.events = on_events,
	.ended = on_over,
	.lost = on_over,
	.dropped = on_dropped,
};

int64_t etcd_attention_begin(struct store_etcd *store, const char *path)
{
	struct attention *attention = calloc(1, sizeof(*attention));

	if (attention == NULL)
		return 0;
	attention->watcher.kind = &kind;
	attention->watcher.store = store;
	if (etcd_key_of_queue(&attention->queue, store->root, path) &&
	    etcd_key_end(&attention->end, &attention->queue) &&
	    etcd_stream_watch(&attention->watcher, &attention->queue, &attention->end, 0))
		return attention->watcher.id;
	free_attention(attention);
	return 0;
}

static struct attention *find(const struct store_etcd *store, int64_t id)
{
	struct etcd_watcher *watcher = id != 0 ? etcd_stream_find(store, id) : NULL;

	return watcher != NULL ? attention_of(watcher) : NULL;
}

void etcd_attention_listed(struct store_etcd *store, int64_t id, void *tag, int64_t revision)
{
	struct attention *attention = find(store, id);

	if (attention == NULL) {
		store->events->on_changed(store->context, tag);
		return;
	}
	attention->tag = tag;
	attention->listed = revision;
	go_on(attention);
}

void etcd_attention_cancel(struct store_etcd *store, int64_t id)
{
	struct attention *attention = find(store, id);

	if (attention != NULL)
		conclude(attention);
}
