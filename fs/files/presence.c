/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what was written, and the questions to the store. Loop thread only.
 */
#include "files/presence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "claim/host_entry.h"
#include "config/alike.h"

/* When to try again what was not answered; and how old the number of hosts may be. */
enum { RETRY_MS = 1000, OLD_MS = 5000 };

struct presence {
	struct engine *engine;
	struct store *store;
	bool is_told;
	/* The store has pointers to these while it is asked. */
	struct presence_change {
		struct store_change store;
		struct presence *presence;
	} change;
	struct presence_files {
		struct store_files store;
		struct presence *presence;
	} files;
	bool writing, counting; /* the store has not answered yet */
	bool is_to_count;
	int64_t session;    /* the last one in which the entry was written; 0: none */
	int64_t due_ms;	    /* not before then */
	int error;	    /* of the entry in that session */
	char *text;	    /* what the entry says; NULL: none was written */
	int64_t hosts;	    /* -1: unknown */
	int64_t counted_ms; /* when that was asked for */
};

static void on_written(struct store_change *base, int error);
static void on_counted(struct store_files *base, int error, const char *const *names, size_t count);

struct presence *presence_create(struct engine *engine, struct store *store, bool is_told)
{
	struct presence *presence = calloc(1, sizeof(*presence));

	if (presence == NULL)
		return NULL;
	presence->engine = engine;
	presence->store = store;
	presence->is_told = is_told;
	presence->change.store.done = on_written;
	presence->change.presence = presence;
	presence->files.store.done = on_counted;
	presence->files.presence = presence;
	presence->hosts = -1;
	return presence;
}

void presence_destroy(struct presence *presence)
{
	if (presence == NULL)
		return;
	free(presence->text);
	free(presence);
}

bool presence_is_told(const struct presence *presence)
{
	return presence->is_told;
}

/* 0: there is none, or no connection. */
static int64_t session_of(const struct presence *presence)
{
	const struct store_ops *ops = presence->store->ops;
	bool connected = engine_status(presence->engine).session == STORE_CONNECTED;

	return presence->is_told && connected ? ops->session(presence->store) : 0;
}

/* What the entry says */

struct room {
	FILE *out;
	long left;
	bool more; /* than there is room for */
};

static void write_setting(void *context, const char *line)
{
	struct room *room = context;
	long bytes = (long)strlen("setting=\n") + 3 * (long)strlen(line);

	room->more = room->more || bytes > room->left;
	if (room->more)
		return;
	room->left -= bytes;
	fputs("setting=", room->out);
	escape_write(room->out, line);
	fputc('\n', room->out);
}

/* NULL: out of memory. */
static char *make_text(const struct presence_host *host)
{
	size_t bytes;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	fputs("host=", out);
	escape_write(out, host->name[0] != '\0' ? host->name : "?");
	fputs(" version=", out);
	escape_write(out, DLOCKFS_VERSION);
	fprintf(out, " pid=%d", (int)getpid());
	if (host->peers != NULL) {
		fputs(" peers=", out);
		escape_write(out, host->peers);
	}
	if (host->drains)
		fputs(" draining=yes", out);
	fprintf(out, " settings=%016" PRIx64 "\n", config_alike_hash(host->config, host->store));
	struct room room = {out, HOST_ENTRY_BYTES - ftell(out) - (long)strlen("more=yes\n"), false};
	config_alike_each(host->config, host->store, write_setting, &room);
	if (room.more)
		fputs("more=yes\n", out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

/* The number */

static void on_counted(struct store_files *base, int error, const char *const *names, size_t count)
{
	struct presence *presence = ((struct presence_files *)base)->presence;

	(void)names;
	presence->counting = false;
	if (error == 0)
		presence->hosts = (int64_t)count;
	else if (error == -ENOENT)
		presence->hosts = 0;
	else if (error != -ECONNRESET)
		presence->hosts = -1;
}

static void count_hosts(struct presence *presence)
{
	struct store *store = presence->store;

	presence->counted_ms = clock_now_ms();
	presence->is_to_count = false;
	presence->counting =
		store->ops->files(store, &presence->files.store, HOST_ENTRY_DIRECTORY) == 0;
}

int64_t presence_count(struct presence *presence)
{
	if (session_of(presence) == 0)
		return -1;
	if (!presence->counting && clock_now_ms() - presence->counted_ms >= OLD_MS)
		count_hosts(presence);
	return presence->hosts;
}

/* The entry */

static bool is_to_write(const struct presence *presence)
{
	int64_t session = session_of(presence);

	return session != 0 && session != presence->session && !presence->writing;
}

static void on_written(struct store_change *base, int error)
{
	struct presence *presence = ((struct presence_change *)base)->presence;

	presence->writing = false;
	if (error == -ECONNRESET || error == -ENOMEM) {
		presence->session = 0;
		presence->due_ms = clock_now_ms() + RETRY_MS;
		return;
	}
	if (error != 0 && error != presence->error)
		log_warning("cannot say to other hosts that this one is there: %s; dlockctl hosts "
			    "does not show it",
			    strerror(-error));
	presence->error = error;
	presence->is_to_count = true; /* not before the store is done with the entry */
}

/* An entry of this session is replaced: another process may have written it, and what is ambiguous
 * is done once more. */
static void write_entry(struct presence *presence, const struct presence_host *host)
{
	struct store *store = presence->store;
	char path[HOST_ENTRY_PATH_BYTES];
	struct store_step step = {.kind = STEP_TAKE, .path = path};
	int64_t session = session_of(presence);

	free(presence->text);
	step.text = presence->text = make_text(host);
	if (step.text == NULL)
		return;
	host_entry_path(path, (uint64_t)session);
	presence->writing = store->ops->alter(store, &presence->change.store, &step, 1) == 0;
	presence->session = presence->writing ? session : 0;
}

void presence_advance(struct presence *presence, const struct presence_host *host, int64_t now_ms)
{
	if (presence->is_to_count && !presence->counting)
		count_hosts(presence);
	if (!is_to_write(presence) || presence->due_ms > now_ms)
		return;
	presence->due_ms = now_ms + RETRY_MS;
	write_entry(presence, host);
}

int64_t presence_due_ms(const struct presence *presence)
{
	if (presence->is_to_count && !presence->counting)
		return 0;
	return is_to_write(presence) ? presence->due_ms : INT64_MAX;
}

void presence_reload(struct presence *presence, const struct presence_host *host)
{
	char *text = make_text(host);

	if (text == NULL || presence->text == NULL || strcmp(text, presence->text) != 0)
		presence->session = 0;
	free(text);
}

int presence_error(const struct presence *presence)
{
	return presence->error;
}
