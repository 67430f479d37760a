/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what every file of the store needs. Must not know what operations are for. Loop thread.
 */
#include "stores/etcd/state.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

void etcd_wake(struct store_etcd *store)
{
	const uint64_t one = 1;

	if (store->loop.is_awake)
		return;
	store->loop.is_awake = true;
	while (write(store->loop.wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void etcd_starve(struct store_etcd *store)
{
	store->session.is_starved = store->session.is_over = true;
	etcd_wake(store);
}

bool etcd_is_open(const struct store_etcd *store)
{
	return store->session.step == SESSION_CONNECTED && grpc_is_connected(store->grpc);
}

void etcd_note_seen(struct store_etcd *store, const Etcd__Header *header)
{
	if (header->revision > store->epoch.seen)
		store->epoch.seen = header->revision;
}

enum etcd_meaning etcd_meaning(const struct store_etcd *store, int status, const char *text)
{
	return etcd_refusal_meaning(status, text, store->access.user != NULL);
}

int etcd_error(struct store_etcd *store, int status, const char *text, const char *doing,
	       const char *path)
{
	int error = -EIO;

	switch (etcd_meaning(store, status, text)) {
	case ETCD_DONE:
		return 0;
	case ETCD_LEASE_GONE:
		store->session.is_over = true;
		etcd_wake(store);
		return -ECONNRESET;
	case ETCD_IN_DOUBT: /* it may be carried out yet: see operation.h */
	case ETCD_STRANGER: /* the next connection begins with who we are */
		grpc_leave(store->grpc);
		return -ECONNRESET;
	case ETCD_DENIED:
		error = -EACCES;
		break;
	case ETCD_TOO_LARGE:
		error = -EMSGSIZE;
		break;
	case ETCD_BUSY:
	case ETCD_FULL:
	case ETCD_LONG:
	case ETCD_WRONG:
	case ETCD_LEASE_TAKEN:
	case ETCD_NO_USERS:
		break;
	}
	if (log_limit_passes(&store->refusals, clock_now_ms(), doing, path, strlen(path), status))
		log_error("etcd: %s %s: %s", doing, path, *text ? text : "refused");
	return error;
}
