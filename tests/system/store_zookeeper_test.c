/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives the ZooKeeper store, through the table of store.h, on a real server:
 *
 *     store_zookeeper_test HOST:PORT
 *
 * The server must grant session timeouts of two seconds. Everything is created below one znode per
 * process and left to the server's reaper. Connections are cut by a small proxy in this program.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include "store_zookeeper.h"
#include "zookeeper_operation.h"

#define DEADLINE_MS 30000
#define TIMEOUT_MS  2000

static const char *server;
static char top[64];   /* the znode above everything of this process */
static zhandle_t *raw; /* another client on the same server */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The proxy */

enum link { LINK_PASSES, LINK_SILENT, LINK_REFUSES };

#define PAIRS_MAX 16

static struct {
	pthread_t thread;
	int listener, wake;
	char address[32];
	atomic_int link;
	atomic_bool stopping;
	int ends[PAIRS_MAX * 2]; /* neighbours belong together; -1: free */
} proxy;

static void close_pair(int i)
{
	close(proxy.ends[i]);
	close(proxy.ends[i ^ 1]);
	proxy.ends[i] = proxy.ends[i ^ 1] = -1;
}

static void accept_link(void)
{
	struct sockaddr_in target = {.sin_family = AF_INET};
	int near = accept(proxy.listener, NULL, NULL);
	int far = socket(AF_INET, SOCK_STREAM, 0);
	int i = 0;

	target.sin_port = htons((uint16_t)atoi(strrchr(server, ':') + 1));
	target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (i < PAIRS_MAX * 2 && proxy.ends[i] >= 0)
		i += 2;
	if (i == PAIRS_MAX * 2 || proxy.link == LINK_REFUSES ||
	    connect(far, (struct sockaddr *)&target, sizeof(target)) < 0) {
		close(near);
		close(far);
		return;
	}
	proxy.ends[i] = near;
	proxy.ends[i + 1] = far;
}

static void forward(int i)
{
	char buffer[65536];
	ssize_t bytes = recv(proxy.ends[i], buffer, sizeof(buffer), 0);

	for (ssize_t sent = 0, n; sent < bytes; sent += n) {
		n = send(proxy.ends[i ^ 1], buffer + sent, (size_t)(bytes - sent), MSG_NOSIGNAL);
		if (n < 0)
			bytes = 0;
	}
	if (bytes <= 0)
		close_pair(i);
}

static void *run_proxy(void *context)
{
	struct pollfd polled[PAIRS_MAX * 2 + 2];
	eventfd_t count;

	while (!proxy.stopping) {
		bool passes = proxy.link == LINK_PASSES;

		for (int i = 0; i < PAIRS_MAX * 2; i++) {
			if (proxy.link == LINK_REFUSES && proxy.ends[i] >= 0)
				close_pair(i);
			polled[i] = (struct pollfd){passes ? proxy.ends[i] : -1, POLLIN, 0};
		}
		polled[PAIRS_MAX * 2] =
			(struct pollfd){proxy.link == LINK_SILENT ? -1 : proxy.listener, POLLIN, 0};
		polled[PAIRS_MAX * 2 + 1] = (struct pollfd){proxy.wake, POLLIN, 0};
		poll(polled, PAIRS_MAX * 2 + 2, -1);
		if (polled[PAIRS_MAX * 2 + 1].revents) {
			eventfd_read(proxy.wake, &count);
			continue;
		}
		for (int i = 0; i < PAIRS_MAX * 2; i++)
			if (polled[i].revents && proxy.ends[i] >= 0)
				forward(i);
		if (polled[PAIRS_MAX * 2].revents)
			accept_link();
	}
	return NULL;
}

static void set_link(enum link link)
{
	proxy.link = link;
	eventfd_write(proxy.wake, 1);
}

static void start_proxy(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy.listener = socket(AF_INET, SOCK_STREAM, 0);
	proxy.wake = eventfd(0, EFD_NONBLOCK);
	memset(proxy.ends, -1, sizeof(proxy.ends));
	if (bind(proxy.listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(proxy.listener, 16) < 0 ||
	    getsockname(proxy.listener, (struct sockaddr *)&address, &bytes) < 0 ||
	    pthread_create(&proxy.thread, NULL, run_proxy, NULL) != 0) {
		perror("proxy");
		exit(1);
	}
	snprintf(proxy.address, sizeof(proxy.address), "127.0.0.1:%d", ntohs(address.sin_port));
}

static void stop_proxy(void)
{
	proxy.stopping = true;
	set_link(LINK_REFUSES);
	pthread_join(proxy.thread, NULL);
	for (int i = 0; i < PAIRS_MAX * 2; i += 2)
		if (proxy.ends[i] >= 0)
			close_pair(i);
	close(proxy.listener);
	close(proxy.wake);
}

/* Hosts: a store each */

#define HOSTS_MAX 3

static struct host {
	struct store *store;
	enum store_session session;
	int changes[3]; /* how often each was told */
	int events;	/* answers so far */
	int64_t timeout_ms;
} hosts[HOSTS_MAX];

/* One operation and what came of it. */
struct call {
	int times; /* answered */
	int order; /* among the answers of its host */
	int error;
	char name[CLAIM_NAME_BYTES];
	int32_t sequence;
	bool listed;
	size_t count;
	struct claim_name claims[4]; /* of the first entries */
	int reads;		     /* of a watch, and the last of them */
	bool changed;		     /* and is about to be read again */
	char text[64];		     /* read; or where something was missing */
	int64_t stamp;
};

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	struct host *host = context;

	host->timeout_ms = timeout_ms;

	assert_int_not_equal(session, host->session);
	host->session = session;
	host->changes[session]++;
}

static void note(struct host *host, struct call *call, int error, const struct store_entry *entries,
		 size_t count)
{
	call->times++;
	call->order = host->events++;
	call->error = error;
	call->listed = entries != NULL;
	call->count = count;
	for (size_t i = 0; i < count; i++) {
		if (i < 4)
			call->claims[i] = entries[i].claim;
		if (i > 0)
			assert_true(claim_name_compare(
					    entries[i - 1].claim.sequence, entries[i - 1].name,
					    entries[i].claim.sequence, entries[i].name) < 0);
	}
}

static void on_placed(void *context, void *tag, int error, const char *name, int32_t sequence,
		      const struct store_entry *entries, size_t count)
{
	struct call *call = tag;

	note(context, call, error, entries, count);
	snprintf(call->name, sizeof(call->name), "%s", name ? name : "");
	call->sequence = sequence;
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	note(context, tag, error, entries, count);
}

static void on_read(void *context, void *tag, const char *text)
{
	struct call *call = tag;

	assert_int_equal(call->times, 0);
	if (text == NULL) {
		assert_false(call->changed);
		call->changed = true;
		return;
	}
	/* After the first time only once the change was told. */
	assert_int_equal(call->changed, call->reads > 0);
	call->changed = false;
	call->reads++;
	snprintf(call->text, sizeof(call->text), "%s", text);
}

static void on_answered(void *context, void *tag, int error)
{
	note(context, tag, error, NULL, 0);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	struct call *call = tag;

	assert_true((error == -ENOENT) == (missing != NULL));
	note(context, tag, error, NULL, 0);
	snprintf(call->text, sizeof(call->text), "%s", missing ? missing : "");
	call->stamp = stamp;
}

static const struct store_events events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_read = on_read,
	.on_watched = on_answered,
	.on_amended = on_answered,
	.on_withdrawn = on_answered,
	.on_proved = on_proved,
};

static void dispatch_hosts(int64_t limit_ms)
{
	struct pollfd polled[HOSTS_MAX];

	for (int i = 0; i < HOSTS_MAX; i++)
		polled[i] = (struct pollfd){
			hosts[i].store ? hosts[i].store->ops->descriptor(hosts[i].store) : -1,
			POLLIN, 0};
	poll(polled, HOSTS_MAX, (int)limit_ms);
	for (int i = 0; i < HOSTS_MAX; i++)
		if (polled[i].revents)
			hosts[i].store->ops->dispatch(hosts[i].store);
}

/* Runs the hosts until the condition holds. */
#define WAIT_FOR(condition)                                                                        \
	do {                                                                                       \
		int64_t until_ms = now_ms() + DEADLINE_MS;                                         \
		while (!(condition)) {                                                             \
			if (now_ms() > until_ms)                                                   \
				fail_msg("in vain: %s", #condition);                               \
			dispatch_hosts(100);                                                       \
		}                                                                                  \
	} while (0)

/* Runs the hosts for so long, to see that nothing happens. */
static void run_for(int64_t ms)
{
	int64_t until_ms = now_ms() + ms;

	while (now_ms() < until_ms)
		dispatch_hosts(until_ms - now_ms());
}

static struct host *begin_host(int i, const char *address)
{
	struct store_zookeeper_options options = {address, top, TIMEOUT_MS};
	struct host *host = &hosts[i];

	*host = (struct host){.session = STORE_SUSPENDED};
	assert_int_equal(store_zookeeper_open(&options, &events, host, &host->store), 0);
	return host;
}

static struct host *open_host(int i, const char *address)
{
	struct host *host = begin_host(i, address);

	WAIT_FOR(host->session == STORE_CONNECTED);
	return host;
}

static int64_t close_host(struct host *host)
{
	int64_t begin_ms = now_ms();

	host->store->ops->close(host->store);
	host->store = NULL;
	return now_ms() - begin_ms;
}

static int close_hosts(void **state)
{
	set_link(LINK_PASSES);
	for (int i = 0; i < HOSTS_MAX; i++)
		if (hosts[i].store)
			close_host(&hosts[i]);
	return 0;
}

static struct claim_name claim_of(uint32_t number, enum claim_mode mode)
{
	return (struct claim_name){.id = {.session = claim_id_session(1), .number = number},
				   .mode = mode,
				   .span = CLAIM_SPAN_WHOLE};
}

static void send_place(struct host *host, struct call *call, const char *path, uint32_t number,
		       enum claim_mode mode, bool list)
{
	struct claim_name name = claim_of(number, mode);

	memset(call, 0, sizeof(*call));
	host->store->ops->place(host->store, call, path, &name, "host=test\n", list);
	memset(&name, 0xff, sizeof(name)); /* it is not looked at any more */
}

static void place(struct host *host, struct call *call, const char *path, uint32_t number)
{
	send_place(host, call, path, number, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call->times);
	assert_int_equal(call->error, 0);
}

static void list(struct host *host, struct call *call, const char *path, bool sync)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->list(host->store, call, path, sync);
	WAIT_FOR(call->times);
}

static void send_watch(struct host *host, struct call *call, const char *path, const char *name)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->watch(host->store, call, path, name);
}

static void send_amend(struct host *host, struct call *call, const char *path,
		       const struct call *placed, const char *text)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->amend(host->store, call, path, placed->name, text);
}

static int amend(struct host *host, const char *path, const struct call *placed, const char *text)
{
	struct call call;

	send_amend(host, &call, path, placed, text);
	WAIT_FOR(call.times);
	return call.error;
}

static int withdraw(struct host *host, const char *path, const struct call *placed)
{
	struct call call = {0};

	host->store->ops->withdraw(host->store, &call, path, placed->name, placed->sequence);
	WAIT_FOR(call.times);
	return call.error;
}

/* The znode of a lock, or of what stands below it. */
static const char *znode(const char *path)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s/%s", top, path);
	return text;
}

/* Tests */

static void test_order(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, third, all;

	send_place(a, &first, "order", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(first.times);
	send_place(b, &second, "order", 2, CLAIM_SHARED, true);
	WAIT_FOR(second.times);
	send_place(a, &third, "order", 3, CLAIM_EXCLUSIVE, false);
	WAIT_FOR(third.times);
	assert_int_equal(first.error | second.error | third.error, 0);
	assert_int_equal(first.count, 1);
	assert_int_equal(second.count, 2);
	assert_false(third.listed);
	assert_true(first.sequence < second.sequence && second.sequence < third.sequence);

	list(b, &all, "order", true);
	assert_int_equal(all.error, 0);
	assert_int_equal(all.count, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_true(all.claims[i].id.session == claim_id_session(1));
		assert_int_equal(all.claims[i].id.number, i + 1);
		assert_int_equal(all.claims[i].mode, i == 1 ? CLAIM_SHARED : CLAIM_EXCLUSIVE);
	}
	list(b, &all, "never/used", false);
	assert_int_equal(all.error, 0);
	assert_int_equal(all.count, 0);
	list(b, &all, "never/used", true);
	assert_int_equal(all.error, 0);
}

/* Other clients' claims stand in the queue, each as one of the whole file, of nobody here. */
static void test_foreign(void **state)
{
	static const struct {
		const char *name;
		enum claim_mode mode;
	} others[] = {
		{"lock-", CLAIM_EXCLUSIVE},
		{"_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-__READ__", CLAIM_SHARED},
		{"_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-lock-", CLAIM_EXCLUSIVE},
	};
	struct host *a = open_host(0, server);
	struct call first, all;
	char path[256];

	place(a, &first, "foreign", 1);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "foreign/%s", others[i].name);
		assert_int_equal(zoo_create(raw, znode(path), "", 0, &ZOO_OPEN_ACL_UNSAFE,
					    ZOO_EPHEMERAL_SEQUENTIAL, NULL, 0),
				 ZOK);
	}
	assert_int_equal(
		zoo_create(raw, znode("foreign/leases"), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
		ZOK);
	list(a, &all, "foreign", true);
	assert_int_equal(all.count, 4);
	for (size_t i = 0; i < 3; i++) {
		const struct claim_name *claim = &all.claims[i + 1];

		assert_true(claim->id.session == 0);
		assert_int_equal(claim->id.owner | claim->id.number, 0);
		assert_int_equal(claim->mode, others[i].mode);
		assert_false(claim->record || claim->sparse || claim->anchored);
		assert_true(claim->span.start == 0 && claim->span.end == INT64_MAX);
		assert_int_equal(claim->sequence, first.sequence + 1 + (int)i);
	}
	assert_int_equal(zoo_delete(raw, znode("foreign/leases"), -1), ZOK);
}

/* All that a name can say comes back from the server. */
static void test_spans(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct claim_name name = claim_of(1, CLAIM_EXCLUSIVE);
	struct call first = {0}, second = {0}, all;
	const struct claim_name *claim;

	name.record = true;
	name.span = (struct claim_span){100, 199};
	a->store->ops->place(a->store, &first, "spans", &name, "", true);
	name.id.number = UINT32_MAX;
	name.id.owner = CLAIM_OWNERS - 1;
	name.mode = CLAIM_SHARED;
	name.sparse = name.anchored = true;
	name.span = (struct claim_span){INT64_MAX - 1, INT64_MAX};
	name.anchor = INT32_MIN;
	name.anchor_span = (struct claim_span){INT64_MAX, INT64_MAX};
	name.sequence = -1; /* not looked at */
	a->store->ops->place(a->store, &second, "spans", &name, "", true);
	WAIT_FOR(second.times);
	assert_int_equal(first.error | second.error, 0);
	assert_int_equal(second.sequence, first.sequence + 1);

	list(b, &all, "spans", true);
	assert_int_equal(all.count, 2);
	claim = &all.claims[0];
	assert_true(claim->id.session == name.id.session && claim->record && !claim->sparse);
	assert_true(claim->span.start == 100 && claim->span.end == 199 && !claim->anchored);
	assert_int_equal(claim->sequence, first.sequence);
	claim = &all.claims[1];
	assert_true(claim->id.session == name.id.session && claim->record && claim->sparse);
	assert_int_equal(claim->id.owner, name.id.owner);
	assert_int_equal(claim->id.number, name.id.number);
	assert_int_equal(claim->mode, CLAIM_SHARED);
	assert_true(claim->span.start == name.span.start && claim->span.end == INT64_MAX);
	assert_true(claim->anchored && claim->anchor == INT32_MIN);
	assert_true(claim->anchor_span.start == INT64_MAX && claim->anchor_span.end == INT64_MAX);
	assert_int_equal(claim->sequence, second.sequence);
	assert_int_equal(withdraw(b, "spans", &second), 0);
}

#define MANY 1000

static void test_pipelined(void **state)
{
	static struct call calls[MANY];
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call all, answer = {0};

	place(a, &all, "many", 0);
	for (unsigned i = 0; i < MANY; i++)
		send_place(a, &calls[i], "many", i + 1, CLAIM_EXCLUSIVE, i % 100 == 0);
	WAIT_FOR(calls[MANY - 1].times);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(calls[i].times, 1);
		assert_int_equal(calls[i].error, 0);
		assert_int_equal(calls[i].order, i + 1);
		assert_int_equal(calls[i].sequence, all.sequence + (int)i + 1);
		assert_int_equal(calls[i].listed, i % 100 == 0);
		assert_true(!calls[i].listed || calls[i].count >= i + 2);
	}
	for (unsigned i = 0; i < MANY; i++)
		a->store->ops->withdraw(a->store, &answer, "many", calls[i].name,
					calls[i].sequence);
	WAIT_FOR(answer.times == MANY);
	list(b, &all, "many", true);
	assert_int_equal(all.count, 1);
}

static void test_watch(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, gone, also_gone, missing;
	char path[256];

	place(a, &first, "watch", 1);
	place(b, &second, "watch", 2);
	send_watch(b, &gone, "watch", first.name);
	send_watch(b, &also_gone, "watch", first.name);
	send_watch(b, &missing, "watch", "_c_0-__WRIT__0000000099");
	WAIT_FOR(missing.times);
	assert_int_equal(missing.error, 0);
	assert_int_equal(gone.times, 0);

	/* New data is no end; neither is what happens to others. */
	snprintf(path, sizeof(path), "watch/%s", first.name);
	WAIT_FOR(gone.reads == 1 && also_gone.reads == 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(zoo_set(raw, znode(path), "news", 4, -1), ZOK);
		WAIT_FOR(gone.reads == i + 2 && also_gone.reads == i + 2);
	}
	run_for(50);
	assert_int_equal(gone.reads, 4);
	assert_int_equal(withdraw(b, "watch", &second), 0);
	assert_int_equal(gone.times, 0);

	assert_int_equal(withdraw(a, "watch", &first), 0);
	WAIT_FOR(gone.times && also_gone.times);
	run_for(50);
	assert_int_equal(gone.times, 1);
	assert_int_equal(also_gone.times, 1);
	assert_int_equal(gone.error | also_gone.error, 0);
	send_watch(b, &missing, "no/such/lock", first.name);
	WAIT_FOR(missing.times);
	assert_int_equal(missing.error, 0);
}

static void test_amend(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, seen, also_seen, own, amends[3], withdrawn = {0};
	char path[256], text[8];
	struct Stat stat;
	int bytes;

	place(a, &first, "amend", 1);
	send_watch(b, &seen, "amend", first.name);
	send_watch(b, &also_seen, "amend", first.name);
	send_watch(a, &own, "amend", first.name);
	WAIT_FOR(seen.reads == 1 && also_seen.reads == 1 && own.reads == 1);
	assert_string_equal(seen.text, "host=test\n");
	assert_string_equal(also_seen.text, "host=test\n");
	assert_string_equal(own.text, "host=test\n");

	for (int i = 1; i <= 20; i++) {
		snprintf(text, sizeof(text), "n=%d\n", i);
		assert_int_equal(amend(a, "amend", &first, text), 0);
		WAIT_FOR(seen.reads == i + 1 && also_seen.reads == i + 1 && own.reads == i + 1);
		assert_string_equal(seen.text, text);
		assert_string_equal(also_seen.text, text);
		assert_string_equal(own.text, text);
	}

	/* Data as others may leave it: none at all, or a NUL in it. */
	snprintf(path, sizeof(path), "amend/%s", first.name);
	assert_int_equal(zoo_set(raw, znode(path), NULL, -1, -1), ZOK);
	WAIT_FOR(seen.reads == 22 && also_seen.reads == 22);
	assert_string_equal(seen.text, "");
	assert_int_equal(zoo_set(raw, znode(path), "ab\0cd", 5, -1), ZOK);
	WAIT_FOR(seen.reads == 23 && also_seen.reads == 23);
	assert_string_equal(seen.text, "ab");

	/* Changes that come faster than they are read: the last one is, and no older one after it.
	 * Answers come in the order of the calls. */
	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "m=%d\n", i);
		send_amend(a, &amends[i], "amend", &first, text);
	}
	WAIT_FOR(amends[2].times && !strcmp(seen.text, "m=2\n") &&
		 !strcmp(also_seen.text, "m=2\n"));
	run_for(50);
	assert_string_equal(seen.text, "m=2\n");
	assert_string_equal(own.text, "m=2\n");
	assert_true(seen.reads <= 26);
	bytes = sizeof(text);
	assert_int_equal(zoo_get(raw, znode(path), 0, text, &bytes, &stat), ZOK);
	assert_int_equal(bytes, 4);

	send_amend(a, &amends[0], "amend", &first, "last");
	a->store->ops->withdraw(a->store, &withdrawn, "amend", first.name, first.sequence);
	send_amend(a, &amends[1], "amend", &first, "late");
	send_amend(a, &amends[2], "no/such/lock", &first, "late");
	WAIT_FOR(amends[2].times);
	assert_int_equal(amends[0].error | withdrawn.error | amends[1].error | amends[2].error, 0);
	assert_true(withdrawn.order > amends[0].order);
	assert_true(amends[1].order > withdrawn.order);
	assert_true(amends[2].order > amends[1].order);
	WAIT_FOR(seen.times && also_seen.times && own.times);
	assert_int_equal(seen.error | also_seen.error | own.error, 0);
}

static void test_withdraw(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first;

	place(a, &first, "withdraw", 1);
	assert_int_equal(withdraw(b, "withdraw", &first), 0);
	assert_int_equal(withdraw(a, "withdraw", &first), 0);
	assert_int_equal(withdraw(a, "no/such/lock", &first), 0);
}

static void test_parents(void **state)
{
	struct host *a = open_host(0, server);
	struct call calls[20];

	for (unsigned i = 0; i < 20; i++)
		send_place(a, &calls[i], "deep/er/and/deeper", i + 1, CLAIM_EXCLUSIVE, true);
	for (unsigned i = 0; i < 20; i++) {
		WAIT_FOR(calls[i].times);
		assert_int_equal(calls[i].error, 0);
		assert_int_equal(calls[i].sequence, i);
		assert_true(calls[i].count > i);
	}
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(withdraw(a, "deep/er/and/deeper", &calls[i]), 0);

	/* Where the reaper took it. */
	assert_int_equal(zoo_delete(raw, znode("deep/er/and/deeper"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("deep/er/and"), -1), ZOK);
	place(a, calls, "deep/er/and/deeper", 1);
	assert_int_equal(calls->sequence, 0);
	assert_int_equal(calls->count, 1);
}

static void on_reaped(int code, const void *data)
{
	atomic_int *under_way = (atomic_int *)data;

	atomic_fetch_sub(under_way, 1);
}

/* A reaper that is always at it: whatever is idle for a moment is gone. */
static void test_reaper(void **state)
{
	static atomic_int under_way;
	struct host *a = open_host(0, server);
	struct call call;

	for (unsigned i = 0; i < 200; i++) {
		send_place(a, &call, "reaped", i + 1, CLAIM_EXCLUSIVE, true);
		while (!call.times) {
			if (under_way < 4) {
				under_way++;
				zoo_adelete(raw, znode("reaped"), -1, on_reaped, &under_way);
			}
			dispatch_hosts(1);
		}
		assert_int_equal(call.error, 0);
		assert_int_equal(withdraw(a, "reaped", &call), 0);
	}
	WAIT_FOR(under_way == 0);
}

static void test_names(void **state)
{
	static struct call calls[256];
	struct host *a = open_host(0, server), *b = open_host(1, server);
	char name[300];
	struct call all;

	for (int byte = 1; byte < 256; byte++) {
		snprintf(name, sizeof(name), "n/%c", byte);
		if (byte != '/')
			send_place(a, &calls[byte], name, (uint32_t)byte, CLAIM_EXCLUSIVE, true);
	}
	for (int byte = 1; byte < 256; byte++) {
		if (byte == '/')
			continue;
		WAIT_FOR(calls[byte].times);
		assert_int_equal(calls[byte].error, 0);
		assert_int_equal(calls[byte].count, 1);
		snprintf(name, sizeof(name), "n/%c", byte);
		list(b, &all, name, true);
		assert_int_equal(all.count, 1);
		assert_int_equal(all.claims[0].id.number, byte);
	}
	strcpy(name, "n/");
	for (int i = 0; i < 255; i++)
		name[2 + i] = (char)(i % 2 ? 0xff : 1);
	name[257] = '\0';
	place(a, &all, name, 1);
	place(a, &all, "n/..x", 2);
	place(a, &all, "zookeeper", 3);
}

static void test_refused(void **state)
{
	struct ACL entries[] = {{ZOO_PERM_READ | ZOO_PERM_ADMIN, {"world", "anyone"}}};
	struct ACL_vector acl = {1, entries};
	struct host *a = open_host(0, server);
	struct call call, watched;
	char path[256];

	assert_int_equal(zoo_create(raw, znode("closed"), "", 0, &acl, 0, NULL, 0), ZOK);
	send_place(a, &call, "closed", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	send_place(a, &call, "closed/inner", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EACCES);
	assert_int_equal(zoo_delete(raw, znode("closed"), -1), ZOK);

	/* Nothing can stand below a claim. */
	assert_int_equal(zoo_create(raw, znode("short"), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL,
				    NULL, 0),
			 ZOK);
	send_place(a, &call, "short/inner", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -EIO);

	/* A claim that may only be read, then not even that. */
	place(a, &call, "mine", 1);
	snprintf(path, sizeof(path), "mine/%s", call.name);
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	assert_int_equal(amend(a, "mine", &call, "new"), -EACCES);
	send_watch(a, &watched, "mine", call.name);
	WAIT_FOR(watched.reads);
	assert_string_equal(watched.text, "host=test\n");
	entries[0].perms = ZOO_PERM_WRITE | ZOO_PERM_ADMIN;
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	send_watch(a, &watched, "mine", call.name);
	WAIT_FOR(watched.times);
	assert_int_equal(watched.reads, 0);
	assert_int_equal(watched.error, -EACCES);
}

/* Who asks from outside, and what came of it. */
struct asker {
	union {
		struct store_look look;
		struct store_read read;
		struct store_change change;
	};
	int times;
	int error;
	char names[8][64];
	size_t names_count;
	size_t claims;
	struct store_claim claim;
	char *data;
};

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct asker *asker = (struct asker *)look;

	asker->times++;
	asker->error = error;
	asker->names_count = names_count;
	asker->claims = entries_count;
	for (size_t i = 0; i < names_count && i < 8; i++)
		snprintf(asker->names[i], sizeof(asker->names[i]), "%s", names[i]);
	for (size_t i = 1; i < entries_count; i++)
		assert_true(claim_name_compare(entries[i - 1].claim.sequence, entries[i - 1].name,
					       entries[i].claim.sequence, entries[i].name) < 0);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	struct asker *asker = (struct asker *)read;

	asker->times++;
	asker->error = error;
	assert_int_equal(error != 0, claim == NULL);
	if (!claim)
		return;
	asker->claim = *claim;
	asker->data = malloc(claim->data_bytes + 1);
	memcpy(asker->data, claim->data, claim->data_bytes);
	asker->data[claim->data_bytes] = '\0';
}

static void on_changed(struct store_change *change, int error)
{
	struct asker *asker = (struct asker *)change;

	asker->times++;
	asker->error = error;
}

static void send_look(struct host *host, struct asker *asker, const char *path)
{
	*asker = (struct asker){.look.done = on_looked};
	assert_int_equal(host->store->ops->look(host->store, &asker->look, path), 0);
	assert_int_equal(asker->times, 0);
}

static int look(struct host *host, struct asker *asker, const char *path)
{
	send_look(host, asker, path);
	WAIT_FOR(asker->times);
	return asker->error;
}

static bool saw(const struct asker *asker, const char *name)
{
	for (size_t i = 0; i < asker->names_count; i++)
		if (!strcmp(asker->names[i], name))
			return true;
	return false;
}

static void send_read(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.read.done = on_claim};
	assert_int_equal(host->store->ops->read(host->store, &asker->read, path, name), 0);
	assert_int_equal(asker->times, 0);
}

/* The data is to be freed if this returns 0. */
static int read_claim(struct host *host, struct asker *asker, const char *path, const char *name)
{
	send_read(host, asker, path, name);
	WAIT_FOR(asker->times);
	return asker->error;
}

static void send_write(struct host *host, struct asker *asker, const char *path, const char *name,
		       const char *text, uint32_t version)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(
		host->store->ops->write(host->store, &asker->change, path, name, text, version), 0);
}

static int write_claim(struct host *host, const char *path, const char *name, const char *text,
		       uint32_t version)
{
	struct asker asker;

	send_write(host, &asker, path, name, text, version);
	WAIT_FOR(asker.times);
	return asker.error;
}

static void send_remove(struct host *host, struct asker *asker, const char *path, const char *name)
{
	*asker = (struct asker){.change.done = on_changed};
	assert_int_equal(host->store->ops->remove(host->store, &asker->change, path, name), 0);
}

static int remove_claim(struct host *host, const char *path, const char *name)
{
	struct asker asker;

	send_remove(host, &asker, path, name);
	WAIT_FOR(asker.times);
	return asker.error;
}

static void make_raw(const char *path)
{
	assert_int_equal(zoo_create(raw, znode(path), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0),
			 ZOK);
}

static void test_look(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, second, below;
	struct asker asker;

	assert_int_equal(look(b, &asker, "look"), -ENOENT);
	place(a, &first, "look", 1);
	place(a, &second, "look", 2);
	place(a, &below, "look/b\x01%", 3);
	make_raw("look/plain");
	make_raw("look/lock-12");
	make_raw("look/%zz"); /* no name is written so */
	make_raw("look/lock-0000000007");
	assert_int_equal(look(b, &asker, "look"), 0);
	assert_int_equal(asker.claims, 3);
	assert_int_equal(asker.names_count, 3);
	assert_true(saw(&asker, "b\x01%") && saw(&asker, "plain") && saw(&asker, "lock-12"));
	assert_int_equal(look(b, &asker, "look/b\x01%"), 0);
	assert_int_equal(asker.claims, 1);
	assert_int_equal(asker.names_count, 0);
	assert_int_equal(look(b, &asker, "look/plain"), 0);
	assert_int_equal(asker.claims + asker.names_count, 0);

	/* Above all locks nothing is a claim. */
	make_raw("lock-0000000007");
	assert_int_equal(look(b, &asker, ""), 0);
	assert_int_equal(asker.claims, 0);
	assert_true(asker.names_count >= 2);
	assert_int_equal(zoo_delete(raw, znode("lock-0000000007"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("look/lock-0000000007"), -1), ZOK);
	assert_int_equal(zoo_delete(raw, znode("look/plain"), -1), ZOK);
}

static void test_read(void **state)
{
	static char hostile[1040000];
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first;
	struct asker asker;
	struct Stat stat;
	char path[256];

	place(a, &first, "read", 1);
	snprintf(path, sizeof(path), "read/%s", first.name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &stat), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_string_equal(asker.data, "host=test\n");
	assert_int_equal(asker.claim.data_bytes, strlen("host=test\n"));
	assert_true(asker.claim.session == (uint64_t)stat.ephemeralOwner);
	assert_true(asker.claim.since_ms == stat.ctime);
	assert_int_equal(asker.claim.version, 0);
	free(asker.data);

	/* Whatever somebody else put there, up to what the server takes. */
	memset(hostile, 0xff, sizeof(hostile));
	memcpy(hostile, "format=1\n\0host=", 15);
	memset(hostile + 500000, 0, 1000);
	assert_int_equal(zoo_set(raw, znode(path), hostile, sizeof(hostile), -1), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, sizeof(hostile));
	assert_memory_equal(asker.data, hostile, sizeof(hostile));
	assert_int_equal(asker.claim.version, 1);
	free(asker.data);
	assert_int_equal(zoo_set(raw, znode(path), NULL, -1, -1), ZOK);
	assert_int_equal(read_claim(b, &asker, "read", first.name), 0);
	assert_int_equal(asker.claim.data_bytes, 0);
	free(asker.data);

	assert_int_equal(zoo_create(raw, znode("read/kept-0000000099"), "", 0, &ZOO_OPEN_ACL_UNSAFE,
				    0, NULL, 0),
			 ZOK);
	assert_int_equal(read_claim(b, &asker, "read", "kept-0000000099"), 0);
	assert_true(asker.claim.session == 0);
	free(asker.data);
	assert_int_equal(read_claim(b, &asker, "read", "gone"), -ENOENT);
	assert_int_equal(read_claim(b, &asker, "never/used", "gone"), -ENOENT);
	assert_int_equal(remove_claim(b, "read", "kept-0000000099"), 0);
}

static void test_change(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, seen;
	struct asker asker;

	place(a, &first, "change", 1);
	send_watch(a, &seen, "change", first.name);
	WAIT_FOR(seen.reads == 1);
	assert_int_equal(write_claim(b, "change", first.name, "first", 0), 0);
	assert_int_equal(write_claim(b, "change", first.name, "stale", 0), -ESTALE);
	assert_int_equal(amend(a, "change", &first, "second"), 0);
	assert_int_equal(write_claim(b, "change", first.name, "stale", 1), -ESTALE);
	assert_int_equal(write_claim(b, "change", first.name, "third", 2), 0);
	assert_int_equal(read_claim(b, &asker, "change", first.name), 0);
	assert_string_equal(asker.data, "third");
	assert_int_equal(asker.claim.version, 3);
	free(asker.data);
	WAIT_FOR(seen.reads > 1 && !strcmp(seen.text, "third"));
	assert_int_equal(write_claim(b, "change", "gone", "", 0), -ENOENT);
	assert_int_equal(remove_claim(b, "change", "gone"), -ENOENT);
	assert_int_equal(remove_claim(b, "change", first.name), 0);
	WAIT_FOR(seen.times);
	assert_int_equal(seen.error, 0);
	assert_int_equal(remove_claim(b, "change", first.name), -ENOENT);
}

/* Who asks from outside is answered also if the session, or all connection, is lost. */
static void test_outside_and_loss(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct asker looked, read, written, removed;
	struct call first;

	place(a, &first, "outside", 1);
	set_link(LINK_SILENT);
	send_look(a, &looked, "outside");
	send_read(a, &read, "outside", first.name);
	send_write(a, &written, "outside", first.name, "text", 0);
	send_remove(a, &removed, "outside", first.name);
	a->session = STORE_LOST;
	a->store->ops->renew(a->store);
	WAIT_FOR(looked.times && read.times && written.times && removed.times);
	assert_int_equal(looked.error, -ECONNRESET);
	assert_int_equal(read.error, -ECONNRESET);
	assert_int_equal(written.error, -ECONNRESET);
	assert_int_equal(removed.error, -ECONNRESET);
	/* Between two sessions. */
	assert_int_equal(look(a, &looked, "outside"), -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);

	/* In one that expires while nothing gets through. */
	place(a, &first, "outside", 2);
	set_link(LINK_SILENT);
	send_look(a, &looked, "outside");
	send_read(a, &read, "outside", first.name);
	WAIT_FOR(looked.times && read.times);
	assert_int_equal(looked.error, -ECONNRESET);
	assert_int_equal(read.error, -ECONNRESET);

	/* And nobody is after close(). */
	send_look(a, &looked, "outside");
	close_host(a);
	assert_int_equal(looked.times, 0);
}

static void test_reconnect(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct call first, second, gone, lost[10], all;

	place(a, &first, "reconnect", 1);
	place(b, &second, "reconnect", 2);
	send_watch(b, &gone, "reconnect", first.name);
	list(b, &all, "reconnect", false);

	set_link(LINK_SILENT);
	for (unsigned i = 0; i < 10; i++)
		send_place(b, &lost[i], "reconnect", 10 + i, CLAIM_EXCLUSIVE, true);
	run_for(100);
	set_link(LINK_REFUSES);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	WAIT_FOR(lost[9].times);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(lost[i].error, -ECONNRESET);
	assert_int_equal(withdraw(a, "reconnect", &first), 0);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);
	WAIT_FOR(gone.times);
	assert_int_equal(gone.error, 0);
	list(b, &all, "reconnect", true);
	assert_true(all.count >= 1);
	assert_int_equal(all.claims[0].id.number, 2);
	assert_int_equal(b->changes[STORE_LOST], 0);
	assert_int_equal(b->changes[STORE_CONNECTED], 2);
}

/* Watches outlive a connection, and what was changed meanwhile is read afterwards. */
static void test_reconnect_and_amends(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct call first, second, quiet, seen, also_seen, unseen, amended;

	place(a, &first, "changed", 1);
	place(a, &second, "changed", 2);
	send_watch(b, &seen, "changed", first.name);
	send_watch(b, &also_seen, "changed", first.name);
	send_watch(b, &quiet, "changed", second.name);
	WAIT_FOR(seen.reads && also_seen.reads && quiet.reads);

	for (int round = 1; round <= 3; round++) {
		char text[16];

		set_link(LINK_REFUSES);
		WAIT_FOR(b->session == STORE_SUSPENDED);
		assert_int_equal(amend(a, "changed", &first, "missed\n"), 0);
		snprintf(text, sizeof(text), "round %d\n", round);
		assert_int_equal(amend(a, "changed", &first, text), 0);
		set_link(LINK_PASSES);
		WAIT_FOR(b->session == STORE_CONNECTED);
		WAIT_FOR(seen.reads == 1 + round && also_seen.reads == 1 + round);
		assert_string_equal(seen.text, text);
		assert_string_equal(also_seen.text, text);
	}

	/* What was on the way is ambiguous. A watch that was not set up yet has failed. */
	set_link(LINK_SILENT);
	send_watch(b, &unseen, "changed", first.name);
	send_amend(b, &amended, "changed", &first, "perhaps\n");
	run_for(100);
	set_link(LINK_REFUSES);
	WAIT_FOR(unseen.times && amended.times);
	assert_int_equal(unseen.error, -ECONNRESET);
	assert_int_equal(unseen.reads, 0);
	assert_int_equal(amended.error, -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_CONNECTED);

	/* The others are as good as new. */
	assert_int_equal(amend(a, "changed", &first, "last\n"), 0);
	WAIT_FOR(!strcmp(seen.text, "last\n") && !strcmp(also_seen.text, "last\n"));
	assert_int_equal(amend(a, "changed", &second, "first\n"), 0);
	WAIT_FOR(quiet.reads == 2);
	assert_string_equal(quiet.text, "first\n");
	assert_int_equal(withdraw(a, "changed", &first), 0);
	WAIT_FOR(seen.times && also_seen.times);
	assert_int_equal(seen.error | also_seen.error, 0);
	assert_int_equal(quiet.times, 0);
	assert_int_equal(b->changes[STORE_LOST], 0);
}

static void test_expiry(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct call first, gone, never, after, all;
	char before[256], text[256];

	b->store->ops->describe(b->store, before, sizeof(before));
	place(b, &first, "expiry", 1);
	send_watch(a, &gone, "expiry", first.name);
	send_watch(b, &never, "expiry", first.name);
	list(a, &all, "expiry", false);
	list(b, &all, "expiry", false); /* now both watches are set up */
	set_link(LINK_REFUSES);
	WAIT_FOR(gone.times);
	assert_int_equal(b->session, STORE_SUSPENDED);
	b->store->ops->describe(b->store, text, sizeof(text));
	assert_non_null(strstr(text, "not connected"));

	set_link(LINK_PASSES);
	WAIT_FOR(b->session == STORE_LOST);
	send_place(b, &after, "expiry", 2, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(after.times);
	assert_int_equal(after.error, -ECONNRESET);
	WAIT_FOR(b->session == STORE_CONNECTED);
	place(b, &after, "expiry", 3);
	assert_int_equal(after.count, 1);
	assert_int_equal(never.times, 0);
	b->store->ops->describe(b->store, text, sizeof(text));
	assert_non_null(strstr(text, " connected to 127.0.0.1:"));
	assert_string_not_equal(text, before);
	assert_int_equal(b->changes[STORE_LOST], 1);
}

/* Closes with requests under way: everything is gone long before the session would expire. */
static void send_prove(struct host *host, struct call *call, const struct store_proof *proofs,
		       size_t count)
{
	memset(call, 0, sizeof(*call));
	host->store->ops->prove(host->store, call, proofs, count);
}

static int prove(struct host *host, struct call *call, const struct store_proof *proofs,
		 size_t count)
{
	send_prove(host, call, proofs, count);
	WAIT_FOR(call->times);
	return call->error;
}

/* A proof goes through the quorum's log, and through a break it proves nothing. */
static void test_prove_session(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call call, proof;
	struct Stat before, after;

	assert_int_equal(a->timeout_ms, TIMEOUT_MS);
	place(a, &call, "beat", 1);
	assert_int_equal(zoo_exists(raw, znode("beat"), 0, &before), ZOK);
	assert_int_equal(prove(a, &proof, NULL, 0), 0);
	place(a, &call, "beat", 2);
	assert_int_equal(zoo_exists(raw, znode("beat"), 0, &after), ZOK);
	assert_true(after.pzxid >= before.pzxid + 2); /* one for the proof, one for the claim */

	set_link(LINK_SILENT);
	assert_int_equal(prove(a, &proof, NULL, 0), -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
}

/* It shows whether claims stand, changes one of them, and stamps that with what only grows. */
static void test_prove_claims(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call calls[STORE_PROOFS_MAX], seen, proof, withdrawn = {0};
	struct store_proof proofs[STORE_PROOFS_MAX];
	struct ACL none[] = {{ZOO_PERM_WRITE, ZOO_ANYONE_ID_UNSAFE}};
	struct ACL_vector acl = {1, none};
	char path[256], names[STORE_PROOFS_MAX][32];
	struct Stat after;
	int64_t stamp;

	for (int i = 0; i < STORE_PROOFS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "proof/%d", i);
		place(a, &calls[i], names[i], 1);
		proofs[i] = (struct store_proof){names[i], calls[i].name, NULL};
	}
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), 0);
	assert_int_equal(proof.stamp, 0);

	send_watch(b, &seen, names[0], calls[0].name);
	WAIT_FOR(seen.reads == 1);
	proofs[0].text = "new";
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), 0);
	snprintf(path, sizeof(path), "%s/%s", names[0], calls[0].name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &after), ZOK);
	assert_int_equal(proof.stamp, after.mzxid);
	WAIT_FOR(seen.reads == 2);
	assert_string_equal(seen.text, "new");

	/* Another claim's is greater, whoever makes it. */
	stamp = proof.stamp;
	place(b, &proof, names[0], 2);
	struct store_proof others = {names[0], proof.name, "others"};
	char name[CLAIM_NAME_BYTES];
	memcpy(name, proof.name, sizeof(name));
	others.name = name;
	assert_int_equal(prove(b, &proof, &others, 1), 0);
	assert_true(proof.stamp > stamp);

	/* One that may not be looked at tells nothing, but that the session lives. */
	snprintf(path, sizeof(path), "%s/%s", names[5], calls[5].name);
	assert_int_equal(zoo_set_acl(raw, znode(path), -1, &acl), ZOK);
	assert_int_equal(prove(a, &proof, proofs, STORE_PROOFS_MAX), -EACCES);

	/* One that is gone: the lock is told, and nothing is changed. */
	a->store->ops->withdraw(a->store, &withdrawn, names[3], calls[3].name, calls[3].sequence);
	proofs[0].text = "newer";
	assert_int_equal(prove(a, &proof, proofs, 5), -ENOENT);
	assert_string_equal(proof.text, names[3]);
	snprintf(path, sizeof(path), "%s/%s", names[0], calls[0].name);
	assert_int_equal(zoo_exists(raw, znode(path), 0, &after), ZOK);
	assert_int_equal(after.version, 1);
	assert_string_equal(seen.text, "new");
}

/* A session that is given up takes its claims along as soon as the server hears of it, and is not
 * spoken of. */
static void test_renew(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call first, gone, never, second;

	place(a, &first, "renew", 1);
	send_watch(b, &gone, "renew", first.name);
	send_place(a, &never, "renew", 2, CLAIM_EXCLUSIVE, true);
	a->session = STORE_LOST; /* as the engine knows */
	a->store->ops->renew(a->store);
	WAIT_FOR(gone.times && a->session == STORE_CONNECTED);
	assert_int_equal(a->changes[STORE_LOST], 0);
	assert_int_equal(never.times, 0);
	place(a, &second, "renew", 3);
	assert_int_equal(withdraw(a, "renew", &second), 0);
}

static void test_clean_close(void **state)
{
	static struct call calls[500];
	struct host *b = open_host(1, server);
	struct call all;

	for (int round = 0; round < 5; round++) {
		struct host *a = open_host(0, server);
		int64_t begin_ms;

		place(a, &all, "close", 1);
		for (unsigned i = 0; i < 500; i++)
			send_place(a, &calls[i], "close", i, CLAIM_EXCLUSIVE, i % 50 == 0);
		begin_ms = now_ms();
		close_host(a);
		list(b, &all, "close", true);
		assert_int_equal(all.error, 0);
		assert_int_equal(all.count, 0);
		assert_true(now_ms() - begin_ms < TIMEOUT_MS);
	}
}

static void test_close_unanswered(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct call call;

	set_link(LINK_SILENT);
	send_place(a, &call, "silent", 1, CLAIM_EXCLUSIVE, true);
	run_for(20);
	assert_true(close_host(a) < 2500);
	set_link(LINK_PASSES);

	a = open_host(0, proxy.address);
	set_link(LINK_REFUSES);
	WAIT_FOR(a->session == STORE_SUSPENDED);
	send_place(a, &call, "refused", 1, CLAIM_EXCLUSIVE, true);
	assert_true(close_host(a) < 2500);
}

static void test_unreachable(void **state)
{
	struct host *a, *b;
	struct call call;
	char text[256];

	set_link(LINK_REFUSES);
	a = begin_host(0, proxy.address);
	b = begin_host(1, "no-such-host.invalid:2181");
	send_place(a, &call, "nowhere", 1, CLAIM_EXCLUSIVE, true);
	WAIT_FOR(call.times);
	assert_int_equal(call.error, -ECONNRESET);
	list(b, &call, "nowhere", true);
	assert_int_equal(call.error, -ECONNRESET);
	run_for(300);
	a->store->ops->describe(a->store, text, sizeof(text));
	assert_non_null(strstr(text, "not connected"));
	send_place(a, &call, "nowhere", 1, CLAIM_EXCLUSIVE, true); /* and its answer left unread */
	assert_int_equal(a->changes[STORE_SUSPENDED] + a->changes[STORE_LOST], 0);
	assert_true(close_host(a) < 2500);
	assert_true(close_host(b) < 2500);

	/* Reached late. */
	a = begin_host(0, proxy.address);
	run_for(300);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
}

static void test_counter(void **state)
{
	struct host *a = open_host(0, server);
	struct call call, other;

	assert_false(operation_wears_out_counter(0));
	assert_false(operation_wears_out_counter(1 << 30));
	assert_true(operation_wears_out_counter((1 << 30) + 1));
	assert_true(operation_wears_out_counter(INT32_MAX));
	assert_true(operation_wears_out_counter(INT32_MIN));
	assert_true(operation_wears_out_counter(-1));

	/* A store that is told of such a number takes the empty queue away, and no other. */
	place(a, &call, "worn", 1);
	call.sequence = INT32_MIN;
	send_place(a, &other, "worn", 2, CLAIM_EXCLUSIVE, false);
	assert_int_equal(withdraw(a, "worn", &call), 0);
	place(a, &call, "worn", 3);
	assert_int_equal(call.sequence, 2);
}

static void test_counter_restarts(void **state)
{
	struct host *a = open_host(0, server);
	struct call call;

	place(a, &call, "restarts", 1);
	assert_int_equal(withdraw(a, "restarts", &call), 0);
	place(a, &call, "restarts", 2);
	assert_int_equal(call.sequence, 1);
	call.sequence = (1 << 30) + 1;
	assert_int_equal(withdraw(a, "restarts", &call), 0);
	place(a, &call, "restarts", 3);
	assert_int_equal(call.sequence, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_order, close_hosts),
		cmocka_unit_test_teardown(test_foreign, close_hosts),
		cmocka_unit_test_teardown(test_spans, close_hosts),
		cmocka_unit_test_teardown(test_pipelined, close_hosts),
		cmocka_unit_test_teardown(test_watch, close_hosts),
		cmocka_unit_test_teardown(test_amend, close_hosts),
		cmocka_unit_test_teardown(test_withdraw, close_hosts),
		cmocka_unit_test_teardown(test_parents, close_hosts),
		cmocka_unit_test_teardown(test_reaper, close_hosts),
		cmocka_unit_test_teardown(test_names, close_hosts),
		cmocka_unit_test_teardown(test_refused, close_hosts),
		cmocka_unit_test_teardown(test_look, close_hosts),
		cmocka_unit_test_teardown(test_read, close_hosts),
		cmocka_unit_test_teardown(test_change, close_hosts),
		cmocka_unit_test_teardown(test_outside_and_loss, close_hosts),
		cmocka_unit_test_teardown(test_reconnect, close_hosts),
		cmocka_unit_test_teardown(test_reconnect_and_amends, close_hosts),
		cmocka_unit_test_teardown(test_expiry, close_hosts),
		cmocka_unit_test_teardown(test_prove_session, close_hosts),
		cmocka_unit_test_teardown(test_prove_claims, close_hosts),
		cmocka_unit_test_teardown(test_renew, close_hosts),
		cmocka_unit_test_teardown(test_clean_close, close_hosts),
		cmocka_unit_test_teardown(test_close_unanswered, close_hosts),
		cmocka_unit_test_teardown(test_unreachable, close_hosts),
		cmocka_unit_test_teardown(test_counter, close_hosts),
		cmocka_unit_test_teardown(test_counter_restarts, close_hosts),
	};
	int failed;

	if (argc != 2 || !strchr(argv[1], ':')) {
		fprintf(stderr, "usage: %s HOST:PORT\n", argv[0]);
		return 2;
	}
	server = argv[1];
	snprintf(top, sizeof(top), "/store-test-%d-%lld", (int)getpid(), (long long)time(NULL));
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	raw = zookeeper_init(server, NULL, TIMEOUT_MS * 4, NULL, NULL, ZOO_NO_LOG_CLIENTENV);
	start_proxy();
	failed = cmocka_run_group_tests_name("store_zookeeper", tests, NULL, NULL);
	stop_proxy();
	zookeeper_close(raw);
	return failed ? 1 : 0;
}
