/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns engines and stores. Loop thread only.
 */
#include "files/shard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/printable.h"
#include "claim/file_path.h"
#include "files/filesystem.h"
#include "files/presence.h"
#include "files/stores.h"
#include "kernel/lease_board.h"
#include "peers/peers.h"

enum { FENCINGS_IN_TIMEOUT = 80 };

/* How soon to search again for markers of lost holders, and how soon if the store did not answer.
 */
enum { SWEEP_MS = 24 * 60 * 60 * 1000, SWEEP_RETRY_MS = 10000 };

/* In a label a backslash is written as two (Prometheus, "Exposition formats"); base/escape.h leaves
 * no other byte that would need it. */
static char *make_label(const char *prefix)
{
	char *text = NULL, *label = NULL;
	size_t bytes;
	FILE *out;

	if (prefix[0] == '\0')
		return strdup("");
	text = malloc(3 * strlen(prefix) + 4);
	out = text != NULL ? open_memstream(&label, &bytes) : NULL;
	if (out != NULL) {
		escape_format(text, 3 * strlen(prefix) + 4, prefix);
		fputs("store=\"", out);
		for (const char *at = text; *at != '\0'; at++)
			fprintf(out, "%s%c", *at == '\\' ? "\\" : "", *at);
		fputc('"', out);
		fclose(out);
	}
	free(text);
	return label;
}

/* Begins or ends the search for markers of lost holders, by the configuration. */
static void plan_sweep(struct shard *shard, const struct config *config)
{
	bool sweeps = shard->sweep_ms != INT64_MAX;

	if ((config_has_remains(config) && !config->read_only) != sweeps)
		shard->sweep_ms = sweeps ? INT64_MAX : 0;
}

static int open_engine(struct shard *shard, const struct shard_events *events)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -errno;
	shard->engine = engine_create(events->engine, shard, seed);
	if (shard->engine == NULL)
		return -ENOMEM;
	shard->lockfiles = lockfiles_create(shard->engine, events->lockfiles, shard);
	return shard->lockfiles != NULL ? 0 : -ENOMEM;
}

static int open_store(struct shard *shard, const struct config *config, size_t index,
		      const struct shard_former *former)
{
	const struct config_store *store = &config->stores[index];
	const struct store_kind *kind = stores_find(store->url.scheme);
	const struct store_contention contention = config_contention(config, index);
	const struct store_options options = {
		.url = &store->url,
		.access = &store->access,
		.session_timeout_ms = config_session_timeout_ms(config, index),
		.contention = &contention,
		.replicas = store->redis_replicas,
		.on_disk = store->redis_on_disk,
		.new_root = config_has_new_root(config, index) && former == NULL,
		.read_only = config->read_only,
		.statistics = &shard->statistics,
		.rehearsal = former != NULL && former->rehearsal,
		.session = former != NULL ? former->session : NULL,
	};

	shard->abilities = kind->abilities;
	if (kind->lacks != NULL)
		shard->abilities &= ~kind->lacks(&store->url);
	engine_set_abilities(shard->engine, shard->abilities);
	if (kind->is_remote && !kind->keeps_claims && options.rehearsal)
		return 0;
	return kind->open(&options, &engine_store_events, shard->engine, &shard->store);
}

static int open_shard(struct shard *shard, const struct config *config,
		      const struct shard_events *events, size_t index,
		      const struct shard_former *former)
{
	const struct config_store *store = &config->stores[index];
	int error = open_engine(shard, events);

	shard->prefix = store->prefix;
	shard->sweep_ms = INT64_MAX;
	plan_sweep(shard, config);
	shard->label = make_label(store->prefix);
	if (error == 0 && shard->label == NULL)
		error = -ENOMEM;
	if (error == 0)
		error = open_store(shard, config, index, former);
	if (error != 0 || shard->store == NULL)
		return error;
	engine_set_store(shard->engine, shard->store);
	bool has_files = (shard->abilities & STORE_HAS_FILES) != 0;
	shard->viewer = viewer_create(shard->store, shard->engine, has_files ? events->files : NULL,
				      config);
	shard->presence = presence_create(shard->engine, shard->store,
					  has_files && stores_find(store->url.scheme)->is_remote);
	return shard->viewer != NULL && shard->presence != NULL ? 0 : -ENOMEM;
}

/* ZooKeeper's client would trust the authorities of the system beside those of tls_ca, and does not
 * check the name in a server's certificate. With these variables OpenSSL finds no authorities of
 * the system. To be called before there are threads, which could be reading the environment. */
static void trust_no_others(void)
{
	setenv("SSL_CERT_FILE", "/dev/null", true);
	setenv("SSL_CERT_DIR", "/dev/null", true);
}

int shards_check(const struct config *config, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < config->store_count; i++) {
		const struct config_store *store = &config->stores[i];
		const struct store_kind *kind = stores_find(store->url.scheme);
		bool has_files =
			store->access.tls_ca != NULL || store->access.tls_certificate != NULL;

		if (kind->check_files != NULL && has_files &&
		    !kind->check_files(&store->access, why, why_bytes))
			return -EINVAL;
	}
	return 0;
}

struct answers {
	FILE *out;
	const char *prefix;
	bool all_well;
};

static void write_answer(void *context, enum store_health health, const char *text)
{
	struct answers *answers = context;

	fprintf(answers->out, "%s: servers: ", health == STORE_WELL ? "ok" : "error");
	if (answers->prefix[0] != '\0') {
		printable_write(answers->out, answers->prefix);
		fputs(": ", answers->out);
	}
	printable_write(answers->out, text);
	fputc('\n', answers->out);
	answers->all_well = answers->all_well && health == STORE_WELL;
}

bool shards_ask(const struct config *config, int64_t limit_ms, FILE *out)
{
	struct answers answers = {.out = out, .all_well = true};
	const struct store_asker asker = {
		.limit_ms = limit_ms, .say = write_answer, .context = &answers};

	for (size_t i = 0; i < config->store_count; i++) {
		const struct config_store *store = &config->stores[i];
		const struct store_kind *kind = stores_find(store->url.scheme);
		int error;

		answers.prefix = store->prefix;
		error = kind->ask != NULL ? kind->ask(&store->url, &store->access, &asker) : 0;
		if (error != 0)
			write_answer(&answers, STORE_SICK, strerror(-error));
	}
	return answers.all_well;
}

int shards_open(const struct config *config, const struct shard_events *events,
		const struct shard_former *former, struct shards *ret)
{
	struct shards shards = {.list = calloc(config->store_count, sizeof(*shards.list))};
	int error = shards.list != NULL ? 0 : -ENOMEM;

	if (error == 0)
		shards.count = config->store_count;

	trust_no_others();
	for (size_t i = 0; error == 0 && i < shards.count; i++)
		error = open_shard(&shards.list[i], config, events, i,
				   former != NULL ? &former[i] : NULL);
	if (error == 0)
		*ret = shards;
	else
		shards_close(&shards);
	return error;
}

struct shard *shard_of(const struct filesystem *filesystem, const char *path)
{
	return &filesystem->shards->list[config_store_of(filesystem->config, path)];
}

static void *close_store(void *context)
{
	const struct shard *shard = context;
	shard->store->ops->close(shard->store, shard->told);
	return NULL;
}

/* The last store is closed by this thread, the others by threads of their own, unless the journal,
 * which is this thread's, has their claims: their end does not block. */
static void close_stores(struct shards *shards)
{
	for (size_t i = 0; i < shards->count; i++) {
		struct shard *shard = &shards->list[i];
		if (shard->store == NULL)
			continue;
		if (shard->filesystem != NULL && shard->filesystem->session != NULL)
			shard->told = NULL;
		shard->has_closer = i + 1 < shards->count &&
				    shard->store->ops->keep_claims == NULL &&
				    pthread_create(&shard->closer, NULL, close_store, shard) == 0;
		if (!shard->has_closer)
			close_store(shard);
	}
	for (size_t i = 0; i < shards->count; i++) {
		if (shards->list[i].has_closer)
			pthread_join(shards->list[i].closer, NULL);
	}
}

void shards_end(struct shards *shards)
{
	for (size_t i = 0; i < shards->count; i++) {
		struct shard *shard = &shards->list[i];
		shard->ending = true;
		shard->told = engine_end(shard->engine);
	}
}

void shards_close(struct shards *shards)
{
	close_stores(shards);
	for (size_t i = 0; i < shards->count; i++) {
		viewer_destroy(shards->list[i].viewer);
		engine_destroy(shards->list[i].engine);
		presence_destroy(shards->list[i].presence);
		free(shards->list[i].label);
	}
	free(shards->list);
}

/* How long the daemon has, from the end of the lease on, to fence what is held before the guard
 * acts: half the time between that end and the first moment at which another host can be granted,
 * which is a fortieth of the timeout (lease.h of each store). */
static int64_t fencing_ms(int64_t timeout_ms)
{
	return timeout_ms / FENCINGS_IN_TIMEOUT;
}

size_t shard_number(const struct shard *shard)
{
	return (size_t)(shard - shard->filesystem->shards->list);
}

void shard_tell_guard(const struct shard *shard)
{
	int64_t timeout_ms;
	int64_t end_ms = engine_held_lease(shard->engine, &timeout_ms);

	if (shard->ending || end_ms == INT64_MIN)
		return;
	if (end_ms != INT64_MAX)
		end_ms += fencing_ms(timeout_ms);
	lease_board_set_deadline(shard->filesystem->board, shard_number(shard), end_ms,
				 fencing_ms(timeout_ms));
	/* What is not restored yet is held all the same. */
	if (shard->filesystem->takeover == NULL)
		state_journal_set_deadline(shard->filesystem->journal,
					   lease_board_deadline(shard->filesystem->board));
}

/* A daemon that begins to fence does not hang, even if it begins late. */
static void announce_fencing(const struct shard *shard, int64_t now_ms)
{
	int64_t timeout_ms;
	int64_t end_ms = engine_held_lease(shard->engine, &timeout_ms);

	if (end_ms != INT64_MIN && end_ms <= now_ms)
		lease_board_move(shard->filesystem->board, now_ms);
}

/* With lock_delay a lost holder leaves a marker. If its daemon does not come back, and nobody asks
 * for the lock again, no host in particular takes the marker away. So each daemon with a lock_delay
 * in its configuration searches for markers: after its start, or the reload that brought the
 * lock_delay, once the session of the daemon before it is over, and then once a day. */

static void on_orphans(void *context, const char *path)
{
	const struct shard *shard = context;
	const struct filesystem *filesystem = shard->filesystem;
	const struct config *config = filesystem->config;
	char *plain = file_path_plain(path);
	if (plain == NULL)
		return; /* the next search does it */
	struct lock_policy policy = config_policy(config, plain);

	if (config_store_of(config, plain) == (size_t)(shard - filesystem->shards->list))
		(void)engine_clear(shard->engine, path, &policy); /* else the next search does it */
	free(plain);
}

static void on_searched(void *context, int error)
{
	struct shard *shard = context;
	int64_t now = clock_now_ms();

	shard->sweep = NULL;
	shard->sweep_ms = now + (error == 0 ? SWEEP_MS : SWEEP_RETRY_MS);
}

static bool can_sweep(const struct shard *shard)
{
	return shard->sweep == NULL && engine_status(shard->engine).session == STORE_CONNECTED;
}

static void sweep(struct shard *shard, int64_t now)
{
	static const struct view_events events = {
		.on_orphans = on_orphans,
		.on_searched = on_searched,
	};
	if (shard->sweep_ms > now || !can_sweep(shard))
		return;
	if (shard->sweep_ms == 0)
		shard->sweep_ms = now + 2 * engine_status(shard->engine).timeout_ms;
	else if (view_search_orphans(shard->viewer, shard->prefix, &events, shard, &shard->sweep) !=
		 0)
		shard->sweep_ms = now + SWEEP_RETRY_MS;
}

static void tend(struct shard *shard, int64_t now_ms)
{
	struct store *store = shard->store;

	if (store != NULL && store->ops->tend != NULL)
		store->ops->tend(store, now_ms);
}

static int64_t tend_deadline(const struct shard *shard)
{
	const struct store *store = shard->store;
	bool tends = store != NULL && store->ops->tend_ms != NULL;

	return tends ? store->ops->tend_ms(store) : INT64_MAX;
}

/* This host among those of the store. Without a store there is none. */

static struct presence_host host_of(const struct shard *shard)
{
	const struct filesystem *filesystem = shard->filesystem;
	const struct peers *peers = filesystem->shards->peers;
	size_t number = shard_number(shard);

	return (struct presence_host){
		.config = filesystem->config,
		.store = number,
		.name = filesystem->host,
		.peers = peers != NULL ? peers_address(peers, number) : NULL,
		.drains = engine_drains(shard->engine),
	};
}

static int64_t presence_deadline(const struct shard *shard)
{
	bool is_present = shard->presence != NULL && !shard->filesystem->config->read_only;

	return is_present ? presence_due_ms(shard->presence) : INT64_MAX;
}

static void be_present(const struct shard *shard, int64_t now_ms)
{
	if (presence_deadline(shard) <= now_ms) {
		const struct presence_host host = host_of(shard);
		presence_advance(shard->presence, &host, now_ms);
	}
}

static void reload_presence(const struct shard *shard)
{
	const struct presence_host host = host_of(shard);

	presence_reload(shard->presence, &host);
}

void shards_advance(struct shards *shards, int64_t now_ms)
{
	for (size_t i = 0; i < shards->count; i++) {
		struct shard *shard = &shards->list[i];
		bool due = shards->due_ms <= now_ms || engine_deadline(shard->engine) <= now_ms;

		if (due)
			announce_fencing(shard, now_ms);
		engine_advance(shard->engine, now_ms);
		if (!due)
			continue;
		sweep(shard, now_ms);
		tend(shard, now_ms);
		be_present(shard, now_ms);
		shard_tell_guard(shard);
		engine_stir(shard->engine);
	}
}

void shard_dispatch(struct shard *shard)
{
	shard->store->ops->dispatch(shard->store);
	shard_tell_guard(shard);
	engine_stir(shard->engine);
}

static struct lock_policy policy_of(void *context, const char *path)
{
	return shard_policy(context, path);
}

struct lock_policy shard_policy(const struct shard *shard, const char *path)
{
	char *plain = file_path_plain(path); /* of a lock on a lock file, too */
	struct lock_policy policy =
		config_policy(shard->filesystem->config, plain != NULL ? plain : path);
	free(plain);
	return policy;
}

void shards_reload(struct shards *shards, const struct config *config)
{
	for (size_t i = 0; i < shards->count; i++) {
		engine_change_slots(shards->list[i].engine, policy_of, &shards->list[i]);
		plan_sweep(&shards->list[i], config);
		reload_presence(&shards->list[i]);
		engine_stir(shards->list[i].engine);
	}
}

void shards_drain(struct shards *shards, bool drains)
{
	for (size_t i = 0; i < shards->count; i++) {
		engine_drain(shards->list[i].engine, drains);
		reload_presence(&shards->list[i]);
	}
}

bool shards_drained(const struct shards *shards)
{
	return engine_drains(shards->list[0].engine);
}

bool shards_doubt(struct shards *shards, int64_t now_ms)
{
	bool doubtful = false;

	for (size_t i = 0; i < shards->count; i++)
		doubtful |= engine_doubt(shards->list[i].engine, now_ms);
	return doubtful;
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
	return a_ms < b_ms ? a_ms : b_ms;
}

static void conclude(struct shards *shards, const struct shard *shard)
{
	int64_t timeout_ms;
	int64_t lease_ms = engine_held_lease(shard->engine, &timeout_ms);

	shards->lease_ms = earlier(shards->lease_ms, lease_ms);
	if (lease_ms != INT64_MAX)
		shards->timeout_ms = earlier(shards->timeout_ms, timeout_ms);
	shards->due_ms = earlier(shards->due_ms, engine_deadline(shard->engine));
	shards->due_ms = earlier(shards->due_ms, tend_deadline(shard));
	shards->due_ms = earlier(shards->due_ms, presence_deadline(shard));
	if (shard->sweep_ms != INT64_MAX && can_sweep(shard))
		shards->due_ms = earlier(shards->due_ms, shard->sweep_ms);
	shard_tell_guard(shard);
}

void shards_conclude(struct shards *shards)
{
	uint64_t stirs = 0;

	for (size_t i = 0; i < shards->count; i++)
		stirs += engine_stirs(shards->list[i].engine);
	if (stirs == shards->stirs)
		return;
	shards->stirs = stirs;
	shards->due_ms = shards->lease_ms = shards->timeout_ms = INT64_MAX;
	for (size_t i = 0; i < shards->count; i++)
		conclude(shards, &shards->list[i]);
}
