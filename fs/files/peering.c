/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Loop thread.
 */
#include "files/peering.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "files/filesystem.h"
#include "files/stores.h"
#include "peers/peers.h"

static struct engine_peer pack(const struct peers_asker *asker)
{
	struct engine_peer packed = {0};

	_Static_assert(sizeof(*asker) <= sizeof(packed.bytes), "an engine_peer has room for it");
	memcpy(packed.bytes, asker, sizeof(*asker));
	return packed;
}

static struct peers_asker unpack(const struct engine_peer *packed)
{
	struct peers_asker asker;

	memcpy(&asker, packed->bytes, sizeof(asker));
	return asker;
}

static struct engine *engine_of(void *context, size_t store)
{
	const struct shards *shards = context;

	return shards->list[store].engine;
}

static void on_ask(void *context, size_t store, const struct peers_asker *asker, const char *path,
		   const char *name, const char *claim)
{
	const struct engine_peer peer = pack(asker);

	engine_peer_asked(engine_of(context, store), path, name, claim, &peer);
}

static void on_told(void *context, size_t store, const struct peers_asker *teller, const char *path,
		    const char *claim, const char *const *names, size_t count)
{
	const struct engine_peer peer = pack(teller);

	engine_peer_told(engine_of(context, store), path, claim, names, count, &peer);
}

static const struct peers_events events = {.on_ask = on_ask, .on_told = on_told};

/* Whether other hosts see the queues of the store. */
static bool has_peers(const struct config_store *store)
{
	const struct store_kind *kind = stores_find(store->url.scheme);

	return kind->is_remote && !kind->keeps_claims;
}

/* Whether the servers know who asks, or nobody else reads it, but not by a secret that all hosts
 * have. */
static bool is_guarded(const struct store_access *access, bool has_secret)
{
	return !has_secret && (access->tls_ca != NULL || access->tls_certificate != NULL ||
			       access->sasl_mechanism != NULL);
}

/* NULL: it takes no part. */
static struct seal *make_seal(const struct config_store *store)
{
	const struct store_access *access = &store->access;
	const struct secret *secret =
		access->digest.secret != NULL ? access->digest.secret : access->password.secret;
	const char *line = secret != NULL ? secret_next(secret, NULL) : "";

	if (!has_peers(store) || is_guarded(access, secret != NULL))
		return NULL;
	return seal_create(store->url.scheme, store->url.root, access->user, line);
}

int peering_open(struct shards *shards)
{
	return peers_create(shards->count, &events, shards, &shards->peers);
}

void peering_close(struct shards *shards)
{
	peers_destroy(shards->peers);
	shards->peers = NULL;
}

/* Returns whether it takes part. */
static bool take_part(struct shards *shards, size_t number, const struct config_store *store)
{
	bool has_secret =
		store->access.digest.secret != NULL || store->access.password.secret != NULL;
	struct seal *seal = make_seal(store);

	peers_set_seal(shards->peers, number, seal);
	if (has_peers(store) && is_guarded(&store->access, has_secret))
		log_warning("[store%s%s%s]: TLS or SASL without digest_file or "
			    "etcd_password_file, by which other hosts would know this one: peers "
			    "is not used there",
			    *store->prefix ? " \"" : "", store->prefix, *store->prefix ? "\"" : "");
	return seal != NULL;
}

void peering_listen(struct shards *shards, const struct config *config, int64_t now_ms)
{
	if (config->read_only)
		return;
	for (size_t i = 0; i < shards->count; i++)
		engine_set_peers(shards->list[i].engine,
				 config->peers != NULL && take_part(shards, i, &config->stores[i]));
	peers_listen(shards->peers, config->peers, CONFIG_PEERS_PORT, now_ms);
}

const char *peering_address(const struct shard *shard)
{
	const struct shards *shards = shard->filesystem->shards;

	return shards->peers != NULL ? peers_address(shards->peers, shard_number(shard)) : NULL;
}

void peering_ask(void *context, const char *path, const char *rival, const char *peer,
		 const char *claim)
{
	const struct shard *shard = context;
	struct peers *peers = shard->filesystem->shards->peers;

	if (peers != NULL)
		peers_ask(peers, shard_number(shard), peer, path, rival, claim, clock_now_ms());
}

void peering_tell(void *context, const char *path, const struct engine_peer *asker,
		  const char *claim, const char *const *names, size_t count)
{
	const struct shard *shard = context;
	struct peers *peers = shard->filesystem->shards->peers;
	const struct peers_asker to = unpack(asker);

	if (peers != NULL)
		peers_tell(peers, shard_number(shard), &to, path, claim, names, count);
}
