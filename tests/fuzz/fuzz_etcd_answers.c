/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers of etcd may send to the store: anything. The store is the real one over calls that
 * etcd_calls.h answers, by the input: with bytes of it, or with answers in the form of the request
 * whose numbers, keys, counts and flags are the input's. Time is the input's, too. What the store
 * tells is read to its end, and the numbers that it promises are what store.h says.
 */
#include "etcd_calls.h"
#include "told.h"

#include <errno.h>

#include "base/log.h"
#include "stores/etcd/store.h"

/* --- What the store tells --- */

static enum store_session session;
static char placed[512]; /* the name of the claim that was placed last */
static int64_t placed_order;

static void read_entries(const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		REQUIRE(strlen(entries[i].name) > 0 && !strchr(entries[i].name, '/'));
		REQUIRE(entries[i].orphan || entries[i].claim.order > 0);
		REQUIRE(i == 0 || entries[i - 1].claim.order <= entries[i].claim.order);
	}
}

static void on_session(void *context, enum store_session now, int64_t timeout_ms)
{
	session = now;
	REQUIRE(timeout_ms >= 0 && timeout_ms <= 300000);
}

static void on_nothing(void *context)
{
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	if (error)
		return;
	REQUIRE(order > 0 && strlen(name) < sizeof(placed));
	strcpy(placed, name);
	placed_order = order;
	read_entries(entries, entries ? count : 0);
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	read_entries(entries, error ? 0 : count);
}

static void on_changed(void *context, void *tag)
{
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	REQUIRE(!text || strlen(text) < SIZE_MAX);
}

static void on_done(void *context, void *tag, int error)
{
	REQUIRE(error <= 0);
}

static void on_aged(void *context, void *tag, int error, int64_t age_ms, const char *text)
{
	REQUIRE(error <= 0);
	REQUIRE(error < 0 || (age_ms >= 0 && text != NULL));
}

/* The tag of a proof with new data. */
static int change_of_data;

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	REQUIRE(error || tag != &change_of_data || stamp > 0);
	REQUIRE(error != -ENOENT || strlen(missing) > 0);
}

static void on_moratorium(void *context, enum store_moratorium why, int64_t until_ms)
{
	(void)context;
	(void)why;
	(void)until_ms;
}

static const struct store_events events = {
	.on_session = on_session,
	.on_moratorium = on_moratorium,
	.on_renewed = on_nothing,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_done,
	.on_amended = on_done,
	.on_marked = on_done,
	.on_aged = on_aged,
	.on_withdrawn = on_done,
	.on_proved = on_proved,
	.on_touched = on_nothing,
};

static size_t asked; /* from outside, and not answered */

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < names_count && !error; i++)
		REQUIRE(strlen(names[i]) < SIZE_MAX);
	read_entries(entries, error ? 0 : count);
	asked--;
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	static volatile uint8_t last;

	if (!error && claim->data_bytes > 0)
		last = ((const uint8_t *)claim->data)[claim->data_bytes - 1];
	(void)last;
	asked--;
}

static void on_changed_claim(struct store_change *change, int error)
{
	asked--;
}

static void on_files(struct store_files *files, int error, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count && !error; i++)
		REQUIRE(names[i][0] != '\0' && names[i][0] != '/');
	asked--;
}

/* --- What is asked of the store --- */

static void ask(struct input *in, struct store *store)
{
	static struct store_look look = {on_looked};
	static struct store_read read = {on_claim};
	static struct store_change change = {on_changed_claim};
	static struct store_files files = {on_files};
	const struct claim_name name = {
		.id.session = 0xab,
		.mode = input_take(in) % 2 ? CLAIM_SHARED : CLAIM_EXCLUSIVE,
		.span = CLAIM_SPAN_WHOLE,
	};
	const struct store_step step = {.kind = (enum store_step_kind)(input_take(in) % 5),
					.path = "d//f",
					.text = "text",
					.version = input_take(in) % 3};
	const struct store_proof proof = {"a/b", placed, input_take(in) % 2 ? "kind=flock" : NULL,
					  input_take(in) % 2};
	static int tag;
	const struct store_ops *ops = store->ops;
	size_t count;

	/* The engine asks in a session only. */
	switch (input_take(in) % 16) {
	case 0:
	case 1:
	case 2:
		ops->place(store, &tag, "a/b", &name, "kind=flock", input_take(in) % 2, NULL);
		break;
	case 3:
		ops->list(store, &tag, "a/b", true, input_take(in) % 2);
		break;
	case 4:
		ops->watch(store, &tag, "a/b", placed);
		break;
	case 5:
		ops->watch(store, &tag, "d//f", NULL);
		break;
	case 6:
		ops->amend(store, &tag, "a/b", placed, "kind=flock", input_take(in) % 2);
		break;
	case 7:
		if (input_take(in) % 2)
			ops->mark(store, &tag, "a/b", placed, "kind=flock", 1000);
		else
			ops->age(store, &tag, "a/b", placed);
		break;
	case 8:
		ops->withdraw(store, nobody_is_told(), &tag, "a/b", placed, placed_order,
			      input_take(in) % 2);
		break;
	case 9:
		count = input_take(in) % 2;
		ops->prove(store, proof.text && count > 0 ? &change_of_data : &tag, &proof, count);
		break;
	case 10:
		asked += ops->look(store, &look, input_take(in) % 2 ? "a/b" : "") == 0;
		break;
	case 11:
		asked += ops->read(store, &read, "a/b", input_take(in) % 2 ? placed : "Held") == 0;
		break;
	case 12:
		asked += ops->files(store, &files, input_take(in) % 2 ? "d" : "") == 0;
		break;
	case 13:
		asked += ops->read(store, &read, "d//f", NULL) == 0;
		break;
	case 14:
		asked += ops->write(store, &change, "a/b", placed, "text", input_take(in) % 2) == 0;
		break;
	default:
		asked += ops->alter(store, &change, &step, 1) == 0;
		break;
	}
}

static void run(struct input *in, struct store *store)
{
	switch (input_take(in) % 8) {
	case 0:
	case 1:
	case 2:
		answer(in, store->ops->session(store));
		break;
	case 3:
	case 4:
		ask(in, store);
		break;
	case 5:
		net.now_ms += input_take(in) * 8;
		break;
	case 6:
		if (!net.is_connected)
			net_connect();
		else if (input_take(in) >= 200)
			net_disconnect();
		break;
	default:
		if (session == STORE_LOST)
			store->ops->renew(store, nobody_is_told());
		else
			answer(in, store->ops->session(store));
		break;
	}
	store->ops->dispatch(store);
}

/* The servers answer as they should, until the session is there. */
static void begin(struct store *store)
{
	static const uint8_t zeros[1000];

	net_connect();
	for (int i = 0; i < 12 && session != STORE_CONNECTED; i++) {
		struct input in = {zeros, sizeof(zeros)};

		store->ops->dispatch(store);
		answer(&in, store->ops->session(store));
	}
	store->ops->dispatch(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct store_url url = {.scheme = STORE_SCHEME_ETCD,
				.servers = (char *)"server:1",
				.root = (char *)"/root"};
	const struct store_access access = {0};
	const struct store_options options = {
		.url = &url,
		.access = &access,
		.session_timeout_ms = 5000,
	};
	struct input in = {data, bytes};
	struct store *store;

	log_set_level(LOG_LEVEL_ERROR);
	memset(&net, 0, sizeof(net));
	net.now_ms = 100000;
	session = STORE_SUSPENDED;
	strcpy(placed, "694d8a1c2f3b5d07-mutex-0000000001");
	placed_order = 1;
	asked = 0;
	REQUIRE(store_etcd_kind.open(&options, &events, NULL, &store) == 0);
	begin(store);
	while (in.bytes > 0)
		run(&in, store);
	net_disconnect();
	store->ops->dispatch(store);
	store->ops->close(store, nobody_is_told());
	return 0;
}
