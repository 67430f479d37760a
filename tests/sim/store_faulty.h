/* SPDX-License-Identifier: Apache-2.0
 *
 * A store between the engine and a store_local whose network is bad on purpose: operations take a
 * while to the service and answers a while back, connections break, sessions expire. What is called
 * through it follows the rules of stores/store.h as exactly as a real client of a real service
 * does:
 *
 *   - operations arrive in the order of their calls, on one connection; or only those on one lock
 * do (faulty_rules);
 *   - when the connection breaks, the first few of those under way still take effect, now or later
 * but before anything that is sent on the next connection, and the others never do; every one of
 * them is answered -ECONNRESET;
 *   - the client notices a broken connection a while after it broke;
 *   - what is called without a connection waits for one or is answered -ECONNRESET, by chance;
 *   - a watch whose setting was confirmed survives, and tells after the reconnect; when it has told
 * of new data it is set up anew, which can fail as at first;
 *   - so does an attention whose list was answered;
 *   - the service ends the session when its leader has not heard of it for its timeout
 * (faulty_leader.h, faulty_members.h), and the client hears of that only when it is back;
 *   - a server that is cut off from the service answers reads, perhaps by what was then, keeps
 * writes, and looks well;
 *   - a server that the client comes to after a broken connection may not know yet what took effect
 * at last on the former one;
 *   - what stands in a queue and does not end with a session is listed until it was watched on this
 * connection;
 *   - a session that the client gives up (renew) lives on at the service until it is closed or its
 * timeout is over, and what was under way in it may still take effect.
 *
 * Time is a variable of the caller's. Nothing happens by itself: the caller asks when something is
 * due and lets it happen. Single-threaded.
 */
#ifndef DLOCKFS_STORE_FAULTY_H
#define DLOCKFS_STORE_FAULTY_H

#include "prng.h"
#include "stores/local/store.h"

struct unclaimed_set;
struct faulty_lease_rules;
struct servers_rules;

/* What differs between kinds of services. */
struct faulty_rules {
	const char *name;
	const struct faulty_lease_rules *lease; /* faulty_lease.h */
	const struct servers_rules *servers;	/* faulty_servers.h */
	int64_t order_late, order_unsure;	/* as in stores/store.h */
	/* Only operations on one lock are in order, one after the other; watches have a stream of
	 * their own, and are set up again by the store itself (stores/etcd/operation.h). Else what
	 * is called and what happens keeps one order. */
	bool by_lock;
	bool tells_ends;  /* a watch that was set up tells whether its claim's host has withdrawn it
			   */
	bool asks_quorum; /* a server that is cut off, or behind, answers no reads by itself */
};

extern const struct faulty_rules faulty_zookeeper, faulty_etcd, faulty_redis;

struct faulty_settings {
	const int64_t *now_ms;
	struct prng *prng;
	int64_t delay_ms;		  /* one way takes 0 to so long */
	int64_t timeout_ms;		  /* of the session */
	const struct faulty_rules *rules; /* NULL: ZooKeeper's */
	int64_t tick_ms;       /* of the servers (faulty_leader.h), at most half the timeout; */
	int64_t tick_phase_ms; /* so long before the beginning one of the leader's ticks was; or so
				  late etcd's is to end a lease */
	int64_t ping_delay_ms; /* a leader's ping takes 0 to so long */
	int leader_percent;    /* so many connections are to the leader */
	int wait_percent;      /* so many operations without a connection wait for one */
	int unlisted_percent;  /* so often place() brings no list, though it was asked for one */
	int refused_percent;   /* so many operations have no effect and are answered -EIO */
	int stale_percent;     /* so many servers that are cut off, or come to, show what was */
	int nudge_percent;     /* so often there is another server to turn to */

	/* What else stands in the queues (unclaimed.h); NULL: nothing. */
	const struct unclaimed_set *unclaimed;

	/* What time it is by the client's clock, and the first moment at which that shows a time,
	 * or a later one; NULL: now_ms. */
	int64_t (*clock_ms)(const void *context);
	int64_t (*moment_ms)(const void *context, int64_t clock_ms);

	/* For who checks, all may be NULL. Called when a claim has come to stand in its queue, also
	 * if the client never hears of it, and whether in a session that was given up; when one is
	 * asked to be withdrawn, before that has any effect, and by bequeath(); for each operation
	 * but touch() when it is called, after it is under way; when renew() is, before that has
	 * any effect; and when the session is given up. */
	void *context;
	void (*on_standing)(void *context, bool over, const char *path, const char *name,
			    const char *text);
	void (*on_withdrawing)(void *context, const char *path, const char *name);
	void (*on_turned)(void *context, const char *path, const char *name); /* hold() is done */
	void (*on_bequeathing)(void *context, const char *path, const char *name, const char *heir);
	void (*on_operation)(void *context, struct store *store);
	void (*on_renewing)(void *context);
	void (*on_renewed)(void *context);
};

/* Returns 0 and the store in *ret, or -errno. The settings are copied. */
int store_faulty_open(struct local_service *service, const struct faulty_settings *settings,
		      const struct store_events *events, void *context, struct store **ret);

/* When the next thing happens; INT64_MAX: nothing will. To be asked whenever something happened at
 * the service, because that may concern this client too. */
int64_t store_faulty_due(struct store *store);

/* Lets the first thing that is due happen: one operation arrives, one event is delivered, a break
 * is noticed, the session expires. Returns false if nothing is due. dispatch() does it until then.
 */
bool store_faulty_step(struct store *store);

/* How many operations are on their way to the service. */
size_t store_faulty_under_way(const struct store *store);

/* Breaks the connection, if there is one. The first `effective` operations under way still take
 * effect within late_ms; the client notices after notice_ms. */
void store_faulty_break(struct store *store, size_t effective, int64_t late_ms, int64_t notice_ms);

/* Connects again, if there is no connection: to the session if it lives, to a new one otherwise. */
void store_faulty_reconnect(struct store *store);

/* The service ends the session now, before its time, as nobody but an operator can make it do; its
 * connection breaks. */
void store_faulty_expire(struct store *store);

/* The server that the client is connected to is cut off from the others, if there is a connection;
 * the client does not notice. Ends when the connection breaks, or by healing: what was sent arrives
 * then, but if the session is over the connection breaks; and a server that lags keeps up. */
void store_faulty_cut_off(struct store *store);
void store_faulty_heal(struct store *store);

/* The server is not cut off for a moment: what was sent arrives, and is answered; but of what it
 * tells the leader by itself nothing arrives. Returns false if that cannot be. */
bool store_faulty_glimpse(struct store *store);

/* Another server begins to lead: all connections break, and the client notices after notice_ms; but
 * a server that is cut off takes no part. */
void store_faulty_elect(struct store *store, int64_t notice_ms);

/* The client does not run, until it does again: events pile up, and the service hears nothing. */
void store_faulty_pause(struct store *store, bool paused);

/* The client is dead: it hears nothing any more. The session goes on until it expires. */
void store_faulty_kill(struct store *store);

/* The client is dead, and another one is to connect to its session: what was sent may arrive, and
 * nobody hears of it, nor of what was watched. The same with the context of its events. */
void store_faulty_succeed(struct store *store);
void store_faulty_set_context(struct store *store, void *context);

bool store_faulty_is_connected(const struct store *store);

/* Nothing is under way, on no way, but touch(). */
bool store_faulty_is_quiet(const struct store *store);

/* An operation is not sent before the answer to another one is there. */
bool store_faulty_is_behind(const struct store *store);

/* A session that the client has given up goes on at the service. */
bool store_faulty_has_given_up(const struct store *store);

bool store_faulty_is_cut_off(const struct store *store);

/* What the client was told last is that it is connected. */
bool store_faulty_told_connected(const struct store *store);

/* The session is over, or could be if its server had just been lost. */
bool store_faulty_may_be_over(const struct store *store);

/* When it can be over at the earliest if its server is lost now; INT64_MIN: it is. */
int64_t store_faulty_soonest_end_ms(const struct store *store);

/* The session is over, and the client has not heard of it. */
bool store_faulty_is_expired(const struct store *store);

#endif
