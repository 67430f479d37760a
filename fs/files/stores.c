/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of stores. Any thread.
 */
#include "files/stores.h"

#include <assert.h>
#include <string.h>

#ifdef HAVE_ETCD
#include "stores/etcd/store.h"
#endif
#include "stores/local/store.h"
#ifdef HAVE_REDIS
#include "stores/redis/store.h"
#endif
#include "stores/zookeeper/store.h"

static const struct store_kind *const kinds[] = {
	&store_local_kind,
	&store_zookeeper_kind,
#ifdef HAVE_ETCD
	&store_etcd_kind,
#endif
#ifdef HAVE_REDIS
	&store_redis_kind,
#endif
};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

const struct store_kind *stores_find(const char *scheme)
{
	size_t i;

	for (i = 0; strcmp(kinds[i]->scheme, scheme) != 0; i++)
		assert(i + 1 < KINDS);
	return kinds[i];
}

const struct store_kind *stores_find_saved(struct state_reader *in)
{
	for (size_t i = 0; i < KINDS; i++) {
		if (state_find_flag(in, kinds[i]->scheme))
			return kinds[i];
	}
	return &store_local_kind;
}
