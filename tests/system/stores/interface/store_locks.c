/* SPDX-License-Identifier: Apache-2.0 */
#include "store_locks.h"

const char *folder;
struct call placed[LOCKS], withdrawn[LOCKS];

const char *path_of(int i)
{
	static char text[32];

	snprintf(text, sizeof(text), "%s/%d", folder, i);
	return text;
}

void send_all(struct host *host)
{
	for (int i = 0; i < LOCKS; i++)
		send_place(host, &placed[i], path_of(i), (uint32_t)i, CLAIM_EXCLUSIVE, i % 2 == 0);
}

void place_all(struct host *host)
{
	send_all(host);
	for (int i = 0; i < LOCKS; i++) {
		WAIT_FOR(placed[i].times);
		assert_int_equal(placed[i].error, 0);
	}
}

void withdraw_all(struct host *host)
{
	memset(withdrawn, 0, sizeof(withdrawn));
	for (int i = 0; i < LOCKS; i++)
		host->store->ops->withdraw(host->store, nobody_is_told(), &withdrawn[i], path_of(i),
					   placed[i].name, placed[i].order, false);
	for (int i = 0; i < LOCKS; i++) {
		WAIT_FOR(withdrawn[i].times);
		assert_int_equal(withdrawn[i].error, 0);
	}
}

void expect_claims(struct host *host, size_t count, int with_other)
{
	struct call all;

	for (int i = 0; i < LOCKS; i++) {
		list(host, &all, path_of(i), true);
		assert_int_equal(all.error, 0);
		assert_int_equal(all.count, count + (i == with_other));
	}
}
