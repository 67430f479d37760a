/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Redis server knows of the keys of one host, and when they end. faulty_servers.c's own.
 *
 *   rule                                          where it is from (Redis 6.0 to 7.4)
 *   --------------------------------------------  -------------------------------------------------
 *   A key ends T after what set or renewed it     stores/redis/lease.h
 *   was carried out, or a millisecond later.
 *   What is asked while the server stands still   (it has one thread)
 *   is carried out when it goes on.
 *   Nothing else renews a key: no connection, no  (there is no session)
 *   other request.
 *
 * All keys of a host are one session here, that of the eldest: it is set when the session begins,
 * and a proof renews it, or a touch (faulty_lease.c). Single-threaded.
 */
#ifndef DLOCKFS_FAULTY_KEYS_H
#define DLOCKFS_FAULTY_KEYS_H

#include "store_faulty.h"

struct keys {
	const struct faulty_settings *settings;
	int64_t renewed_ms;
};

/* The keys are set. */
void keys_begin(struct keys *keys, const struct faulty_settings *settings);

/* A proof, or a touch, is carried out. */
void keys_renew(struct keys *keys);

/* When they end. */
int64_t keys_end_ms(const struct keys *keys);

#endif
