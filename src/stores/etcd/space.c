/* SPDX-License-Identifier: Apache-2.0
 *
 * space() of the etcd store: the member that there is a connection to is asked for its status,
 * which it answers by itself, without the others, to everybody, and also while it takes no keys.
 * With the errors of the status it tells the alarms of the cluster (maintenance.go: Status() adds
 * the text of each, "memberID:1 alarm:NOSPACE "), so that no request about alarms is needed, which
 * would go through the quorum. Loop thread only.
 */
#include "stores/etcd/space.h"

#include <string.h>

#include "base/clock.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"

enum {
	FIRST_MS = 1000, /* behind the connection, and what waits for it */
	PAUSE_MS = 30000,
	LIMIT_MS = 5000,
};

#define DEFAULT_QUOTA_BYTES ((int64_t)2 << 30) /* DefaultQuotaBytes of etcd's quota.go */

static const struct store_space unknown = {
	.names = -1,
	.bytes = -1,
	.bytes_in_use = -1,
	.quota_bytes = -1,
};

static bool has_alarm(const Etcd__StatusResponse *answer, const char *alarm)
{
	for (size_t i = 0; i < answer->n_errors; i++)
		if (strstr(answer->errors[i], alarm) != NULL)
			return true;
	return false;
}

struct store_space etcd_space_read(const Etcd__StatusResponse *answer)
{
	bool is_default = answer->db_size_quota <= 0;

	return (struct store_space){
		.names = -1,
		.bytes = answer->db_size >= 0 ? answer->db_size : -1,
		.bytes_in_use = answer->db_size_in_use >= 0 ? answer->db_size_in_use : -1,
		.quota_bytes = is_default ? DEFAULT_QUOTA_BYTES : answer->db_size_quota,
		.is_default = is_default,
		.is_full = has_alarm(answer, "alarm:NOSPACE"),
		.is_corrupt = has_alarm(answer, "alarm:CORRUPT"),
	};
}

static void on_status(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct store_etcd *store = context;
	Etcd__StatusResponse *answer =
		etcd_message_read(&etcd__status_response__descriptor, bytes, count);

	store->space.is_asked = false;
	store->space.known = answer != NULL ? etcd_space_read(answer) : unknown;
	etcd__status_response__free_unpacked(answer, NULL);
}

void etcd_space_init(struct store_etcd *store)
{
	store->space.known = unknown;
	store->space.due_ms = INT64_MAX;
}

void etcd_space_connected(struct store_etcd *store)
{
	store->space.due_ms = clock_now_ms() + FIRST_MS;
}

void etcd_space_on_time(struct store_etcd *store, int64_t now_ms)
{
	if (etcd_space_next_ms(store) > now_ms)
		return;
	store->space.due_ms = now_ms + PAUSE_MS;
	store->space.is_asked = grpc_call(store->grpc, ETCD_STATUS_METHOD, "", 0, LIMIT_MS,
					  on_status, store) != NULL;
}

int64_t etcd_space_next_ms(const struct store_etcd *store)
{
	return grpc_is_connected(store->grpc) && !store->space.is_asked ? store->space.due_ms
									: INT64_MAX;
}

void etcd_space(const struct store *base, struct store_space *ret)
{
	*ret = ((const struct store_etcd *)base)->space.known;
}
