/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns engines and stores. Loop thread only.
 */
#include "shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "escape.h"
#include "filesystem.h"
#include "store_local.h"
#include "store_zookeeper.h"

/* In a label a backslash is written as two (Prometheus, "Exposition formats"); escape.h leaves no
 * other byte that would need it. */
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

static int open_engine(struct shard *shard)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -errno;
	shard->engine = engine_create(&filesystem_engine_events, shard, seed);
	return shard->engine != NULL ? 0 : -ENOMEM;
}

static int open_store(struct shard *shard, const struct config_store *store,
		      int64_t session_timeout_ms, const struct shard_former *former)
{
	const struct store_url *url = &store->url;
	struct store_zookeeper_options options = {
		.servers = url->servers,
		.root = url->root,
		.access = &store->access,
		.session_timeout_ms = session_timeout_ms,
		.statistics = &shard->statistics,
		.session = former != NULL && former->has_session ? &former->session : NULL,
	};

	shard->has_statistics = url->kind == STORE_KIND_ZOOKEEPER;
	if (shard->has_statistics && former != NULL && former->rehearsal)
		return 0;
	if (shard->has_statistics)
		return store_zookeeper_open(&options, &engine_store_events, shard->engine,
					    &shard->store);
	shard->service = local_service_create();
	if (shard->service == NULL)
		return -ENOMEM;
	return store_local_open(shard->service, &engine_store_events, shard->engine, &shard->store);
}

static int open_shard(struct shard *shard, const struct config *config, size_t index,
		      const struct shard_former *former)
{
	const struct config_store *store = &config->stores[index];
	int error = open_engine(shard);

	shard->prefix = store->prefix;
	shard->label = make_label(store->prefix);
	if (error == 0 && shard->label == NULL)
		error = -ENOMEM;
	if (error == 0)
		error = open_store(shard, store, config_session_timeout_ms(config, index), former);
	if (error != 0 || shard->store == NULL)
		return error;
	engine_set_store(shard->engine, shard->store);
	shard->viewer = viewer_create(shard->store, shard->engine);
	return shard->viewer != NULL ? 0 : -ENOMEM;
}

/* ZooKeeper's client would trust the authorities of the system beside those of tls_ca, and does not
 * look whose the certificate is that a server shows: OpenSSL finds none of them in these places. To
 * be called before there are threads, which could be reading the environment. */
static void trust_no_others(void)
{
	setenv("SSL_CERT_FILE", "/dev/null", true);
	setenv("SSL_CERT_DIR", "/dev/null", true);
}

int shards_open(const struct config *config, const struct shard_former *former, struct shard **ret,
		size_t *ret_count)
{
	struct shard *shards = calloc(config->store_count, sizeof(*shards));
	int error = shards != NULL ? 0 : -ENOMEM;

	trust_no_others();
	for (size_t i = 0; error == 0 && i < config->store_count; i++)
		error = open_shard(&shards[i], config, i, former != NULL ? &former[i] : NULL);
	if (error != 0) {
		shards_close(shards, shards != NULL ? config->store_count : 0);
		return error;
	}
	*ret = shards;
	*ret_count = config->store_count;
	return 0;
}

static void *close_store(void *context)
{
	struct store *store = context;
	store->ops->close(store);
	return NULL;
}

/* The last one needs no thread. */
static void close_stores(struct shard *shards, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct shard *shard = &shards[i];
		if (shard->store == NULL)
			continue;
		shard->has_closer = i + 1 < count && pthread_create(&shard->closer, NULL,
								    close_store, shard->store) == 0;
		if (!shard->has_closer)
			close_store(shard->store);
	}
	for (size_t i = 0; i < count; i++) {
		if (shards[i].has_closer)
			pthread_join(shards[i].closer, NULL);
	}
}

void shards_close(struct shard *shards, size_t count)
{
	close_stores(shards, count);
	for (size_t i = 0; i < count; i++) {
		viewer_destroy(shards[i].viewer);
		if (shards[i].service != NULL)
			local_service_destroy(shards[i].service);
		engine_destroy(shards[i].engine);
		free(shards[i].label);
	}
	free(shards);
}

void shards_advance(struct shard *shards, size_t count, int64_t now_ms)
{
	for (size_t i = 0; i < count; i++)
		engine_advance(shards[i].engine, now_ms);
}

int64_t shards_deadline(const struct shard *shards, size_t count)
{
	int64_t first_ms = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		int64_t deadline_ms = engine_deadline(shards[i].engine);
		if (deadline_ms < first_ms)
			first_ms = deadline_ms;
	}
	return first_ms;
}
