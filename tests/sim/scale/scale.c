/* SPDX-License-Identifier: Apache-2.0
 *
 * What many hosts ask of a service: the engines of all of them, one service, a network without
 * faults but those that are named, and a clock that is moved. Every request of the engines is
 * counted. The client library of ZooKeeper and the connections below are not in this: the table of
 * etc/doc/scale.md says what they add.
 *
 *   fill           all callers ask for their locks, so many of them a second
 *   turns          holders release, so many a second, and ask again at the end of the queue
 *   hold           nobody does anything
 *   leader change  all connections break at one moment, and come back within a second
 *   rack           some hosts are cut off for two session timeouts, and back at one moment; whose
 *                  locks are lost asks again at once
 *
 * scale [--store zookeeper|etcd] [--hosts N] [--locks N] [--callers N]. Prints a line for each of
 * these: grants, requests of each kind, the most requests in a tenth of a second, and how many
 * milliseconds after the last act every lock has a holder and no request is under way. Fails if a
 * lock gets no holder, or two.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine.h"
#include "store_faulty.h"
#include "../../told.h"

enum { TIMEOUT_MS = 15000, BUCKET_MS = 100, FILL_MS = 60000, TURNS_MS = 10000, BACK_MS = 1000 };
enum { RACK = 40, RACK_MS = 30000, END_MS = 300000 };

struct caller {
	struct host *host;
	int lock;
	struct owner *owner;
	struct wish *wish;
	struct caller *next; /* among those that are to do something */
};

struct host {
	struct engine *engine;
	struct store *store;
	int64_t back_ms; /* when it connects again; INT64_MAX: it is connected */
};

/* Requests, by what they cost the service. */
struct costs {
	uint64_t writes, reads, watches;
	uint64_t signs; /* of life: heartbeats, and what is between them */
};

static struct {
	int hosts_count, locks_count, callers_count;
	struct host *hosts;
	struct caller *callers;
	struct caller **holders; /* of the locks; NULL: nobody */
	struct caller *lost;	 /* a list */
	struct local_service *service;
	struct prng prng;
	int64_t now_ms;
	uint64_t grants;
	struct costs costs;
	uint64_t bucket, most; /* requests in this part of a second, and in the fullest one */
	const struct faulty_rules *rules;
} world = {.hosts_count = 1000,
	   .locks_count = 100000,
	   .callers_count = 1000000,
	   .rules = &faulty_zookeeper};

static const struct lock_policy policy = {.wait_limit_ms = CONFIG_FOREVER,
					  .try_limit_ms = 1000,
					  .linger_ms = 40,
					  .process_ranges = 1000,
					  .file_ranges = 1000};

static void fail(const char *what)
{
	fprintf(stderr, "scale: %s\n", what);
	exit(1);
}

/* In place of the daemon's: a lock that is lost is no error here. */

void log_hold(void)
{
}

void log_resume(void)
{
}

void log_write(enum log_level level, const char *format, ...)
{
}

void log_write_lock(enum log_level level, const char *lock, const char *format, ...)
{
}

static void *allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (memory == NULL)
		fail("out of memory");
	return memory;
}

/* What the engines ask, counted on its way to the store */

static struct store_ops counting, asked;

static void count(uint64_t *cost)
{
	++*cost;
	world.bucket++;
}

static void place(struct store *store, void *tag, const char *path, const struct claim_name *name,
		  const char *text, bool list, void *attention)
{
	count(&world.costs.writes);
	if (list)
		count(&world.costs.reads);
	asked.place(store, tag, path, name, text, list, attention);
}

static void list(struct store *store, void *tag, const char *path, bool sync, bool attend)
{
	count(&world.costs.reads);
	asked.list(store, tag, path, sync, attend);
}

static void amend(struct store *store, void *tag, const char *path, const char *name,
		  const char *text, uint32_t version)
{
	count(&world.costs.writes);
	asked.amend(store, tag, path, name, text, version);
}

static void watch(struct store *store, void *tag, const char *path, const char *name)
{
	count(&world.costs.watches);
	asked.watch(store, tag, path, name);
}

static void withdraw(struct store *store, const struct store_told *told, void *tag,
		     const char *path, const char *name, int64_t order, bool drops)
{
	count(&world.costs.writes);
	asked.withdraw(store, told, tag, path, name, order, drops);
}

static void prove(struct store *store, void *tag, const struct store_proof *proofs, size_t number)
{
	count(tag == NULL ? &world.costs.signs : &world.costs.writes);
	asked.prove(store, tag, proofs, number);
}

static void touch(struct store *store)
{
	count(&world.costs.signs);
	asked.touch(store);
}

static void count_requests_of(struct store *store)
{
	asked = counting = *store->ops;
	counting.place = place;
	counting.list = list;
	counting.amend = amend;
	counting.watch = watch;
	counting.withdraw = withdraw;
	counting.prove = prove;
	counting.touch = touch;
}

/* The callers */

static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	strcpy(text, "format=1\nhost=here\npid=1\n");
}

static void on_decided(void *context, void *cookie, int result)
{
	struct caller *caller = cookie;

	if (result != 0)
		fail(strerror(-result));
	if (world.holders[caller->lock] != NULL)
		fail("two hold a lock");
	world.holders[caller->lock] = caller;
	world.grants++;
}

static void on_lost(void *context, void *cookie)
{
	struct caller *caller = cookie;

	if (world.holders[caller->lock] != caller)
		fail("one who does not hold has lost a lock");
	world.holders[caller->lock] = NULL;
	caller->next = world.lost;
	world.lost = caller;
}

static const struct engine_events events = {
	.details_bytes = 1,
	.describe = describe,
	.on_decided = on_decided,
	.on_lost = on_lost,
};

static void ask(struct caller *caller)
{
	const struct engine_caller process = {.pid = 1, .details = ""};
	struct engine *engine = caller->host->engine;
	char path[32];

	snprintf(path, sizeof(path), "lock-%d", caller->lock);
	engine_advance(engine, world.now_ms);
	caller->owner = engine_owner_open(engine, path, &policy, caller);
	if (caller->owner == NULL || engine_lock(caller->owner, LOCK_KIND_FLOCK, CLAIM_EXCLUSIVE,
						 true, &process, caller, &caller->wish) != 0)
		fail("out of memory");
}

static void leave(struct caller *caller)
{
	engine_advance(caller->host->engine, world.now_ms);
	if (world.holders[caller->lock] == caller)
		world.holders[caller->lock] = NULL;
	engine_owner_close(caller->owner);
	caller->owner = NULL;
}

static void ask_again(struct caller *caller)
{
	leave(caller);
	ask(caller);
}

/* The hosts */

static void open_host(struct host *host, uint64_t seed)
{
	const struct faulty_settings settings = {
		.now_ms = &world.now_ms,
		.prng = &world.prng,
		.delay_ms = 1,
		.timeout_ms = TIMEOUT_MS,
		.tick_ms = 2000,
		.tick_phase_ms = prng_below(&world.prng, 2000),
		.wait_percent = 100,
		.rules = world.rules,
	};

	host->back_ms = INT64_MAX;
	host->engine = engine_create(&events, host, seed);
	if (host->engine == NULL ||
	    store_faulty_open(world.service, &settings, &engine_store_events, host->engine,
			      &host->store) != 0)
		fail("out of memory");
	if (counting.place == NULL)
		count_requests_of(host->store);
	host->store->ops = &counting;
	engine_set_store(host->engine, host->store);
}

static bool host_step(struct host *host)
{
	bool late = engine_deadline(host->engine) <= world.now_ms;

	if (late)
		engine_advance(host->engine, world.now_ms);
	if (store_faulty_due(host->store) > world.now_ms)
		return late;
	engine_advance(host->engine, world.now_ms);
	return store_faulty_step(host->store);
}

/* Moves the clock by a millisecond, and lets happen what is due then. */
static void pass(void)
{
	world.now_ms++;
	for (int i = 0; i < world.hosts_count; i++) {
		struct host *host = &world.hosts[i];

		if (host->back_ms <= world.now_ms) {
			host->back_ms = INT64_MAX;
			store_faulty_reconnect(host->store);
		}
		while (host_step(host))
			;
	}
	while (world.lost != NULL) {
		struct caller *caller = world.lost;

		world.lost = caller->next;
		ask_again(caller);
	}
	if (world.now_ms % BUCKET_MS == 0) {
		world.most = world.bucket > world.most ? world.bucket : world.most;
		world.bucket = 0;
	}
}

static bool is_served(void)
{
	for (int i = 0; i < world.locks_count; i++)
		if (world.holders[i] == NULL)
			return false;
	return true;
}

static bool is_settled(void)
{
	for (int i = 0; i < world.hosts_count; i++)
		if (world.hosts[i].back_ms != INT64_MAX ||
		    store_faulty_under_way(world.hosts[i].store) > 0)
			return false;
	return is_served();
}

/* The phases */

static struct {
	int64_t begin_ms;
	uint64_t grants;
} phase;

static void begin(void)
{
	phase.begin_ms = world.now_ms;
	phase.grants = world.grants;
	world.costs = (struct costs){0};
	world.bucket = world.most = 0;
}

/* Nothing is done any more. Until then, and until all is settled, which is told as from now. */
static void end(const char *name, int64_t until_ms)
{
	int64_t acted_ms = world.now_ms, settled_ms = INT64_MIN;

	while (world.now_ms < until_ms || settled_ms == INT64_MIN) {
		if (world.now_ms > phase.begin_ms + END_MS)
			fail("a lock has no holder");
		pass();
		if (settled_ms == INT64_MIN && is_settled())
			settled_ms = world.now_ms;
	}
	printf("%-14s %9llu %9llu %9llu %9llu %9llu %9llu %9lld\n", name,
	       (unsigned long long)(world.grants - phase.grants),
	       (unsigned long long)world.costs.writes, (unsigned long long)world.costs.reads,
	       (unsigned long long)world.costs.watches, (unsigned long long)world.costs.signs,
	       (unsigned long long)world.most, (long long)(settled_ms - acted_ms));
	fflush(stdout);
}

static void wait_until(int64_t until_ms)
{
	while (world.now_ms < until_ms)
		pass();
}

static void fill(void)
{
	int done = 0;

	begin();
	for (int64_t i = 1; i <= FILL_MS; i++) {
		for (; done < i * world.callers_count / FILL_MS; done++) {
			struct caller *caller = &world.callers[done];

			caller->host = &world.hosts[prng_below(&world.prng, world.hosts_count)];
			caller->lock = done % world.locks_count;
			ask(caller);
		}
		pass();
	}
	end("fill", 0);
}

static void take_turns(void)
{
	begin();
	for (int i = 0; i < TURNS_MS; i++) {
		struct caller *holder = world.holders[prng_below(&world.prng, world.locks_count)];

		if (holder != NULL)
			ask_again(holder);
		pass();
	}
	end("turns", 0);
}

static void hold(void)
{
	begin();
	end("hold", world.now_ms + TIMEOUT_MS);
}

static void change_leader(void)
{
	begin();
	for (int i = 0; i < world.hosts_count; i++) {
		struct host *host = &world.hosts[i];

		store_faulty_elect(host->store, 1);
		host->back_ms = world.now_ms + 1 + prng_below(&world.prng, BACK_MS);
	}
	end("leader change", world.now_ms + TIMEOUT_MS);
}

static void lose_rack(void)
{
	int lost = world.hosts_count < RACK ? world.hosts_count : RACK;

	begin();
	for (int i = 0; i < lost; i++) {
		store_faulty_break(world.hosts[i].store, 0, 0, 1);
		world.hosts[i].back_ms = phase.begin_ms + RACK_MS;
	}
	wait_until(phase.begin_ms + RACK_MS - 1);
	end("rack", world.now_ms + TIMEOUT_MS);
}

static void close_all(void)
{
	for (int i = 0; i < world.callers_count; i++)
		leave(&world.callers[i]);
	for (int i = 0; i < TIMEOUT_MS; i++)
		pass();
	for (int i = 0; i < world.hosts_count; i++) {
		engine_destroy(world.hosts[i].engine);
		world.hosts[i].store->ops->close(world.hosts[i].store, nobody_is_told());
	}
	local_service_destroy(world.service);
	free(world.holders);
	free(world.callers);
	free(world.hosts);
}

static int number(const char *text)
{
	char *end_of_it;
	long value = strtol(text, &end_of_it, 10);

	if (*end_of_it != '\0' || value < 1 || value > 100000000)
		fail("expected a number from 1 on");
	return (int)value;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {{"store", required_argument, NULL, 's'},
						{"hosts", required_argument, NULL, 'h'},
						{"locks", required_argument, NULL, 'l'},
						{"callers", required_argument, NULL, 'c'},
						{0}};

	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 's' && strcmp(optarg, "etcd") == 0)
			world.rules = &faulty_etcd;
		else if (option == 's' && strcmp(optarg, "zookeeper") != 0)
			fail("expected --store zookeeper or etcd");
		else if (option == 'h')
			world.hosts_count = number(optarg);
		else if (option == 'l')
			world.locks_count = number(optarg);
		else if (option == 'c')
			world.callers_count = number(optarg);
		else if (option == '?')
			exit(2);
	}
	if (world.callers_count < world.locks_count)
		fail("expected as many callers as locks at least");
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	prng_seed(&world.prng, 1);
	world.hosts = allocate((size_t)world.hosts_count, sizeof(*world.hosts));
	world.callers = allocate((size_t)world.callers_count, sizeof(*world.callers));
	world.holders = allocate((size_t)world.locks_count, sizeof(*world.holders));
	world.service = local_service_create();
	if (world.service == NULL)
		fail("out of memory");
	local_service_set_clock(world.service, &world.now_ms);
	for (int i = 0; i < world.hosts_count; i++)
		open_host(&world.hosts[i], (uint64_t)i + 1);
	printf("%s, %d hosts, %d locks, %d callers, session timeout %d s\n", world.rules->name,
	       world.hosts_count, world.locks_count, world.callers_count, TIMEOUT_MS / 1000);
	printf("%-14s %9s %9s %9s %9s %9s %9s %9s\n", "", "granted", "writes", "reads", "watches",
	       "signs", "in 0.1 s", "settled");
	fill();
	take_turns();
	hold();
	change_leader();
	lose_rack();
	close_all();
	return 0;
}
