/* SPDX-License-Identifier: Apache-2.0
 *
 * The hosts of each store of a mount, read from .dlockfs/hosts, whose text is described in
 * src/view/view.h and fs/status/wait.h. It may come from a newer dlockfs, and what hosts say from
 * anybody who can write to the store: lines that make no sense are skipped.
 */
#ifndef DLOCKCTL_HOSTS_H
#define DLOCKCTL_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dlockctl/queue.h"

/* Texts are decoded, and empty if not known. */
struct host {
	char *name, *version, *peers, *session, *hash;
	int64_t since;	       /* in seconds since 1970; -1: not known */
	bool is_self;	       /* of this mount */
	bool drains;	       /* it grants nothing new */
	bool has_more;	       /* settings than these */
	size_t locks, waiters; /* hosts_count() */
	char **settings;       /* "[locks] slots=1" */
	size_t settings_count;
};

struct host_store {
	char *scheme, *root, *prefix;
	char *hash;   /* of the settings of this mount; empty: it uses no locks (--store) */
	char *error;  /* why nothing is known, as the name of an error */
	bool is_told; /* else the store does not tell which hosts it has */
	struct host *list;
	size_t count;
};

struct hosts {
	struct host_store *list;
	size_t count;
};

/* Returns 0, or -errno as tree_read() does. hosts_finish() frees *hosts in any case. */
int hosts_read(const char *mount, struct hosts *hosts);

void hosts_finish(struct hosts *hosts);

/* Counts the claims in the queues that hosts hold, and that wait, by their sessions. */
void hosts_count(struct hosts *hosts, const struct queues *queues);

/* This mount's own host; NULL: its entry is not there. */
const struct host *host_store_self(const struct host_store *store);

/* The host that the others are compared with: this mount's own, or the first for who has none
 * (--store); NULL: its entry is not there. */
const struct host *host_store_base(const struct host_store *store);

/* Whether the host's settings differ from those of this mount, or of that host. */
bool host_differs(const struct host_store *store, const struct host *host);

/* Calls say() for each setting in which they do, if that can be told: what both have, without the
 * name of the setting; NULL: nothing. */
void host_each_difference(const struct host_store *store, const struct host *host,
			  void (*say)(void *context, const char *setting, const char *there,
				      const char *here),
			  void *context);

/* The store in words, "zookeeper /dlockfs". To be freed. */
char *host_store_words(const struct host_store *store);

#endif
