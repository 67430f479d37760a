/* SPDX-License-Identifier: Apache-2.0
 *
 * What other hosts say of the ends of claims, between the engines of the shards and the socket
 * (peers/peers.h).
 *
 * A store takes part if it has queues that other hosts see, and if packets are as safe as what goes
 * to its servers: with a secret that all hosts have (digest_file, or user and password of etcd), or
 * if the connection to the servers is in plain text as well. Not with TLS or SASL alone.
 *
 * Loop thread; nothing blocks.
 */
#ifndef DLOCKFS_FILES_PEERING_H
#define DLOCKFS_FILES_PEERING_H

#include "files/shard.h"

/* Makes shards->peers, which does not listen yet. The shards are not to move. Returns 0 or -errno.
 */
int peering_open(struct shards *shards);

void peering_close(struct shards *shards);

/* Listens where the configuration says. When the daemon begins to serve, and when the configuration
 * was read anew. */
void peering_listen(struct shards *shards, const struct config *config, int64_t now_ms);

/* The address for claims of the shard; NULL: there is none. */
const char *peering_address(const struct shard *shard);

/* The engine's events. */
void peering_ask(void *context, const char *path, const char *rival, const char *peer,
		 const char *claim);
void peering_tell(void *context, const char *path, const struct engine_peer *asker,
		  const char *claim, const char *const *names, size_t count);

#endif
