/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_servers.h. Single-threaded.
 */
#include "faulty_servers.h"

static void zookeeper_begin(struct servers *servers, const struct faulty_settings *settings)
{
	leader_begin(&servers->of.zookeeper, settings);
}

static void zookeeper_connect(struct servers *servers)
{
	leader_connect(&servers->of.zookeeper);
}

static void zookeeper_disconnect(struct servers *servers, bool lost)
{
	leader_lose_server(&servers->of.zookeeper, lost);
}

static void zookeeper_set_silent(struct servers *servers, bool silent)
{
	leader_set_silent(&servers->of.zookeeper, silent);
}

static uint64_t zookeeper_note(struct servers *servers, bool renews)
{
	leader_note(&servers->of.zookeeper);
	return 0;
}

static void zookeeper_cut_off(struct servers *servers, bool cut_off)
{
	leader_cut_off(&servers->of.zookeeper, cut_off);
}

static bool zookeeper_glimpse(struct servers *servers)
{
	return leader_glimpse(&servers->of.zookeeper);
}

static void zookeeper_elect(struct servers *servers)
{
	leader_elect(&servers->of.zookeeper);
}

static int64_t zookeeper_soonest_ms(struct servers *servers)
{
	return leader_soonest_ms(&servers->of.zookeeper);
}

static int64_t zookeeper_expiry_ms(struct servers *servers)
{
	return leader_expiry_ms(&servers->of.zookeeper);
}

const struct servers_rules servers_zookeeper = {
	.begin = zookeeper_begin,
	.connect = zookeeper_connect,
	.disconnect = zookeeper_disconnect,
	.set_silent = zookeeper_set_silent,
	.note = zookeeper_note,
	.cut_off = zookeeper_cut_off,
	.glimpse = zookeeper_glimpse,
	.elect = zookeeper_elect,
	.soonest_ms = zookeeper_soonest_ms,
	.expiry_ms = zookeeper_expiry_ms,
};

static void etcd_begin(struct servers *servers, const struct faulty_settings *settings)
{
	members_begin(&servers->of.etcd, settings);
}

static void etcd_connect(struct servers *servers)
{
	members_connect(&servers->of.etcd);
}

static void etcd_disconnect(struct servers *servers, bool lost)
{
	members_cut_off(&servers->of.etcd, false);
}

static void etcd_set_silent(struct servers *servers, bool silent)
{
	/* Nothing is sent that the store does not send. */
}

static uint64_t etcd_note(struct servers *servers, bool renews)
{
	return members_carry_out(&servers->of.etcd);
}

static uint64_t etcd_keep(struct servers *servers)
{
	return members_keep(&servers->of.etcd);
}

static void etcd_cut_off(struct servers *servers, bool cut_off)
{
	members_cut_off(&servers->of.etcd, cut_off);
}

static void etcd_elect(struct servers *servers)
{
	members_elect(&servers->of.etcd);
}

static int64_t etcd_soonest_ms(struct servers *servers)
{
	return members_soonest_ms(&servers->of.etcd);
}

static int64_t etcd_expiry_ms(struct servers *servers)
{
	return members_expiry_ms(&servers->of.etcd);
}

static bool etcd_put_off(struct servers *servers)
{
	return members_put_off(&servers->of.etcd);
}

static void etcd_doubt(struct servers *servers)
{
	members_doubt(&servers->of.etcd);
}

const struct servers_rules servers_etcd = {
	.begin = etcd_begin,
	.connect = etcd_connect,
	.disconnect = etcd_disconnect,
	.set_silent = etcd_set_silent,
	.note = etcd_note,
	.keep = etcd_keep,
	.cut_off = etcd_cut_off,
	.elect = etcd_elect,
	.soonest_ms = etcd_soonest_ms,
	.expiry_ms = etcd_expiry_ms,
	.put_off = etcd_put_off,
	.doubt = etcd_doubt,
};

static void redis_begin(struct servers *servers, const struct faulty_settings *settings)
{
	keys_begin(&servers->of.redis, settings);
}

static void redis_connect(struct servers *servers)
{
	/* There is one server, and it knows no connections. */
}

static void redis_disconnect(struct servers *servers, bool lost)
{
	/* It keeps the keys. */
}

static void redis_set_silent(struct servers *servers, bool silent)
{
	/* Nothing is sent that the store does not send. */
}

static uint64_t redis_note(struct servers *servers, bool renews)
{
	if (renews)
		keys_renew(&servers->of.redis);
	return 0;
}

static void redis_cut_off(struct servers *servers, bool cut_off)
{
	/* It needs no others. */
}

static void redis_elect(struct servers *servers)
{
	/* Likewise. */
}

static int64_t redis_end_ms(struct servers *servers)
{
	return keys_end_ms(&servers->of.redis);
}

const struct servers_rules servers_redis = {
	.begin = redis_begin,
	.connect = redis_connect,
	.disconnect = redis_disconnect,
	.set_silent = redis_set_silent,
	.note = redis_note,
	.cut_off = redis_cut_off,
	.elect = redis_elect,
	.soonest_ms = redis_end_ms,
	.expiry_ms = redis_end_ms,
};
