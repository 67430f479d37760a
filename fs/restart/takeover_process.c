/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the lines of the process, of its stores, and of numbers. Loop thread only.
 */
#include "restart/takeover_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/request.h"
#include "files/stores.h"
#include "kernel/warden.h"

const struct field takeover_number_fields[] = {
	{"last_node", FIELD_UNSIGNED(struct takeover_numbers, node, NODES_END - 1)},
	{"last_status", FIELD_UNSIGNED(struct takeover_numbers, status, UINT64_MAX)},
	{"last_number", FIELD_UNSIGNED(struct takeover_numbers, handle, UINT64_MAX)},
	{0},
};

static const struct field process_fields[] = {
	{"folder", FIELD_TEXT(struct takeover_process, folder)},
	{"mountpoint", FIELD_TEXT(struct takeover_process, mountpoint)},
	{"background", FIELD_FLAG(struct takeover_process, background)},
	{0},
};

void takeover_process_save(const struct filesystem *filesystem,
			   const struct takeover_process *process, FILE *out)
{
	state_begin(out, "dlockfs");
	state_number(out, "format", TAKEOVER_FORMAT);
	state_number(out, "reader", TAKEOVER_READER);
	state_text(out, "version", DLOCKFS_VERSION);
	fields_save(process_fields, process, out);
	if (process->config != NULL)
		state_bytes(out, "config", process->config, process->config_bytes);
	state_number(out, "fuse", process->fuse);
	if (warden_socket() >= 0) {
		state_number(out, "warden", warden_socket());
		state_number(out, "warden_format", WARDEN_FORMAT);
	}
	if (filesystem->journal != NULL)
		state_number(out, "journal", state_journal_descriptor(filesystem->journal));
	state_bytes(out, "init", process->init, process->init_bytes);
	state_unsigned(out, "max_write", filesystem->requests->max_write);
	state_end(out);
}

/* Reads the descriptors that this process had before execve(2). */
static void read_descriptors(struct takeover *takeover)
{
	struct state_reader *in = &takeover->in;
	struct takeover_process *process = &takeover->process;

	process->fuse = (int)state_get_number(in, "fuse", 3, INT32_MAX);
	if (state_has(in, "warden")) {
		int format = (int)state_get_number(in, "warden_format", 0, INT32_MAX);
		process->warden = (int)state_get_number(in, "warden", 3, INT32_MAX);
		if (format != WARDEN_FORMAT)
			state_refuse(in, "warden_format", "that of this version");
		if (takeover->rehearsal)
			process->warden = TAKEOVER_WARDEN;
	}
	if (takeover->rehearsal || !state_has(in, "journal"))
		return;
	process->journal = (int)state_get_number(in, "journal", 3, INT32_MAX);
	if (fcntl(process->journal, F_SETFD, FD_CLOEXEC) < 0)
		state_refuse(in, "journal", "an open descriptor");
}

static int read_process(struct takeover *takeover)
{
	struct state_reader *in = &takeover->in;
	struct takeover_process *process = &takeover->process;
	const void *init = state_get_bytes(in, "init", &process->init_bytes);
	void *copy = malloc(process->init_bytes + 1);

	if (copy != NULL)
		memcpy(copy, init, process->init_bytes);
	process->init = copy;
	fields_restore(process_fields, process, in);
	process->folder = strdup(process->folder);
	process->mountpoint = strdup(process->mountpoint);
	if (state_has(in, "config")) {
		const void *config = state_get_bytes(in, "config", &process->config_bytes);
		char *text = malloc(process->config_bytes + 1);
		if (text == NULL)
			return state_starve(in);
		memcpy(text, config, process->config_bytes);
		process->config = text;
	}
	if (!takeover->kept)
		read_descriptors(takeover);
	takeover->max_write = (unsigned int)state_get_unsigned(in, "max_write", UINT32_MAX);
	if (process->init_bytes < sizeof(struct fuse_in_header))
		state_refuse(in, "init", "a request");
	if (copy == NULL || process->folder == NULL || process->mountpoint == NULL)
		state_starve(in);
	return state_failed(in) ? -EINVAL : 0;
}

int takeover_process_read(struct takeover *takeover)
{
	struct state_reader *in = &takeover->in;
	char expected[160];
	int more = state_next(in);

	if (more < 0)
		return more;
	if (more == 0 || strcmp(in->word, "dlockfs") != 0)
		return state_refuse(in, NULL, "dlockfs");
	takeover->format = (int)state_get_number(in, "format", 0, INT32_MAX);
	int reader = takeover->format;
	if (state_has(in, "reader"))
		reader = (int)state_get_number(in, "reader", 0, INT32_MAX);
	if (takeover->format < TAKEOVER_OLDEST || reader > TAKEOVER_FORMAT) {
		snprintf(expected, sizeof(expected),
			 "%d, that of version " DLOCKFS_VERSION ", not %d of version %.40s",
			 TAKEOVER_FORMAT, takeover->format,
			 state_has(in, "version") ? state_get_text(in, "version") : "unknown");
		return state_refuse(in, "format", expected);
	}
	return read_process(takeover);
}

/* Of a store with servers. */
static const struct field remote_fields[] = {
	{"servers", FIELD_TEXT(struct takeover_store, url.servers)},
	{"root", FIELD_TEXT(struct takeover_store, url.root)},
	{"acl", FIELD_UNSIGNED(struct takeover_store, acl, STORE_ACL_PRIVATE)},
	{"session_timeout_ms",
	 FIELD_NUMBER(struct takeover_store, session_timeout_ms, 0, INT64_MAX)},
	{0},
};

void takeover_store_save(const struct state_item *item, FILE *out)
{
	const struct shard *shard = STATE_WHOLE(item, const struct shard, store_item);
	const struct config *config = shard->filesystem->config;
	size_t index = (size_t)(shard - shard->filesystem->shards->list);
	const struct config_store *store = &config->stores[index];
	const struct takeover_store saved = {
		.url = store->url,
		.session_timeout_ms = config_session_timeout_ms(config, index),
		.acl = store_access_acl(&store->access),
	};

	state_begin(out, "store");
	state_text(out, "prefix", store->prefix);
	if (stores_find(store->url.scheme)->is_remote) {
		fields_save(remote_fields, &saved, out);
		shard->store->ops->save_session(shard->store, out);
	}
	state_end(out);
}

int takeover_store_read(struct takeover *takeover)
{
	struct state_reader *in = &takeover->in;
	struct takeover_store *stores = reallocarray(takeover->stores, takeover->store_count + 1,
						     sizeof(*takeover->stores));
	if (stores == NULL)
		return state_starve(in);
	takeover->stores = stores;
	struct takeover_store *store = &stores[takeover->store_count++];
	const struct store_kind *kind = stores_find_saved(in);
	*store = (struct takeover_store){
		.prefix = strdup(state_get_text(in, "prefix")),
		.url = {.scheme = kind->scheme},
		.former = {.rehearsal = takeover->rehearsal},
	};
	if (store->prefix == NULL)
		return state_starve(in);
	if (!kind->is_remote)
		return state_failed(in) ? -EINVAL : 0;
	fields_restore(remote_fields, store, in);
	store->url.servers = strdup(store->url.servers);
	store->url.root = strdup(store->url.root);
	store->former.session = kind->restore_session(in);
	if (store->url.servers == NULL || store->url.root == NULL)
		return state_starve(in);
	return state_failed(in) ? -EINVAL : 0;
}

void takeover_process_finish(struct takeover *takeover)
{
	for (size_t i = 0; i < takeover->store_count; i++) {
		free(takeover->stores[i].prefix);
		store_url_finish(&takeover->stores[i].url);
		free(takeover->stores[i].former.session);
	}
	free(takeover->stores);
	free(takeover->former);
	free((char *)takeover->process.folder);
	free((char *)takeover->process.mountpoint);
	free((char *)takeover->process.config);
	free((void *)takeover->process.init);
}
