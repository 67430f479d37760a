/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks stores/local/store.c against the rules of stores/store.h: the order of a queue, answers in
 * the order of the calls and from dispatch() only, sessions that end, numbers that stop.
 *
 * What a session hears is written down as one line per event and compared with what it should be.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../told.h"
#include "claim/name.h"
#include "stores/local/store.h"

struct listener {
	struct store *store;
	char heard[4096];
	char last_name[256];
	int64_t last_order;
};

struct fixture {
	struct local_service *service;
	struct listener one, two;
};

__attribute__((format(printf, 2, 3))) static void hear(struct listener *listener,
						       const char *format, ...)
{
	size_t length = strlen(listener->heard);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(listener->heard + length, sizeof(listener->heard) - length, format, arguments);
	va_end(arguments);
}

static void hear_entries(struct listener *listener, const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct claim_name *claim = &entries[i].claim;
		struct claim_name named;

		hear(listener, " %c%" PRId64, claim->mode == CLAIM_EXCLUSIVE ? 'x' : 's',
		     claim->order);
		if (claim->span.start != 0 || claim->span.end != INT64_MAX)
			hear(listener, "%s[%" PRId64 "-%" PRId64 "]", claim->sparse ? "~" : "",
			     claim->span.start, claim->span.end);
		if (claim->anchored)
			hear(listener, "@%" PRId64 "[%" PRId64 "-%" PRId64 "]",
			     claim_name_number(claim->anchor), claim->anchor_span.start,
			     claim->anchor_span.end);
		assert_true(claim_name_parse(entries[i].name, &named));
		assert_int_equal(named.order, claim->order);
		assert_int_equal(named.id.session, claim->id.session);
		assert_int_equal(named.id.owner, claim->id.owner);
		assert_int_equal(named.id.number, claim->id.number);
		assert_int_equal(named.record, claim->record);
		assert_int_not_equal(claim->id.session, 0);
		if (i > 0)
			assert_true(claim_name_compare(entries[i - 1].claim.order,
						       entries[i - 1].name, claim->order,
						       entries[i].name) < 0);
	}
	hear(listener, "\n");
}

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	static const char *const names[] = {"connected", "suspended", "lost"};

	hear(context, "%s\n", names[session]);
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct listener *listener = context;

	assert_int_equal(error, 0);
	hear(listener, "%s placed %" PRId64, (const char *)tag, order);
	hear_entries(listener, entries, count);
	snprintf(listener->last_name, sizeof(listener->last_name), "%s", name);
	listener->last_order = order;
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	assert_int_equal(error, 0);
	hear(context, "%s listed", (const char *)tag);
	hear_entries(context, entries, count);
}

static void on_changed(void *context, void *tag)
{
	hear(context, "%s changed\n", (const char *)tag);
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	hear(context, "%s read %s\n", (const char *)tag, text);
}

static void on_watched(void *context, void *tag, int error)
{
	if (error == -EOWNERDEAD)
		hear(context, "%s watched dead\n", (const char *)tag);
	else
		hear(context, "%s watched %d\n", (const char *)tag, error);
}

static void on_amended(void *context, void *tag, int error)
{
	hear(context, "%s amended %d\n", (const char *)tag, error);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	hear(context, "%s withdrawn %d\n", (const char *)tag, error);
}

static const struct store_events events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_watched,
	.on_amended = on_amended,
	.on_withdrawn = on_withdrawn,
};

static bool is_readable(const struct listener *listener)
{
	struct pollfd wait = {.fd = listener->store->ops->descriptor(listener->store),
			      .events = POLLIN};

	return poll(&wait, 1, 0) == 1;
}

/* The events that have come are these, and with them the descriptor is quiet. */
static void expect(struct listener *listener, const char *lines)
{
	assert_int_equal(is_readable(listener), lines[0] != '\0');
	assert_string_equal(listener->heard, "");
	listener->store->ops->dispatch(listener->store);
	assert_string_equal(listener->heard, lines);
	listener->heard[0] = '\0';
	assert_false(is_readable(listener));
}

/* A claim of the listener's session with an id of its own. */
static struct claim_name claim_of(const struct listener *listener, enum claim_mode mode)
{
	static uint32_t number;

	return (struct claim_name){
		.id = {.session = claim_id_session((uintptr_t)listener), .number = ++number},
		.mode = mode,
		.span = CLAIM_SPAN_WHOLE,
	};
}

static void place_name(struct listener *listener, char *tag, const char *path,
		       struct claim_name name, const char *text, bool list)
{
	listener->store->ops->place(listener->store, tag, path, &name, text, list, NULL);
}

static void place(struct listener *listener, char *tag, const char *path, enum claim_mode mode,
		  bool list)
{
	place_name(listener, tag, path, claim_of(listener, mode), tag, list);
}

static void amend_last(struct listener *listener, char *tag, const char *path, const char *text)
{
	listener->store->ops->amend(listener->store, tag, path, listener->last_name, text,
				    STORE_ANY_VERSION);
}

static void withdraw_last(struct listener *listener, char *tag, const char *path)
{
	listener->store->ops->withdraw(listener->store, nobody_is_told(), tag, path,
				       listener->last_name, listener->last_order, false);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->service = local_service_create();
	store_local_open(fixture->service, &events, &fixture->one, &fixture->one.store);
	store_local_open(fixture->service, &events, &fixture->two, &fixture->two.store);
	expect(&fixture->one, "connected\n");
	expect(&fixture->two, "connected\n");
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->one.store != NULL)
		fixture->one.store->ops->close(fixture->one.store, nobody_is_told());
	fixture->two.store->ops->close(fixture->two.store, nobody_is_told());
	local_service_destroy(fixture->service);
	free(fixture);
	return 0;
}

static void test_places_in_order(void **state)
{
	struct fixture *f = *state;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, true);
	place(&f->two, "b", "lock", CLAIM_SHARED, true);
	place(&f->one, "c", "lock", CLAIM_EXCLUSIVE, false);
	place(&f->one, "d", "other", CLAIM_EXCLUSIVE, true);
	f->one.store->ops->list(f->one.store, "e", "lock", true, false);
	f->one.store->ops->list(f->one.store, "f", "never/used", false, false);
	expect(&f->one, "a placed 0 x0\nc placed 2\nd placed 0 x0\ne listed x0 s1 x2\nf listed\n");
	expect(&f->two, "b placed 1 x0 s1\n");
}

static void test_withdraws(void **state)
{
	struct fixture *f = *state;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	place(&f->two, "b", "lock", CLAIM_EXCLUSIVE, false);
	withdraw_last(&f->one, "c", "lock");
	withdraw_last(&f->one, "d", "lock");
	place(&f->two, "e", "lock", CLAIM_EXCLUSIVE, true);
	expect(&f->one, "c withdrawn 0\nd withdrawn 0\n");
	expect(&f->two, "b placed 1\ne placed 2 x1 x2\n");
	assert_false(local_service_is_empty(f->service, "lock"));
}

/* Like a container znode: what is empty goes, and its counter with it. */
static void test_empty_queue_starts_anew(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++) {
		place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, true);
		expect(&f->one, "a placed 0 x0\n");
		assert_false(local_service_is_empty(f->service, "lock"));
		withdraw_last(&f->one, "b", "lock");
		assert_true(local_service_is_empty(f->service, "lock"));
		expect(&f->one, "b withdrawn 0\n");
	}
}

static void test_anybody_may_withdraw(void **state)
{
	struct fixture *f = *state;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	f->two.store->ops->withdraw(f->two.store, nobody_is_told(), "b", "lock", f->one.last_name,
				    0, false);
	assert_true(local_service_is_empty(f->service, "lock"));
	expect(&f->two, "b withdrawn 0\n");
}

static void test_watches(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	ops->watch(f->two.store, "b", "lock", f->one.last_name);
	ops->watch(f->two.store, "c", "lock", f->one.last_name);
	ops->watch(f->one.store, "d", "lock", f->one.last_name);
	expect(&f->two, "b read a\nc read a\n");
	ops->watch(f->two.store, "e", "lock", "gone");
	ops->watch(f->two.store, "f", "nowhere", "gone");
	expect(&f->two, "e watched 0\nf watched 0\n");
	withdraw_last(&f->one, "g", "lock");
	expect(&f->one, "d read a\nd watched 0\ng withdrawn 0\n");
	expect(&f->two, "b watched 0\nc watched 0\n");
}

/* Whoever attends to a queue hears of the next claim that comes or goes, once; not of new data. */
static void test_attends(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	ops->list(f->two.store, "b", "lock", true, true);
	ops->list(f->two.store, "c", "lock", false, true);
	ops->list(f->one.store, "d", "lock", false, true);
	ops->list(f->one.store, "e", "lock", false, false);
	amend_last(&f->one, "f", "lock", "new");
	place(&f->two, "g", "other", CLAIM_EXCLUSIVE, false);
	place(&f->two, "h", "lock/below", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "d listed x0\ne listed x0\nf amended 0\n");
	expect(&f->two, "b listed x0\nc listed x0\ng placed 0\nh placed 0\n");

	place(&f->two, "i", "lock", CLAIM_SHARED, false);
	place(&f->two, "j", "lock", CLAIM_SHARED, false);
	expect(&f->one, "d changed\n");
	expect(&f->two, "b changed\nc changed\ni placed 1\nj placed 2\n");

	ops->list(f->two.store, "k", "lock", true, true);
	withdraw_last(&f->one, "l", "lock");
	expect(&f->one, "l withdrawn 0\n");
	expect(&f->two, "k listed x0 s1 s2\nk changed\n");
}

/* Nobody attends to a queue that has no claims: it is told at once, and so is the last one's end.
 */
static void test_attends_to_nothing(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	ops->list(f->two.store, "a", "never/used", true, true);
	expect(&f->two, "a listed\na changed\n");
	place(&f->one, "b", "lock/below", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "b placed 0\n");
	ops->list(f->two.store, "c", "lock", true, true);
	ops->list(f->two.store, "d", "lock/below", true, true);
	expect(&f->two, "c listed\nc changed\nd listed x0\n");
	withdraw_last(&f->one, "e", "lock/below");
	expect(&f->one, "e withdrawn 0\n");
	expect(&f->two, "d changed\n");
}

/* A session that is over attends to nothing, and what it placed is heard to go. */
static void test_expiry_and_attention(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	ops->list(f->two.store, "b", "lock", true, true);
	ops->list(f->one.store, "c", "lock", true, true);
	expect(&f->two, "b listed x0\n");
	store_local_expire(f->one.store);
	expect(&f->one, "lost\nconnected\n");
	expect(&f->two, "b changed\n");

	place(&f->one, "d", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "d placed 0\n");
	ops->list(f->two.store, "e", "lock", true, true);
	expect(&f->two, "e listed x0\n");
	ops->renew(f->two.store, nobody_is_told());
	expect(&f->two, "connected\n");
	ops->list(f->two.store, "f", "lock", true, true);
	expect(&f->two, "f listed x0\n");
	withdraw_last(&f->one, "g", "lock");
	store_local_expire(f->two.store);
	expect(&f->one, "g withdrawn 0\n");
	expect(&f->two, "lost\nconnected\n");
}

static void test_expiry(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	place(&f->two, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->two, "a placed 0\n");
	place(&f->one, "b", "lock", CLAIM_EXCLUSIVE, false);
	place(&f->one, "c", "other", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "b placed 1\nc placed 0\n");
	ops->watch(f->two.store, "d", "other", f->one.last_name);
	ops->watch(f->one.store, "e", "lock", f->two.last_name);
	place(&f->one, "f", "other", CLAIM_EXCLUSIVE, false);

	store_local_expire(f->one.store);
	assert_true(local_service_is_empty(f->service, "other"));
	expect(&f->two, "d read c\nd watched dead\n");
	/* Called in a session that is over: without effect, and never answered. */
	place(&f->one, "g", "other", CLAIM_EXCLUSIVE, false);
	withdraw_last(&f->two, "h", "lock");
	assert_true(local_service_is_empty(f->service, "other"));
	expect(&f->one, "lost\nconnected\n");
	expect(&f->two, "h withdrawn 0\n");

	place(&f->one, "i", "other", CLAIM_EXCLUSIVE, true);
	expect(&f->one, "i placed 0 x0\n");
}

static void test_close_ends_the_session(void **state)
{
	struct fixture *f = *state;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	f->two.store->ops->watch(f->two.store, "b", "lock", f->one.last_name);
	place(&f->one, "c", "lock", CLAIM_EXCLUSIVE, true);
	f->one.store->ops->close(f->one.store, nobody_is_told());
	f->one.store = NULL;
	assert_true(local_service_is_empty(f->service, "lock"));
	expect(&f->two, "b read a\nb watched dead\n");
}

/* Each watch is told by itself, of each change, whoever makes it; in the order of what happened. */
static void test_amends(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	amend_last(&f->one, "b", "lock", "before");
	ops->watch(f->two.store, "c", "lock", f->one.last_name);
	ops->watch(f->two.store, "d", "lock", f->one.last_name);
	ops->watch(f->one.store, "e", "lock", f->one.last_name);
	expect(&f->one, "b amended 0\ne read before\n");
	expect(&f->two, "c read before\nd read before\n");

	amend_last(&f->one, "f", "lock", "first");
	ops->list(f->two.store, "g", "lock", true, false);
	amend_last(&f->one, "h", "lock", "");
	expect(&f->one, "e read first\nf amended 0\ne read \nh amended 0\n");
	expect(&f->two, "c read first\nd read first\ng listed x0\nc read \nd read \n");

	ops->amend(f->two.store, "i", "lock", f->one.last_name, "by another", STORE_ANY_VERSION);
	expect(&f->one, "e read by another\n");
	expect(&f->two, "c read by another\nd read by another\ni amended 0\n");

	amend_last(&f->one, "j", "lock", "last");
	withdraw_last(&f->one, "k", "lock");
	amend_last(&f->one, "l", "lock", "late");
	expect(&f->one, "e read last\nj amended 0\ne watched 0\nk withdrawn 0\nl amended 0\n");
	expect(&f->two, "c read last\nd read last\nc watched 0\nd watched 0\n");
	assert_true(local_service_is_empty(f->service, "lock"));
}

/* The text is copied: what the caller does with its own shows nowhere. */
static void test_copies_the_text(void **state)
{
	struct fixture *f = *state;
	char text[] = "old";

	place_name(&f->one, "a", "lock", claim_of(&f->one, CLAIM_SHARED), text, false);
	text[0] = 'c';
	expect(&f->one, "a placed 0\n");
	f->two.store->ops->watch(f->two.store, "b", "lock", f->one.last_name);
	amend_last(&f->one, "c", "lock", text);
	text[0] = 't';
	expect(&f->one, "c amended 0\n");
	expect(&f->two, "b read old\nb read cld\n");
}

/* What a session that is over was to read is never told, and it amends nothing. */
static void test_expiry_and_amends(void **state)
{
	struct fixture *f = *state;
	const struct store_ops *ops = f->two.store->ops;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	ops->watch(f->two.store, "b", "lock", f->one.last_name);
	expect(&f->two, "b read a\n");
	amend_last(&f->one, "c", "lock", "news");
	expect(&f->one, "c amended 0\n");
	store_local_expire(f->two.store);
	ops->amend(f->two.store, "d", "lock", f->one.last_name, "of the dead", STORE_ANY_VERSION);
	amend_last(&f->one, "e", "lock", "more");
	expect(&f->one, "e amended 0\n");
	expect(&f->two, "lost\nconnected\n");
	ops->watch(f->two.store, "f", "lock", f->one.last_name);
	expect(&f->two, "f read more\n");
	f->two.store->ops->renew(f->two.store, nobody_is_told());
	amend_last(&f->one, "g", "lock", "again");
	expect(&f->one, "g amended 0\n");
	expect(&f->two, "connected\n");
}

/* A queue lists all that the names say. */
static void test_lists_spans_and_anchors(void **state)
{
	struct fixture *f = *state;
	struct claim_name name = claim_of(&f->one, CLAIM_EXCLUSIVE);

	name.record = true;
	name.span = (struct claim_span){10, 20};
	name.order = 77; /* not looked at */
	place_name(&f->one, "a", "lock", name, "", false);
	name = claim_of(&f->one, CLAIM_SHARED);
	name.id.owner = CLAIM_OWNERS - 1;
	name.record = name.sparse = true;
	name.span = (struct claim_span){0, INT64_MAX - 1};
	name.anchored = true;
	name.anchor_span = (struct claim_span){5, INT64_MAX};
	place_name(&f->one, "b", "lock", name, "", true);
	expect(&f->one,
	       "a placed 0\n"
	       "b placed 1 x0[10-20] s1~[0-9223372036854775806]@0[5-9223372036854775807]\n");
}

/* The last number is given again and again, and the names tell the order. */
static void test_numbers_stop(void **state)
{
	struct fixture *f = *state;
	struct claim_name name;
	char third[sizeof(f->one.last_name)];

	local_service_set_first_order(f->service, INT32_MAX - 1);
	for (int i = 0; i < 3; i++)
		place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, i == 2);
	expect(&f->one, "a placed 2147483646\na placed 2147483647\n"
			"a placed 2147483647 x2147483646 x2147483647 x2147483647\n");
	memcpy(third, f->one.last_name, sizeof(third));
	name = claim_of(&f->one, CLAIM_EXCLUSIVE);
	name.id.number = 0; /* whose name comes first */
	place_name(&f->one, "b", "lock", name, "", false);
	expect(&f->one, "b placed 2147483647\n");
	f->one.store->ops->withdraw(f->one.store, nobody_is_told(), "a", "lock", third, INT32_MAX,
				    false);
	f->one.store->ops->list(f->one.store, "a", "lock", false, false);
	expect(&f->one, "a withdrawn 0\na listed x2147483646 x2147483647 x2147483647\n");
	f->one.store->ops->withdraw(f->one.store, nobody_is_told(), "b", "lock", f->one.last_name,
				    INT32_MAX, false);
	f->one.store->ops->list(f->one.store, "b", "lock", false, false);
	expect(&f->one, "b withdrawn 0\nb listed x2147483646 x2147483647\n");
}

static void test_describes_itself(void **state)
{
	struct fixture *f = *state;
	char text[80];

	f->one.store->ops->describe(f->one.store, text, sizeof(text));
	assert_string_equal(text, "local: this host only (no server configured)");
}

/* Ten thousand waiters come and go; anything that walks the queue for each would be felt here. */
static void test_long_queue(void **state)
{
	struct fixture *f = *state;
	char first[sizeof(f->one.last_name)];

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	memcpy(first, f->one.last_name, sizeof(first));
	for (int i = 0; i < 10000; i++) {
		place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
		f->one.store->ops->dispatch(f->one.store);
		f->two.store->ops->watch(f->two.store, "b", "lock", first);
		f->one.heard[0] = '\0';
		if (i % 2 == 0)
			withdraw_last(&f->one, "c", "lock");
	}
	f->one.store->ops->withdraw(f->one.store, nobody_is_told(), "d", "lock", first, 0, false);
	f->one.store->ops->dispatch(f->one.store);
	f->two.store->ops->dispatch(f->two.store);
}

/* Somebody who asks from outside, and what came of it as a line. */
struct asker {
	union {
		struct store_look look;
		struct store_read read;
		struct store_change change;
	};
	struct listener *listener;
	const char *tag;
	struct store_claim claim;
};

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct asker *asker = (struct asker *)look;

	hear(asker->listener, "%s looked %d", asker->tag, error);
	for (size_t i = 0; i < names_count; i++)
		hear(asker->listener, " %s", names[i]);
	hear_entries(asker->listener, entries, entries_count);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	struct asker *asker = (struct asker *)read;

	assert_int_equal(error != 0, claim == NULL);
	if (claim == NULL) {
		hear(asker->listener, "%s claim %d\n", asker->tag, error);
		return;
	}
	asker->claim = *claim;
	hear(asker->listener, "%s claim %.*s %u\n", asker->tag, (int)claim->data_bytes,
	     (const char *)claim->data, claim->version);
}

static void on_claim_changed(struct store_change *change, int error)
{
	struct asker *asker = (struct asker *)change;

	hear(asker->listener, "%s changed %d\n", asker->tag, error);
}

static void look(struct listener *listener, struct asker *asker, const char *tag, const char *path)
{
	*asker = (struct asker){.look.done = on_looked, .listener = listener, .tag = tag};
	assert_int_equal(listener->store->ops->look(listener->store, &asker->look, path), 0);
}

static void read_claim(struct listener *listener, struct asker *asker, const char *tag,
		       const char *path, const char *name)
{
	*asker = (struct asker){.read.done = on_claim, .listener = listener, .tag = tag};
	assert_int_equal(listener->store->ops->read(listener->store, &asker->read, path, name), 0);
}

static void write_claim(struct listener *listener, struct asker *asker, const char *tag,
			const char *path, const char *name, const char *text, uint32_t version)
{
	*asker = (struct asker){.change.done = on_claim_changed, .listener = listener, .tag = tag};
	assert_int_equal(listener->store->ops->write(listener->store, &asker->change, path, name,
						     text, version),
			 0);
}

static void remove_claim(struct listener *listener, struct asker *asker, const char *tag,
			 const char *path, const char *name)
{
	*asker = (struct asker){.change.done = on_claim_changed, .listener = listener, .tag = tag};
	assert_int_equal(
		listener->store->ops->remove(listener->store, &asker->change, path, name, 0), 0);
}

/* A lock is seen as long as it or one below it has a claim; "" is above all. */
static void test_looks(void **state)
{
	struct fixture *f = *state;
	struct asker askers[7];

	look(&f->two, &askers[0], "a", "");
	look(&f->two, &askers[1], "b", "lock");
	place(&f->one, "c", "lock/a/b", CLAIM_SHARED, false);
	place(&f->one, "d", "lock/c", CLAIM_EXCLUSIVE, false);
	place(&f->one, "e", "lock", CLAIM_EXCLUSIVE, false);
	place(&f->one, "f", "other", CLAIM_EXCLUSIVE, false);
	look(&f->two, &askers[2], "g", "");
	look(&f->two, &askers[3], "h", "lock");
	look(&f->two, &askers[4], "i", "lock/a");
	look(&f->two, &askers[5], "j", "lock/a/b");
	look(&f->two, &askers[6], "k", "loc");
	expect(&f->one, "c placed 0\nd placed 0\ne placed 0\nf placed 0\n");
	expect(&f->two, "a looked -2\nb looked -2\ng looked 0 lock other\nh looked 0 a c x0\n"
			"i looked 0 b\nj looked 0 s0\nk looked -2\n");
	store_local_expire(f->one.store);
	look(&f->two, &askers[0], "l", "");
	look(&f->two, &askers[1], "m", "lock");
	expect(&f->two, "l looked -2\nm looked -2\n");
	expect(&f->one, "lost\nconnected\n");
}

static void test_reads_any_claim(void **state)
{
	struct fixture *f = *state;
	struct asker a, b, c;
	int64_t now_s = time(NULL);
	uint64_t session;

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	read_claim(&f->two, &a, "b", "lock", f->one.last_name);
	amend_last(&f->one, "c", "lock", "new");
	read_claim(&f->two, &b, "d", "lock", f->one.last_name);
	read_claim(&f->two, &c, "e", "lock", "gone");
	expect(&f->one, "c amended 0\n");
	expect(&f->two, "b claim a 0\nd claim new 1\ne claim -2\n");
	assert_in_range(a.claim.since_ms, now_s * 1000, now_s * 1000 + 60000);
	assert_true(a.claim.since_ms == b.claim.since_ms);
	assert_true(a.claim.session != 0 && a.claim.session == b.claim.session);
	session = a.claim.session;

	place(&f->two, "f", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->two, "f placed 1\n");
	read_claim(&f->one, &a, "g", "lock", f->two.last_name);
	expect(&f->one, "g claim f 0\n");
	assert_true(a.claim.session != session);
	/* A new session has another number. */
	f->one.store->ops->renew(f->one.store, nobody_is_told());
	expect(&f->one, "connected\n");
	place(&f->one, "h", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "h placed 2\n");
	read_claim(&f->two, &b, "i", "lock", f->one.last_name);
	expect(&f->two, "i claim h 0\n");
	assert_true(b.claim.session != session && b.claim.session != a.claim.session);
}

static void test_changes_any_claim(void **state)
{
	struct fixture *f = *state;
	struct asker askers[7];

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	f->one.store->ops->watch(f->one.store, "b", "lock", f->one.last_name);
	write_claim(&f->two, &askers[0], "c", "lock", f->one.last_name, "first", 0);
	write_claim(&f->two, &askers[1], "d", "lock", f->one.last_name, "stale", 0);
	write_claim(&f->two, &askers[2], "e", "lock", f->one.last_name, "second", 1);
	write_claim(&f->two, &askers[3], "f", "lock", "gone", "third", 0);
	remove_claim(&f->two, &askers[4], "g", "lock", "gone");
	remove_claim(&f->two, &askers[5], "h", "lock", f->one.last_name);
	remove_claim(&f->two, &askers[6], "i", "lock", f->one.last_name);
	/* Who has it would have to be told first. */
	assert_int_equal(f->one.store->ops->remove(f->one.store, &askers[5].change, "lock",
						   f->one.last_name,
						   store_local_session(f->one.store)),
			 -EPERM);
	assert_true(local_service_is_empty(f->service, "lock"));
	expect(&f->one, "b read a\nb read first\nb read second\nb watched dead\n");
	expect(&f->two, "c changed 0\nd changed -116\ne changed 0\nf changed -2\ng changed -2\n"
			"h changed 0\ni changed -2\n");
}

/* Who asks from outside is answered whatever becomes of the session. */
static void test_outside_and_expiry(void **state)
{
	struct fixture *f = *state;
	struct asker askers[6];

	place(&f->one, "a", "lock", CLAIM_EXCLUSIVE, false);
	expect(&f->one, "a placed 0\n");
	look(&f->one, &askers[0], "b", "lock");
	read_claim(&f->one, &askers[1], "c", "lock", f->one.last_name);
	write_claim(&f->one, &askers[2], "d", "lock", f->one.last_name, "text", 0);
	store_local_expire(f->one.store);
	remove_claim(&f->one, &askers[3], "e", "lock", f->one.last_name);
	expect(&f->one, "lost\nb looked -104\nc claim -104\nd changed -104\ne changed -104\n"
			"connected\n");
	look(&f->one, &askers[4], "f", "lock");
	f->one.store->ops->renew(f->one.store, nobody_is_told());
	look(&f->one, &askers[5], "g", "lock");
	expect(&f->one, "f looked -104\nconnected\ng looked -2\n");

	/* But not after close(). */
	look(&f->one, &askers[0], "h", "");
	f->one.store->ops->close(f->one.store, nobody_is_told());
	f->one.store = NULL;
	assert_string_equal(f->one.heard, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(places_in_order),
		TEST(withdraws),
		TEST(empty_queue_starts_anew),
		TEST(anybody_may_withdraw),
		TEST(watches),
		TEST(attends),
		TEST(attends_to_nothing),
		TEST(expiry_and_attention),
		TEST(expiry),
		TEST(close_ends_the_session),
		TEST(amends),
		TEST(copies_the_text),
		TEST(expiry_and_amends),
		TEST(lists_spans_and_anchors),
		TEST(numbers_stop),
		TEST(describes_itself),
		TEST(long_queue),
		TEST(looks),
		TEST(reads_any_claim),
		TEST(changes_any_claim),
		TEST(outside_and_expiry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
