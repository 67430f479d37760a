/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/url.h"
#include "files/stores.h"

#define HOSTS_MAX 3

const char *server;
const struct backend *backend;
char top[64];
void (*in_next_event)(void);
int64_t host_timeout_ms = TIMEOUT_MS;
struct store_contention host_contention = {
	.retry_delay_ms = 15,
	.retry_jitter_ms = 15,
	.turn_grants = 1000000,
	.turn_time_ms = INT64_C(3600) * 1000,
	.turn_pause_ms = 120,
};

static struct host hosts[HOSTS_MAX];

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool service_has_claims(void)
{
	return !stores_find(backend->scheme)->keeps_claims;
}

void need_claims_in_service(void)
{
	if (!service_has_claims())
		skip();
}

struct store_lease lease_of(const struct host *host)
{
	struct store_lease lease;

	host->store->ops->lease(host->store, clock_now_ms(), &lease);
	return lease;
}

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	struct host *host = context;

	host->timeout_ms = timeout_ms;

	assert_int_not_equal(session, host->session);
	host->session = session;
	host->changes[session]++;
	if (session == STORE_LOST)
		host->store->ops->renew(host->store, nobody_is_told()); /* as the engine does */
}

static void on_renewed(void *context)
{
	struct host *host = context;
	int64_t valid_until_ms = lease_of(host).end_ms;

	assert_true(host->renewals == 0 || valid_until_ms > host->valid_until_ms);
	host->renewals++;
	host->valid_until_ms = valid_until_ms;
}

static void note(struct host *host, struct call *call, int error, const struct store_entry *entries,
		 size_t count)
{
	call->times++;
	call->turn = host->events++;
	call->error = error;
	call->listed = entries != NULL;
	call->count = count;
	call->halves = call->orphans = 0;
	snprintf(call->first, sizeof(call->first), "%s", count > 0 ? entries[0].name : "");
	for (size_t i = 0; i < count; i++) {
		call->halves += entries[i].half;
		call->orphans += entries[i].orphan;
		if (i < 4)
			call->claims[i] = entries[i].claim;
		if (i > 0)
			assert_true(claim_name_compare(entries[i - 1].claim.order,
						       entries[i - 1].name, entries[i].claim.order,
						       entries[i].name) < 0);
	}
}

static void run_in_event(void)
{
	void (*run)(void) = in_next_event;

	in_next_event = NULL;
	if (run)
		run();
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct call *call = tag;

	note(context, call, error, entries, count);
	snprintf(call->name, sizeof(call->name), "%s", name ? name : "");
	call->order = order;
	call->after = after;
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	note(context, tag, error, entries, count);
	run_in_event();
}

static void on_changed(void *context, void *tag)
{
	struct call *call = tag;

	assert_int_equal(call->times, 1);
	call->changes++;
	call->changed_turn = ((struct host *)context)->events;
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	struct host *host = context;
	struct call *call = tag;

	assert_int_equal(call->times, 0);
	if (text == NULL) {
		assert_false(call->changed);
		call->changed = true;
		return;
	}
	/* After the first time only once the change was told, unless that is done with the text. */
	assert_true(service_has_claims() ? call->changed == (call->reads > 0) : !call->changed);
	call->changed = false;
	call->reads++;
	host->reads++;
	snprintf(call->text, sizeof(call->text), "%s", text);
	run_in_event();
}

static void on_answered(void *context, void *tag, int error)
{
	note(context, tag, error, NULL, 0);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	struct host *host = context;
	struct call *call = tag;

	assert_true((error == -ENOENT) == (missing != NULL));
	if (!call) {
		assert_true(error == 0 || error == -ENOENT);
		snprintf(host->missing, sizeof(host->missing), "%s", missing ? missing : "");
		host->beats++;
		host->beats_renewals = host->renewals;
		return;
	}
	note(context, tag, error, NULL, 0);
	snprintf(call->text, sizeof(call->text), "%s", missing ? missing : "");
	call->stamp = stamp;
}

static void on_aged(void *context, void *tag, int error, int64_t age_ms, const char *text)
{
	struct call *call = tag;

	note(context, tag, error, NULL, 0);
	call->stamp = age_ms;
	assert_true((text != NULL) == (error == 0));
	snprintf(call->text, sizeof(call->text), "%s", text != NULL ? text : "");
}

static void on_touched(void *context)
{
	struct host *host = context;

	host->touches++;
}

static void on_moratorium(void *context, enum store_moratorium why, int64_t until_ms)
{
	struct host *host = context;

	assert_true(until_ms > clock_now_ms());
	host->moratoria[why]++;
}

static const struct store_events events = {
	.on_session = on_session,
	.on_moratorium = on_moratorium,
	.on_renewed = on_renewed,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_answered,
	.on_amended = on_answered,
	.on_marked = on_answered,
	.on_aged = on_aged,
	.on_withdrawn = on_answered,
	.on_proved = on_proved,
	.on_touched = on_touched,
};

static bool is_due(const struct store *store)
{
	return store && store->ops->is_due && store->ops->is_due(store);
}

void dispatch_hosts(int64_t limit_ms)
{
	struct pollfd polled[HOSTS_MAX];

	for (int i = 0; i < HOSTS_MAX; i++) {
		polled[i] = (struct pollfd){
			hosts[i].store ? hosts[i].store->ops->descriptor(hosts[i].store) : -1,
			POLLIN, 0};
		limit_ms = is_due(hosts[i].store) ? 0 : limit_ms;
	}
	poll(polled, HOSTS_MAX, (int)limit_ms);
	for (int i = 0; i < HOSTS_MAX; i++)
		if (polled[i].revents || is_due(hosts[i].store))
			hosts[i].store->ops->dispatch(hosts[i].store);
}

void run_for(int64_t ms)
{
	int64_t until_ms = now_ms() + ms;

	while (now_ms() < until_ms)
		dispatch_hosts(until_ms - now_ms());
}

struct host *begin_host_as(int i, const char *address, const struct store_access *access,
			   const void *session)
{
	const struct store_url url = {
		.scheme = backend->scheme, .servers = (char *)address, .root = top};
	const struct store_options options = {.url = &url,
					      .session_timeout_ms = host_timeout_ms,
					      .contention = &host_contention,
					      .access = access,
					      .session = session};
	struct host *host = &hosts[i];

	*host = (struct host){.session = STORE_SUSPENDED};
	assert_int_equal(stores_find(backend->scheme)->open(&options, &events, host, &host->store),
			 0);
	return host;
}

struct host *begin_host(int i, const char *address)
{
	static const struct store_access nobody;

	return begin_host_as(i, address, &nobody, NULL);
}

struct host *open_host(int i, const char *address)
{
	struct host *host = begin_host(i, address);

	WAIT_FOR(host->session == STORE_CONNECTED);
	return host;
}

struct host *open_peer(struct host *host)
{
	return service_has_claims() ? open_host(1, server) : host;
}

int64_t close_host(struct host *host)
{
	int64_t begin_ms = now_ms();

	host->store->ops->close(host->store, nobody_is_told());
	host->store = NULL;
	return now_ms() - begin_ms;
}

int close_hosts(void **state)
{
	proxy.lingers = false;
	set_link(LINK_PASSES);
	for (int i = 0; i < HOSTS_MAX; i++)
		if (hosts[i].store)
			close_host(&hosts[i]);
	return 0;
}

struct claim_name claim_of(uint32_t number, enum claim_mode mode)
{
	return (struct claim_name){.id = {.session = claim_id_session(1), .number = number},
				   .mode = mode,
				   .span = CLAIM_SPAN_WHOLE};
}

void send_place(struct host *host, struct call *call, const char *path, uint32_t number,
		enum claim_mode mode, bool list)
{
	struct claim_name name = claim_of(number, mode);

	memset(call, 0, sizeof(*call));
	host->store->ops->place(host->store, call, path, &name, "host=test\n", list, NULL);
	memset(&name, 0xff, sizeof(name)); /* it is not looked at any more */
}

void place(struct host *host, struct call *call, const char *path, uint32_t number)
{
	send_place(host, call, path, number, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call->times);
	assert_int_equal(call->error, 0);
}

void list(struct host *host, struct call *call, const char *path, bool sync)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->list(host->store, call, path, sync, false);
	WAIT_FOR(call->times);
}

void attend(struct host *host, struct call *call, const char *path, bool sync)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->list(host->store, call, path, sync, true);
	WAIT_FOR(call->times);
}

void send_watch(struct host *host, struct call *call, const char *path, const char *name)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->watch(host->store, call, path, name);
}

void send_amend(struct host *host, struct call *call, const char *path, const struct call *placed,
		const char *text)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->amend(host->store, call, path, placed->name, text, STORE_ANY_VERSION);
}

int amend(struct host *host, const char *path, const struct call *placed, const char *text)
{
	struct call call;

	send_amend(host, &call, path, placed, text);
	WAIT_FOR(call.times);
	return call.error;
}

int withdraw(struct host *host, const char *path, const struct call *placed)
{
	struct call call = {0};

	host->store->ops->withdraw(host->store, nobody_is_told(), &call, path, placed->name,
				   placed->order, false);
	WAIT_FOR(call.times);
	return call.error;
}

int bequeath(struct host *host, const char *path, const struct call *placed, const char *heir)
{
	struct call call = {0};

	host->store->ops->bequeath(host->store, nobody_is_told(), &call, path, placed->name,
				   placed->order, heir);
	WAIT_FOR(call.times);
	return call.error;
}

void send_prove(struct host *host, struct call *call, const struct store_proof *proofs,
		size_t count)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->prove(host->store, call, proofs, count);
}

int prove(struct host *host, struct call *call, const struct store_proof *proofs, size_t count)
{
	send_prove(host, call, proofs, count);
	WAIT_FOR(call->times);
	return call->error;
}

void beat(struct host *host)
{
	int beats = host->beats;

	host->store->ops->prove(host->store, NULL, NULL, 0);
	WAIT_FOR(host->beats > beats);
}

uint64_t session_of(const struct host *host)
{
	return (uint64_t)host->store->ops->session(host->store);
}

static const struct backend *const backends[] = {
	&backend_zookeeper,
#ifdef HAVE_ETCD
	&backend_etcd,
#endif
#ifdef HAVE_REDIS
	&backend_redis,
#endif
};

void begin_tests(int argc, char **argv, const char *scheme)
{
	static struct store_url url;
	char why[256] = "";

	if (argc != 2 || store_url_parse(argv[1], &url, why, sizeof(why)) < 0 || !url.servers ||
	    (scheme && strcmp(url.scheme, scheme) != 0)) {
		fprintf(stderr, "usage: %s %s://HOST:PORT %s\n", argv[0],
			scheme ? scheme : "SCHEME", why);
		exit(2);
	}
	for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++) {
		if (!strcmp(backends[i]->scheme, url.scheme))
			backend = backends[i];
	}
	server = url.servers;
	snprintf(top, sizeof(top), "/store-test-%d-%lld", (int)getpid(), (long long)time(NULL));
	backend->begin();
	start_proxy(server);
}

int end_tests(int failed)
{
	stop_proxy();
	backend->end();
	return failed ? 1 : 0;
}
