/* SPDX-License-Identifier: Apache-2.0
 *
 * Several hosts with the store of Redis, and foreign clients, contend for locks under a clock of
 * their own; servers lose answers and connections, keys are deleted by hand, hosts stop. In place
 * of the servers, and of what speaks to them (service.c), stands a model. After each step no lock
 * is held by two, whoever does not have the key has a gate in front of all claims, and each lock
 * has one attempt under way at most; once the faults end everybody gets what he waits for, and no
 * key is left behind. `SEED=N` in the environment runs one schedule alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "config/contention.h"
#include "stores/redis/lock.h"
#include "stores/redis/state.h"
#include "stores/redis/store.h"
#include "told.h"

enum {
	HOSTS = 3,
	LOCKS = 2,
	STRANGERS = 2,
	CLAIMS = 8, /* of a host and lock */
	TTL_MS = 1000,
	HOLD_MS = 40,
	FAULTS_MS = 8000,
	CALM_MS = 8000,
	SEEDS = 25,
};

static const char *const paths[LOCKS] = {"a", "b/c"};
static const char *const keys[LOCKS] = {"dlockfs/a", "dlockfs/b/c"};
static const struct store_contention contention = {
	.retry_delay_ms = 15,
	.retry_jitter_ms = 15,
	.turn_grants = 4,
	.turn_time_ms = 100,
	.turn_pause_ms = 120,
};

static int64_t now_ms;
static uint64_t random_state;
static unsigned long seed;
static bool is_calm;

int64_t __wrap_clock_now_ms(void);
int64_t __wrap_clock_now_ms(void)
{
	return now_ms;
}

static uint64_t draw(uint64_t below)
{
	uint64_t number = random_state += 0x9e3779b97f4a7c15u;

	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
	return (number ^ (number >> 31)) % below;
}

/* The same schedule each time. */
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)data)[i] = (unsigned char)draw(256);
	return (ssize_t)bytes;
}

#define fails(...)                                                                                 \
	do {                                                                                       \
		fprintf(stderr, "seed %lu at %lld ms: ", seed, (long long)now_ms);                 \
		fail_msg(__VA_ARGS__);                                                             \
	} while (0)

/* The server */

static struct {
	char value[LOCKS][REDIS_VALUE_BYTES]; /* "": there is no key */
	int64_t end_ms[LOCKS];
	size_t takes;
	int refusal; /* of TAKE and READ; 0: none */
} server;

static size_t lock_number(const char *key)
{
	return strcmp(key, keys[0]) == 0 ? 0 : 1;
}

static void expire(void)
{
	for (size_t i = 0; i < LOCKS; i++) {
		if (server.end_ms[i] < now_ms)
			server.value[i][0] = '\0';
	}
}

static void publish(size_t lock);

static int server_does(enum redis_verb verb, size_t lock, const char *value)
{
	bool is_there = server.value[lock][0] != '\0';
	bool is_same = is_there && strcmp(server.value[lock], value) == 0;

	if (server.refusal != 0 && (verb == REDIS_TAKE || verb == REDIS_READ))
		return server.refusal;
	if (verb == REDIS_READ)
		return is_there ? 0 : -ENOENT;
	if (verb == REDIS_TAKE && is_there)
		return -EEXIST;
	if (verb != REDIS_TAKE && !is_same)
		return -ENOENT;
	if (verb == REDIS_GIVE)
		publish(lock);
	strcpy(server.value[lock], verb == REDIS_GIVE ? "" : value);
	server.end_ms[lock] = now_ms + TTL_MS;
	return 0;
}

/* What speaks to it: one for each host */

struct redis_operation {
	struct redis_request *request; /* NULL: nobody wants the answer */
	enum redis_verb verb;
	size_t lock;
	char value[REDIS_VALUE_BYTES];
	int64_t asked_ms, at_ms, answer_ms; /* when the server does it, and the answer comes */
	bool is_done;
	int error;
	char holder[REDIS_VALUE_BYTES];
	struct redis_operation *prev, *next;
};

struct redis_service {
	const struct redis_events *events;
	void *context;
	bool is_connected;
	int64_t connect_ms;
	int64_t last_ms; /* of what was asked last: the order stays */
	struct redis_operation *operations;
	bool listens[LOCKS], hinted[LOCKS];
	struct timers timers;
	int descriptor;
};

static struct redis_service *services[HOSTS];

/* A message may be lost. */
static void publish(size_t lock)
{
	for (size_t i = 0; i < HOSTS; i++) {
		if (services[i] != NULL && services[i]->is_connected && services[i]->listens[lock])
			services[i]->hinted[lock] = draw(2) == 0;
	}
}

int redis_create(const struct redis_options *options, const struct redis_events *events,
		 void *context, struct redis_service **ret)
{
	struct redis_service *service = calloc(1, sizeof(*service));

	(void)options;
	service->events = events;
	service->context = context;
	service->connect_ms = now_ms + 1;
	service->descriptor = eventfd(1, EFD_CLOEXEC);
	*ret = service;
	return 0;
}

void redis_destroy(struct redis_service *service)
{
	struct redis_operation *operation, *next;

	DL_FOREACH_SAFE (service->operations, operation, next) {
		free(operation);
	}
	close(service->descriptor);
	free(service);
}

int redis_descriptor(const struct redis_service *service)
{
	return service->descriptor;
}

int redis_ask(struct redis_service *service, struct redis_request *request, enum redis_verb verb,
	      const char *key, const char *value, int64_t ttl_ms)
{
	struct redis_operation *operation, *other;
	size_t lock = lock_number(key);

	(void)ttl_ms;
	if (!service->is_connected && verb != REDIS_GIVE)
		return -ENOTCONN;
	DL_FOREACH (service->operations, other) {
		if (verb == REDIS_TAKE && other->verb == REDIS_TAKE && other->lock == lock &&
		    other->request != NULL)
			fails("two attempts at once");
	}
	server.takes += verb == REDIS_TAKE;
	operation = calloc(1, sizeof(*operation));
	operation->request = request;
	request->operation = operation;
	operation->verb = verb;
	operation->lock = lock;
	strcpy(operation->value, value != NULL ? value : "");
	operation->asked_ms = now_ms;
	operation->at_ms = now_ms + 1 + (int64_t)draw(is_calm ? 2 : draw(50) == 0 ? 400 : 4);
	if (operation->at_ms < service->last_ms)
		operation->at_ms = service->last_ms;
	operation->answer_ms = operation->at_ms + 1 +
			       (int64_t)draw(is_calm	     ? 3
					     : draw(50) == 0 ? 400
							     : 4);
	service->last_ms = operation->at_ms;
	DL_APPEND(service->operations, operation);
	return 0;
}

void redis_forget(struct redis_request *request)
{
	if (request->operation != NULL)
		request->operation->request = NULL;
	request->operation = NULL;
}

static void answer(struct redis_service *service, struct redis_operation *operation, int error)
{
	struct redis_request *request = operation->request;
	const struct redis_answer answer = {
		.error = error,
		.holder = *operation->holder != '\0' ? operation->holder : NULL,
		.holder_bytes = strlen(operation->holder),
		.ttl_ms = REDIS_TTL_UNKNOWN,
	};

	(void)service;
	if (request == NULL)
		return;
	request->operation = NULL;
	request->done(request, &answer);
}

/* What has been asked, and what was given before a connection was lost, is done by the server. */
static void server_runs(struct redis_service *service)
{
	struct redis_operation *operation;

	DL_FOREACH (service->operations, operation) {
		bool reaches = service->is_connected;
		if (operation->is_done || operation->at_ms > now_ms || !reaches)
			continue;
		strcpy(operation->holder,
		       operation->verb == REDIS_TAKE || operation->verb == REDIS_READ
			       ? server.value[operation->lock]
			       : "");
		operation->error = server_does(operation->verb, operation->lock, operation->value);
		operation->is_done = true;
	}
}

/* A TAKE that nobody wants any more, or whose answer was lost, becomes a GIVE. */
static void lose_connection(struct redis_service *service)
{
	struct redis_operation *all = service->operations, *operation, *next;

	service->is_connected = false;
	service->operations = NULL;
	service->connect_ms = now_ms + 1 + (int64_t)draw(draw(4) == 0 ? 2 * TTL_MS : 100);
	DL_FOREACH_SAFE (all, operation, next) {
		if (!operation->is_done && draw(2) == 0)
			(void)server_does(operation->verb, operation->lock, operation->value);
	}
	DL_FOREACH_SAFE (all, operation, next) {
		DL_DELETE(all, operation);
		answer(service, operation, -ECONNRESET);
		operation->request = NULL;
		if (operation->verb == REDIS_TAKE)
			operation->verb = REDIS_GIVE;
		operation->is_done = false;
		if (operation->verb == REDIS_GIVE)
			DL_PREPEND(service->operations, operation);
		else
			free(operation);
	}
	service->events->on_lost(service->context, "a fault");
}

static void turn(struct redis_service *service)
{
	if (!service->is_connected && service->connect_ms <= now_ms) {
		service->is_connected = true;
		service->events->on_connected(service->context, "model");
	}
	server_runs(service);
	for (size_t i = 0; i < LOCKS; i++) {
		if (service->is_connected && service->hinted[i])
			service->events->on_hint(service->context, keys[i]);
		service->hinted[i] = false;
	}
	for (;;) {
		struct redis_operation *operation = service->operations;

		/* In the order of asking. */
		if (operation == NULL || !operation->is_done || operation->answer_ms > now_ms)
			return;
		DL_DELETE(service->operations, operation);
		if (operation->request == NULL && operation->verb == REDIS_TAKE &&
		    operation->error == 0)
			(void)server_does(REDIS_GIVE, operation->lock, operation->value);
		answer(service, operation, operation->error);
		free(operation);
	}
}

void redis_dispatch(struct redis_service *service)
{
	turn(service);
	timers_run(&service->timers, now_ms);
	service->events->on_turn(service->context);
}

void redis_wake(struct redis_service *service)
{
	(void)service;
}

bool redis_is_due(const struct redis_service *service)
{
	(void)service;
	return false;
}

struct timers *redis_timers(struct redis_service *service)
{
	return &service->timers;
}

bool redis_is_connected(const struct redis_service *service)
{
	return service->is_connected;
}

int redis_listen(struct redis_service *service, const char *key, const struct dialect *dialect)
{
	service->listens[lock_number(key)] = true;
	return 0;
}

void redis_unlisten(struct redis_service *service, const char *key)
{
	service->listens[lock_number(key)] = service->hinted[lock_number(key)] = false;
}

void redis_nudge(struct redis_service *service)
{
	(void)service;
}

/* All is done at once. */
void redis_finish(struct redis_service *service, int64_t limit_ms)
{
	(void)limit_ms;
	service->is_connected = true;
	now_ms += 1000;
	turn(service);
}

void redis_describe(const struct redis_service *service, char *text, size_t text_bytes)
{
	(void)service;
	snprintf(text, text_bytes, "model");
}

const char *redis_trouble(const struct redis_service *service)
{
	(void)service;
	return NULL;
}

void redis_warn(const struct redis_service *service, void (*say)(void *context, const char *text),
		void *context)
{
	(void)service;
	(void)say;
	(void)context;
}

/* A host: what the engine does, of exclusive claims */

struct claim {
	bool is_used, is_placed, is_held, is_leaving;
	bool stays; /* refused at once if it has to wait */
	char name[CLAIM_NAME_BYTES];
	int64_t order;
	int64_t since_ms, until_ms;
	size_t host, lock;
};

struct host {
	struct store *store;
	struct claim claims[LOCKS][CLAIMS];
	bool proves[LOCKS][CLAIMS]; /* that such a claim stands, or stood */
	int refused[3];		    /* what was placed, listed, and looked at was answered so */
	enum store_session session;
	bool beats;
	bool is_listing[LOCKS];
	int64_t stopped_ms;  /* stops until then */
	bool deleted[LOCKS]; /* its key was deleted by hand, which it may not know */
	uint64_t id;
	uint32_t number;
};

static struct host hosts[HOSTS];
static size_t grants;

static struct host *host_of(void *context)
{
	return context;
}

static struct store_redis *store_of(const struct host *host)
{
	return (struct store_redis *)host->store;
}

static void forget_all(struct host *host)
{
	memset(host->claims, 0, sizeof(host->claims));
	memset(host->proves, 0, sizeof(host->proves));
	memset(host->is_listing, 0, sizeof(host->is_listing));
	memset(host->deleted, 0, sizeof(host->deleted));
	host->beats = false;
	host->id += 2;
}

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	struct host *host = host_of(context);

	(void)timeout_ms;
	host->session = session;
	if (session == STORE_LOST)
		fails("lost without a reason");
}

static void on_renewed(void *context)
{
	(void)context;
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct claim *claim = tag;

	(void)after;
	(void)entries;
	(void)count;
	if (error != 0 && server.refusal == 0)
		fails("a claim is refused: %d", error);
	host_of(context)->refused[0] = error;
	if (error != 0) {
		*claim = (struct claim){0};
		return;
	}
	claim->is_placed = true;
	claim->order = order;
	strcpy(claim->name, name);
}

/* Claims that are not listed have gone: who held is told. */
static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct host *host = host_of(context);
	size_t lock = (size_t)((const bool *)tag - host->is_listing);

	if (error != 0 && server.refusal == 0)
		fails("a list fails: %d", error);
	host->refused[1] = error;
	host->is_listing[lock] = false;
	host->deleted[lock] = false;
	for (size_t i = 0; i < CLAIMS; i++) {
		struct claim *claim = &host->claims[lock][i];
		bool listed = false;
		for (size_t j = 0; j < count; j++)
			listed |= strcmp(entries[j].name, claim->name) == 0;
		if (claim->is_placed && !listed)
			*claim = (struct claim){0};
	}
}

static void on_changed(void *context, void *tag)
{
	(void)context;
	(void)tag;
}

static void on_withdrawn(void *context, void *tag, int error)
{
	struct claim *claim = tag;
	const struct host *host = host_of(context);

	if (error != 0)
		fails("a withdrawal fails: %d", error);
	if (host->proves[claim->lock][claim - host->claims[claim->lock]])
		fails("a withdrawal is answered before a proof");
	*claim = (struct claim){0};
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	struct host *host = host_of(context);

	(void)stamp;
	if (tag != NULL) {
		*(bool *)tag = false;
		return;
	}
	host->beats = false;
	if (error != -ENOENT)
		return;
	size_t lock = strcmp(missing, paths[0]) == 0 ? 0 : 1;
	host->is_listing[lock] = true;
	host->store->ops->list(host->store, &host->is_listing[lock], missing, true, false);
	if (host->is_listing[lock] && redis_is_connected(services[host - hosts]) &&
	    redis_lock_find(store_of(host), missing) == NULL)
		fails("a loss waits for the servers");
}

static const struct store_events events = {
	.on_session = on_session,
	.on_renewed = on_renewed,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_withdrawn = on_withdrawn,
	.on_proved = on_proved,
};

static struct store_lease lease_of(const struct host *host)
{
	struct store_lease lease;

	host->store->ops->lease(host->store, now_ms, &lease);
	return lease;
}

static bool holds(const struct host *host)
{
	for (size_t i = 0; i < LOCKS; i++) {
		for (size_t j = 0; j < CLAIMS; j++) {
			if (host->claims[i][j].is_held)
				return true;
		}
	}
	return false;
}

static void fence(struct host *host)
{
	if (!holds(host) || now_ms < lease_of(host).end_ms)
		return;
	forget_all(host);
	host->session = STORE_LOST;
	host->store->ops->renew(host->store, nobody_is_told());
}

/* The first claim of the lock, as far as the host knows, unless a gate stands in front. */
static struct claim *first_of(struct host *host, size_t lock)
{
	const struct redis_lock *books = redis_lock_find(store_of(host), paths[lock]);
	struct claim *first = NULL;

	for (size_t i = 0; i < CLAIMS; i++) {
		struct claim *claim = &host->claims[lock][i];
		if (claim->is_placed && !claim->is_leaving &&
		    (first == NULL || claim->order < first->order))
			first = claim;
	}
	if (first != NULL && books != NULL && books->gate.name[0] != '\0' &&
	    books->gate.order < first->order)
		return NULL;
	return first;
}

static void leave(struct host *host, struct claim *claim)
{
	claim->is_held = false;
	claim->is_leaving = true;
	host->store->ops->withdraw(host->store, nobody_is_told(), claim, paths[claim->lock],
				   claim->name, claim->order, false);
}

static void grant(struct host *host, size_t lock)
{
	const struct redis_lock *books = redis_lock_find(store_of(host), paths[lock]);
	struct claim *claim = first_of(host, lock);

	if (claim == NULL || claim->is_held || host->session != STORE_CONNECTED ||
	    !lease_of(host).grants || lease_of(host).doubtful)
		return;
	if (books == NULL || books->key.step != KEY_OURS)
		fails("host %zu grants %s without its key", (size_t)(host - hosts), paths[lock]);
	claim->is_held = true;
	claim->until_ms = now_ms + (int64_t)draw(HOLD_MS);
	if (!is_calm && draw(10) == 0)
		claim->until_ms += 2 * TTL_MS; /* so that the key is to be renewed */
	grants++;
}

static void call(struct host *host, size_t lock)
{
	struct claim *claim = &host->claims[lock][draw(CLAIMS)];
	const struct claim_name name = {
		.id = {.session = claim_id_session(host->id), .owner = 1, .number = ++host->number},
		.span = CLAIM_SPAN_WHOLE,
		.mode = CLAIM_EXCLUSIVE,
	};

	if (claim->is_used)
		return;
	*claim = (struct claim){.is_used = true,
				.host = (size_t)(host - hosts),
				.lock = lock,
				.stays = draw(4) != 0,
				.since_ms = now_ms};
	host->store->ops->place(host->store, claim, paths[lock], &name, "format=1\n", true, NULL);
}

/* As a holder does that asks whether it holds, or for its token. */
static void prove(struct host *host, struct claim *claim)
{
	bool *proves = &host->proves[claim->lock][claim - host->claims[claim->lock]];
	const struct store_proof proof = {
		.path = paths[claim->lock],
		.name = claim->name,
		.text = draw(2) == 0 ? "format=1\n" : NULL,
		.version = STORE_ANY_VERSION,
	};

	if (*proves)
		return;
	*proves = true;
	host->store->ops->prove(host->store, proves, &proof, 1);
}

static void use(struct host *host, size_t lock)
{
	for (size_t i = 0; i < CLAIMS; i++) {
		struct claim *claim = &host->claims[lock][i];

		if (claim->is_held && draw(30) == 0)
			prove(host, claim);
		if (claim->is_held && claim->until_ms <= now_ms)
			leave(host, claim);
		else if (claim->is_placed && !claim->is_held && !claim->is_leaving &&
			 !claim->stays && claim != first_of(host, lock))
			leave(host, claim);
	}
	grant(host, lock);
	if (now_ms < FAULTS_MS + CALM_MS / 2 && draw(20) == 0)
		call(host, lock);
}

static void beat(struct host *host)
{
	if (host->beats || host->session != STORE_CONNECTED || lease_of(host).beat_ms > now_ms)
		return;
	host->beats = true;
	host->store->ops->prove(host->store, NULL, NULL, 0);
}

static void run_host(struct host *host)
{
	if (host->stopped_ms > now_ms)
		return;
	fence(host);
	host->store->ops->dispatch(host->store);
	fence(host);
	beat(host);
	for (size_t i = 0; i < LOCKS; i++)
		use(host, i);
}

/* Foreign clients: a value, which is looked at now and then. */

struct stranger {
	char value[32];
	size_t lock;
	int64_t next_ms;
	bool holds;
};

static struct stranger strangers[STRANGERS];

static void run_stranger(struct stranger *stranger)
{
	if (stranger->next_ms > now_ms)
		return;
	if (stranger->holds) {
		(void)server_does(REDIS_GIVE, stranger->lock, stranger->value);
		stranger->holds = false;
		stranger->next_ms = now_ms + (int64_t)draw(400);
	} else if (now_ms < FAULTS_MS) {
		stranger->lock = draw(LOCKS);
		snprintf(stranger->value, sizeof(stranger->value), "stranger-%llx",
			 (unsigned long long)draw(UINT32_MAX));
		stranger->holds = server_does(REDIS_TAKE, stranger->lock, stranger->value) == 0;
		stranger->next_ms = now_ms + (int64_t)draw(100);
	}
}

/* Checks */

static void check_queue(struct host *host, size_t lock)
{
	const struct redis_lock *books = redis_lock_find(store_of(host), paths[lock]);
	struct store *home = store_of(host)->queues.home;

	if (books != NULL && !key_is_sound(&books->key))
		fails("the books of host %zu are wrong at step %d", (size_t)(host - hosts),
		      books->key.step);
	for (size_t i = 0; i < CLAIMS; i++) {
		const struct claim *claim = &host->claims[lock][i];
		if (!claim->is_placed || !store_local_has(home, paths[lock], claim->name))
			continue;
		if (books == NULL)
			fails("a claim without a key");
		if (books->key.step != KEY_OURS &&
		    (books->gate.name[0] == '\0' || books->gate.order > claim->order))
			fails("no gate in front of a claim");
	}
	if (books != NULL && books->key.step == KEY_OURS &&
	    books->key.had > CLAIMS + (size_t)contention.turn_grants)
		fails("a turn of %zu claims", books->key.had);
}

/* Who holds has the key, and it does not end before the lease. */
static void check_held(struct host *host, size_t lock)
{
	const struct redis_lock *books = redis_lock_find(store_of(host), paths[lock]);
	size_t held = 0;

	for (size_t i = 0; i < CLAIMS; i++)
		held += host->claims[lock][i].is_held;
	if (held > 1)
		fails("two hold on one host");
	if (held == 0 || lease_of(host).end_ms <= now_ms || host->deleted[lock])
		return;
	if (books == NULL || strcmp(server.value[lock], books->value) != 0)
		fails("host %zu holds %s, and the key is of \"%s\"", (size_t)(host - hosts),
		      paths[lock], server.value[lock]);
	if (server.end_ms[lock] < lease_of(host).end_ms)
		fails("the key ends before the lease");
}

/* A key that nobody knows to have would be in everybody's way. */
static void check_key(size_t lock)
{
	bool is_known = strncmp(server.value[lock], "dlockfs:", 8) != 0;

	for (size_t i = 0; i < HOSTS; i++) {
		const struct redis_lock *books = redis_lock_find(store_of(&hosts[i]), paths[lock]);
		const struct redis_operation *operation;
		is_known |= books != NULL && books->key.step == KEY_OURS &&
			    strcmp(books->value, server.value[lock]) == 0;
		DL_FOREACH (services[i]->operations, operation) {
			is_known |= strcmp(operation->value, server.value[lock]) == 0;
		}
	}
	if (!is_known)
		fails("the key of %s is nobody's: \"%s\"", paths[lock], server.value[lock]);
}

static void check(void)
{
	for (size_t i = 0; i < LOCKS; i++)
		check_key(i);
	for (size_t i = 0; i < HOSTS; i++) {
		for (size_t j = 0; j < LOCKS; j++) {
			check_queue(&hosts[i], j);
			check_held(&hosts[i], j);
		}
	}
}

/* Faults */

static void delete_by_hand(size_t lock)
{
	for (size_t i = 0; i < HOSTS; i++) {
		const struct redis_lock *books = redis_lock_find(store_of(&hosts[i]), paths[lock]);
		if (books != NULL && *books->value != '\0' &&
		    strcmp(server.value[lock], books->value) == 0)
			hosts[i].deleted[lock] = true;
	}
	server.value[lock][0] = '\0';
}

static void do_fault(void)
{
	struct redis_service *service = services[draw(HOSTS)];

	switch (draw(200)) {
	case 0:
		if (service->is_connected)
			lose_connection(service);
		break;
	case 1:
		if (draw(4) == 0)
			delete_by_hand(draw(LOCKS));
		break;
	case 2:
		if (draw(4) == 0)
			hosts[draw(HOSTS)].stopped_ms = now_ms + (int64_t)draw(3 * TTL_MS);
		break;
	default:
		break;
	}
}

static void open_host(struct host *host)
{
	struct store_url url = {
		.scheme = (char *)"redis", .servers = (char *)"h:1", .root = (char *)"/dlockfs"};
	const struct store_access access = {0};
	const struct store_options options = {
		.url = &url,
		.access = &access,
		.session_timeout_ms = TTL_MS,
		.contention = &contention,
	};

	host->id = 1000 * (uint64_t)(host - hosts + 1);
	assert_int_equal(store_redis_kind.open(&options, &events, host, &host->store), 0);
	services[host - hosts] = store_of(host)->service;
}

static void begin(void)
{
	random_state = seed * 7919;
	now_ms = 1;
	is_calm = false;
	grants = 0;
	memset(&server, 0, sizeof(server));
	memset(strangers, 0, sizeof(strangers));
	memset(hosts, 0, sizeof(hosts));
	for (size_t i = 0; i < HOSTS; i++)
		open_host(&hosts[i]);
}

static void end(void)
{
	for (size_t i = 0; i < HOSTS; i++)
		hosts[i].store->ops->close(hosts[i].store, nobody_is_told());
	memset(services, 0, sizeof(services));
}

static void run_schedule(void)
{
	begin();
	while (now_ms < FAULTS_MS + CALM_MS) {
		now_ms += 1 + (int64_t)draw(3);
		is_calm = now_ms >= FAULTS_MS;
		expire();
		if (!is_calm)
			do_fault();
		for (size_t i = 0; i < STRANGERS; i++)
			run_stranger(&strangers[i]);
		for (size_t i = 0; i < HOSTS; i++) {
			run_host(&hosts[i]);
			check();
		}
	}
	if (grants == 0)
		fails("nobody ever got a lock");
	for (size_t i = 0; i < HOSTS; i++) {
		for (size_t j = 0; j < LOCKS; j++) {
			for (size_t k = 0; k < CLAIMS; k++) {
				if (hosts[i].claims[j][k].is_used)
					fails("host %zu still waits for %s, since %lld ms", i,
					      paths[j], (long long)hosts[i].claims[j][k].since_ms);
			}
		}
		if (store_of(&hosts[i])->locks != NULL)
			fails("host %zu keeps the books of a lock", i);
	}
	for (size_t i = 0; i < LOCKS; i++) {
		if (server.value[i][0] != '\0')
			fails("the key of %s is left behind", paths[i]);
	}
	end();
}

/* One host, whose callers always want the lock: others find the key free again and again, for
 * longer than they take from one look to the next. */
static void test_turns(void **state)
{
	struct host *host = &hosts[0];
	int64_t since_ms = 0, longest_ms = 0, shortest_ms = INT64_MAX;
	size_t turns = 0;
	bool was_taken = false;

	(void)state;
	begin();
	is_calm = true;
	for (now_ms = 1; now_ms < 3000; now_ms++) {
		bool is_taken = server.value[0][0] != '\0';
		int64_t lasted_ms = now_ms - since_ms;

		expire();
		for (size_t i = 0; i < 4; i++)
			call(host, 0);
		run_host(host);
		if (is_taken == was_taken)
			continue;
		if (was_taken && lasted_ms > longest_ms)
			longest_ms = lasted_ms;
		if (!was_taken && turns > 0 && lasted_ms < shortest_ms)
			shortest_ms = lasted_ms;
		turns += was_taken;
		was_taken = is_taken;
		since_ms = now_ms;
	}
	if (turns < 5 || longest_ms > contention.turn_time_ms + CLAIMS * HOLD_MS)
		fails("%zu turns, the longest of %lld ms", turns, (long long)longest_ms);
	if (shortest_ms < contention.turn_pause_ms - 5) /* what trips differ by */
		fails("others had %lld ms", (long long)shortest_ms);
	end();
}

static void run_store(struct host *host, int64_t ms)
{
	for (int64_t end_ms = now_ms + ms; now_ms < end_ms; now_ms++)
		host->store->ops->dispatch(host->store);
}

static size_t count_used(const struct host *host, size_t lock)
{
	size_t count = 0;

	for (size_t i = 0; i < CLAIMS; i++)
		count += host->claims[lock][i].is_used;
	return count;
}

/* The engine knows of a loss, and its list of the queue waits behind a call that waits for the
 * servers: nobody is granted the lock by what stood there before. */
static void test_told_loss(void **state)
{
	struct host *host = &hosts[0];
	struct claim *holder;

	(void)state;
	begin();
	is_calm = true;
	run_store(host, 20);
	while (count_used(host, 0) < (size_t)contention.turn_grants) /* a gate stands behind */
		call(host, 0);
	run_store(host, 20);
	grant(host, 0);
	holder = first_of(host, 0);
	assert_true(holder != NULL && holder->is_held);
	server.value[0][0] = '\0';
	host->deleted[0] = true;
	prove(host, holder);
	for (; store_of(host)->losses == 0; now_ms++) {
		assert_true(now_ms < TTL_MS);
		host->store->ops->dispatch(host->store);
	}
	while (count_used(host, 0) <= (size_t)contention.turn_grants)
		call(host, 0);
	beat(host);
	host->store->ops->dispatch(host->store);
	assert_true(host->is_listing[0]);
	leave(host, holder);
	assert_non_null(first_of(host, 0));
	grant(host, 0); /* fails without the key */
	assert_false(holds(host));
	end();
}

/* Of two keys that are lost at once a heartbeat tells of one. Until the next one nobody is granted
 * the other lock, not even when the holder of the turn that was lost has left. */
static void test_untold_loss(void **state)
{
	struct host *host = &hosts[0];
	struct claim *holders[LOCKS] = {NULL};
	size_t untold;

	(void)state;
	begin();
	is_calm = true;
	for (size_t i = 0; i < LOCKS; i++) {
		for (size_t j = 0; j < 40; j++)
			call(host, i);
	}
	for (; now_ms < 60; now_ms++) {
		run_host(host);
		for (size_t i = 0; i < LOCKS; i++) {
			holders[i] = first_of(host, i);
			if (holders[i] != NULL && holders[i]->is_held)
				holders[i]->until_ms = INT64_MAX;
		}
	}
	for (size_t i = 0; i < LOCKS; i++) {
		assert_true(holders[i] != NULL && holders[i]->is_held);
		server.value[i][0] = '\0';
		host->deleted[i] = true;
	}
	for (; store_of(host)->losses == 0; now_ms++) {
		assert_true(now_ms < TTL_MS);
		beat(host);
		host->store->ops->dispatch(host->store);
	}
	check();
	untold = redis_lock_find(store_of(host), paths[0])->loss == LOSS_UNTOLD ? 0 : 1;
	leave(host, holders[untold]);
	assert_non_null(first_of(host, untold));
	grant(host, untold); /* fails without the key */
	end();
}

/* Of a key that a foreign client has: nobody takes the gate away, whoever has its name. */
static void test_gate(void **state)
{
	struct host *host = &hosts[0];
	struct claim *answered = &host->claims[1][0];
	const struct redis_lock *books;
	char gate[CLAIM_NAME_BYTES];

	(void)state;
	begin();
	is_calm = true;
	run_store(host, 20);
	strcpy(server.value[0], "stranger-1");
	server.end_ms[0] = INT64_MAX;
	call(host, 0);
	run_store(host, 50);
	books = redis_lock_find(store_of(host), paths[0]);
	assert_true(books != NULL && books->gate.name[0] != '\0');
	strcpy(gate, books->gate.name);
	answered->is_used = true;
	host->store->ops->withdraw(host->store, nobody_is_told(), answered, paths[0], gate, 1,
				   false);
	host->store->ops->dispatch(host->store);
	assert_false(answered->is_used);
	assert_true(store_local_has(store_of(host)->queues.strangers, paths[0], gate));
	check();
	end();
}

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	(void)look;
	(void)names;
	(void)names_count;
	(void)entries;
	(void)entries_count;
	hosts[0].refused[2] = error;
}

/* Of what servers say callers hear what store.h has. */
static void test_refusals(void **state)
{
	static const int errors[] = {-EREMOTE, -ENOMEM, -EIO, -EACCES};
	struct store_look look = {.done = on_looked};
	struct host *host = &hosts[0];

	(void)state;
	begin();
	is_calm = true;
	run_store(host, 20);
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		memset(host->refused, 0, sizeof(host->refused));
		server.refusal = errors[i];
		call(host, 0);
		host->store->ops->list(host->store, &host->is_listing[0], paths[0], true, false);
		assert_int_equal(host->store->ops->look(host->store, &look, paths[1]), 0);
		run_store(host, 50);
		for (size_t j = 0; j < 3; j++)
			assert_int_equal(host->refused[j], errors[i] == -EACCES ? -EACCES : -EIO);
	}
	end();
}

static void test_schedules(void **state)
{
	const char *one = getenv("SEED");

	(void)state;
	for (seed = one != NULL ? strtoul(one, NULL, 10) : 1;; seed++) {
		run_schedule();
		if (one != NULL || seed == SEEDS)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),	    cmocka_unit_test(test_told_loss),
		cmocka_unit_test(test_untold_loss), cmocka_unit_test(test_gate),
		cmocka_unit_test(test_refusals),    cmocka_unit_test(test_schedules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
