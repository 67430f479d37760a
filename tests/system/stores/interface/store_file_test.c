/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files, in a store: what makes and removes them, all steps or none, who
 * sees what, and what is left of them when a connection is cut or a session ends.
 */
#include <time.h>

#include "claim/marker.h"
#include "store_asker.h"

#define ALTER(host, ...)                                                                           \
	alter(host, (const struct store_step[]){__VA_ARGS__},                                      \
	      sizeof((const struct store_step[]){__VA_ARGS__}) / sizeof(struct store_step))

static int make(struct host *host, const char *path, const char *text)
{
	return ALTER(host, {STEP_MAKE, path, text, 0});
}

static int take(struct host *host, const char *path, const char *text)
{
	return ALTER(host, {STEP_TAKE, path, text, 0});
}

static int replace(struct host *host, const char *path, const char *text, uint32_t version)
{
	return ALTER(host, {STEP_REPLACE, path, text, version});
}

static int remove_file(struct host *host, const char *path, uint32_t version)
{
	return ALTER(host, {STEP_REMOVE, path, NULL, version});
}

static int check(struct host *host, const char *path)
{
	return ALTER(host, {STEP_CHECK, path, NULL, 0});
}

static int barrier(struct host *host)
{
	return alter(host, NULL, 0);
}

/* Reads the file as it is anywhere. */
static int read_truth(struct host *host, struct asker *asker, const char *path)
{
	do { /* a cut may not have been noticed before */
		WAIT_FOR(host->session == STORE_CONNECTED);
	} while (barrier(host) == -ECONNRESET || read_file(host, asker, path) == -ECONNRESET);
	return asker->error;
}

static void expect_text(struct host *host, const char *path, const char *text)
{
	struct asker asker;

	assert_int_equal(read_truth(host, &asker, path), 0);
	assert_string_equal(asker.data, text);
}

static void expect_none(struct host *host, const char *path)
{
	struct asker asker;

	assert_int_equal(read_truth(host, &asker, path), -ENOENT);
}

static void test_make_and_remove(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker asker;
	int64_t real_ms = (int64_t)time(NULL) * 1000;

	expect_none(a, "make//one");
	assert_int_equal(remove_file(a, "make//one", STORE_ANY_VERSION), -ENOENT);
	assert_int_equal(make(a, "make//one", "first\nrest\n"), 0);
	assert_int_equal(make(b, "make//one", "second"), -EEXIST);
	assert_int_equal(make(a, "make//one", "third"), -EEXIST);

	assert_int_equal(read_truth(b, &asker, "make//one"), 0);
	assert_string_equal(asker.data, "first\nrest\n");
	assert_int_equal(asker.claim.data_bytes, strlen("first\nrest\n"));
	assert_true(asker.claim.session == session_of(a));
	assert_int_equal(asker.claim.version, 0);
	assert_true(asker.claim.since_ms == 0 ||
		    llabs(asker.claim.since_ms - real_ms) < DEADLINE_MS);
	assert_true(asker.claim.changed_ms == 0 ||
		    llabs(asker.claim.changed_ms - real_ms) < DEADLINE_MS);

	/* By any session, and only as it is known there. */
	assert_int_equal(remove_file(b, "make//one", 5), -ESTALE);
	assert_int_equal(remove_file(b, "make//one", 0), 0);
	assert_int_equal(remove_file(b, "make//one", 0), -ENOENT);
	expect_none(a, "make//one");
	assert_int_equal(make(b, "make//one", "second"), 0);
	assert_int_equal(remove_file(b, "make//one", STORE_ANY_VERSION), 0);
	expect_none(b, "make//one");
}

static void test_replace(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker asker;

	assert_int_equal(replace(a, "replace//f", "none", STORE_ANY_VERSION), -ENOENT);
	assert_int_equal(make(a, "replace//f", "0"), 0);
	assert_int_equal(replace(a, "replace//f", "1", 0), 0);
	assert_int_equal(replace(b, "replace//f", "stale", 0), -ESTALE);
	assert_int_equal(replace(b, "replace//f", "2", 1), 0);
	assert_int_equal(replace(a, "replace//f", "3", STORE_ANY_VERSION), 0);
	assert_int_equal(read_truth(b, &asker, "replace//f"), 0);
	assert_string_equal(asker.data, "3");
	assert_int_equal(asker.claim.version, 3);
	assert_true(asker.claim.session == session_of(a));
	assert_true(asker.claim.changed_ms == 0 || asker.claim.changed_ms >= asker.claim.since_ms);
	assert_int_equal(remove_file(a, "replace//f", 2), -ESTALE);
	assert_int_equal(remove_file(a, "replace//f", 3), 0);
}

/* All steps or none, and the error is the first one's that cannot be done. */
static void test_steps(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);

	assert_int_equal(make(b, "steps//taken", "b"), 0);
	assert_int_equal(make(a, "steps//mine", "a"), 0);
	assert_int_equal(ALTER(a, {STEP_MAKE, "steps//1", "1", 0}, {STEP_MAKE, "other//2", "2", 0},
			       {STEP_REPLACE, "steps//mine", "changed", 0},
			       {STEP_MAKE, "steps//taken", "4", 0},
			       {STEP_REMOVE, "steps//none", NULL, STORE_ANY_VERSION}),
			 -EEXIST);
	expect_none(b, "steps//1");
	expect_none(b, "other//2");
	expect_text(b, "steps//mine", "a");
	expect_text(b, "steps//taken", "b");
	assert_int_equal(ALTER(a, {STEP_REMOVE, "steps//mine", NULL, 0},
			       {STEP_REMOVE, "steps//none", NULL, STORE_ANY_VERSION},
			       {STEP_MAKE, "steps//taken", "4", 0}),
			 -ENOENT);
	assert_int_equal(ALTER(a, {STEP_TAKE, "steps//taken", "a", 0},
			       {STEP_REMOVE, "steps//mine", NULL, 7},
			       {STEP_REMOVE, "steps//none", NULL, STORE_ANY_VERSION}),
			 -ESTALE);
	expect_text(b, "steps//mine", "a");
	expect_text(b, "steps//taken", "b");

	/* As many as there may be, in directories that are missing. */
	assert_int_equal(
		ALTER(a, {STEP_MAKE, "new/1//1", "1", 0}, {STEP_MAKE, "new/2//2", "2", 0},
		      {STEP_MAKE, "//3", "3", 0}, {STEP_TAKE, "new/deep/er//4", "4", 0},
		      {STEP_TAKE, "steps//taken", "a", 0}, {STEP_REMOVE, "steps//mine", NULL, 5},
		      {STEP_MAKE, "steps//renamed", "a", 0}, {STEP_MAKE, "new//8", "8", 0}),
		-ESTALE);
	expect_none(b, "new/1//1");
	assert_int_equal(
		ALTER(a, {STEP_MAKE, "new/1//1", "1", 0}, {STEP_MAKE, "new/2//2", "2", 0},
		      {STEP_MAKE, "//3", "3", 0}, {STEP_TAKE, "new/deep/er//4", "4", 0},
		      {STEP_TAKE, "steps//taken", "a", 0}, {STEP_REMOVE, "steps//mine", NULL, 0},
		      {STEP_MAKE, "steps//renamed", "a", 0}, {STEP_MAKE, "new//8", "8", 0}),
		0);
	expect_text(b, "new/1//1", "1");
	expect_text(b, "//3", "3");
	expect_text(b, "new/deep/er//4", "4");
	expect_text(b, "steps//taken", "a");
	expect_text(b, "steps//renamed", "a");
	expect_none(b, "steps//mine");
	expect_text(b, "new//8", "8");
	assert_int_equal(barrier(b), 0);
}

static void test_take(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker asker;

	assert_int_equal(take(a, "take//f", "absent"), 0);
	expect_text(b, "take//f", "absent");
	assert_int_equal(replace(a, "take//f", "changed", 0), 0);
	assert_int_equal(take(a, "take//f", "own"), 0);
	assert_int_equal(read_truth(b, &asker, "take//f"), 0);
	assert_string_equal(asker.data, "own");
	assert_true(asker.claim.session == session_of(a));

	assert_int_equal(take(b, "take//f", "foreign"), 0);
	assert_int_equal(read_truth(a, &asker, "take//f"), 0);
	assert_string_equal(asker.data, "foreign");
	assert_true(asker.claim.session == session_of(b));
	/* It ends with the session that took it. */
	close_host(a);
	expect_text(b, "take//f", "foreign");
}

static void test_check(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);

	assert_int_equal(check(a, "check//f"), -ENOENT);
	assert_int_equal(make(a, "check//f", "a"), 0);
	assert_int_equal(check(a, "check//f"), 0);
	assert_int_equal(check(b, "check//f"), -ENOENT);
	assert_int_equal(replace(b, "check//f", "changed", 0), 0);
	assert_int_equal(check(a, "check//f"), 0);

	/* Among other steps, which are not done without it. */
	assert_int_equal(
		ALTER(a, {STEP_CHECK, "check//f", NULL, 0}, {STEP_MAKE, "check//g", "g", 0}), 0);
	expect_text(b, "check//g", "g");
	assert_int_equal(
		ALTER(b, {STEP_MAKE, "check//h", "h", 0}, {STEP_CHECK, "check//f", NULL, 0}),
		-ENOENT);
	expect_none(a, "check//h");
	assert_int_equal(
		ALTER(b, {STEP_MAKE, "check//g", "h", 0}, {STEP_CHECK, "check//f", NULL, 0}),
		-EEXIST);
	assert_int_equal(
		ALTER(b, {STEP_CHECK, "check//f", NULL, 0}, {STEP_MAKE, "check//g", "h", 0}),
		-ENOENT);

	/* Taken, and gone. */
	assert_int_equal(take(b, "check//f", "b"), 0);
	assert_int_equal(check(a, "check//f"), -ENOENT);
	assert_int_equal(
		ALTER(a, {STEP_CHECK, "check//g", NULL, 0}, {STEP_CHECK, "check//f", NULL, 0}),
		-ENOENT);
	assert_int_equal(remove_file(a, "check//g", 0), 0);
	assert_int_equal(check(a, "check//g"), -ENOENT);
}

/* A file that is kept, and changed only while a claim stands with the data that it has. */
static void test_kept(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	uint32_t first = a->store->ops->first_version;
	struct call claim;
	struct asker asker;

	place(a, &claim, "kept", 1);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first},
			       {STEP_KEEP, "kept/files//k", "1", 0}),
			 0);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first},
			       {STEP_KEEP, "kept/files//k", "2", 0}),
			 -EEXIST);
	assert_int_equal(read_truth(b, &asker, "kept/files//k"), 0);
	assert_int_equal(asker.claim.session, 0);
	assert_true(asker.claim.changed_ms > 0);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first},
			       {STEP_REPLACE, "kept/files//k", "2", 0}),
			 0);
	expect_text(b, "kept/files//k", "2");
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first},
			       {STEP_REPLACE, "kept/files//k", "3", 0}),
			 -ESTALE);
	/* The data of the claim are others now. */
	assert_int_equal(write_claim(b, "kept", claim.name, "format=1\n", first), 0);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first},
			       {STEP_REPLACE, "kept/files//k", "3", 1}),
			 -ESTALE);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first + 1},
			       {STEP_REPLACE, "kept/files//k", "3", 1}),
			 0);
	expect_text(b, "kept/files//k", "3");
	/* It has gone. */
	assert_int_equal(withdraw(a, "kept", &claim), 0);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first + 1},
			       {STEP_REPLACE, "kept/files//k", "4", 2}),
			 -ENOENT);
	assert_int_equal(ALTER(a, {STEP_STAND, "kept", claim.name, first + 1},
			       {STEP_KEEP, "kept/files//other", "4", 0}),
			 -ENOENT);
	expect_none(b, "kept/files//other");
	assert_int_equal(list_files(b, &asker, "kept/files"), 0);
	assert_int_equal(asker.names_count, 1);
	/* It outlives who has made it. */
	close_host(a);
	expect_text(b, "kept/files//k", "3");
	assert_int_equal(remove_file(b, "kept/files//k", 2), 0);
}

static const char *const odd_names[] = {
	"plain",
	"\x01\xff%41",
	"%",
	"%2F",
	"below/another/one",
	"job-1234567890",
	"_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-lock-0000000007",
	CLAIM_MARKER_PREFIX "x",
	"zookeeper",
	"write",
	" \xc3\xa4\n",
};

#define ODD_NAMES (sizeof(odd_names) / sizeof(*odd_names))

/* Any name, and a list shows them as they are; not the queues of their locks. */
/* A host that watches its own file is told when another one changes it, takes its place, or takes
 * it away. */
static void test_watch(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call watched, none;

	send_watch(a, &none, "watch//none", NULL);
	WAIT_FOR(none.times);
	assert_int_equal(none.error, 0);
	assert_int_equal(none.reads, 0);

	assert_int_equal(make(a, "watch//f", "1\n"), 0);
	send_watch(a, &watched, "watch//f", NULL);
	WAIT_FOR(watched.reads == 1);
	assert_string_equal(watched.text, "1\n");
	assert_int_equal(replace(b, "watch//f", "2\n", 0), 0);
	WAIT_FOR(watched.reads == 2);
	assert_string_equal(watched.text, "2\n");
	assert_int_equal(watched.times, 0);
	assert_int_equal(remove_file(b, "watch//f", 1), 0);
	WAIT_FOR(watched.times);
	assert_int_equal(watched.error, 0);

	/* What is made anew in the same moment is another one, or another text. */
	assert_int_equal(make(a, "watch//f", "3\n"), 0);
	send_watch(a, &watched, "watch//f", NULL);
	WAIT_FOR(watched.reads == 1);
	assert_int_equal(take(b, "watch//f", "4\n"), 0);
	WAIT_FOR(watched.times || !strcmp(watched.text, "4\n"));
	assert_int_equal(watched.error, 0);
	assert_int_equal(remove_file(b, "watch//f", STORE_ANY_VERSION), 0);
	WAIT_FOR(watched.times);
	run_for(50);
	assert_int_equal(watched.times, 1);
}

/* What has happened while there was no connection is told after it. */
static void test_watch_cut(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct call stays, goes;

	assert_int_equal(make(b, "watch-cut//stays", "1\n"), 0);
	assert_int_equal(make(b, "watch-cut//goes", "2\n"), 0);
	send_watch(b, &stays, "watch-cut//stays", NULL);
	send_watch(b, &goes, "watch-cut//goes", NULL);
	WAIT_FOR(stays.reads == 1 && goes.reads == 1);
	set_link(LINK_REFUSES);
	WAIT_FOR(b->session == STORE_SUSPENDED);
	WAIT_FOR(stays.changed && goes.changed);
	assert_int_equal(remove_file(a, "watch-cut//goes", 0), 0);
	set_link(LINK_PASSES);
	WAIT_FOR(goes.times && stays.reads == 2);
	assert_int_equal(goes.error, 0);
	assert_int_equal(stays.times, 0);
	assert_string_equal(stays.text, "1\n");
	assert_int_equal(b->changes[STORE_LOST], 0);
}

static void test_names(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker asker;
	struct call lock;
	char path[128];

	assert_int_equal(list_files(b, &asker, "names"), -ENOENT);
	for (size_t i = 0; i < ODD_NAMES; i++) {
		snprintf(path, sizeof(path), "names//%s", odd_names[i]);
		assert_int_equal(make(a, path, odd_names[i]), 0);
	}
	for (size_t i = 0; i < ODD_NAMES; i++) {
		snprintf(path, sizeof(path), "names//%s", odd_names[i]);
		assert_int_equal(make(b, path, "again"), -EEXIST);
		expect_text(b, path, odd_names[i]);
		snprintf(path, sizeof(path), "names//%s/", odd_names[i]);
		place(a, &lock, path, (uint32_t)i);
	}
	assert_int_equal(list_files(b, &asker, "names"), 0);
	assert_int_equal(asker.names_count, ODD_NAMES);
	for (size_t i = 0; i < ODD_NAMES; i++)
		assert_true(saw(&asker, odd_names[i]));

	/* Locks on files are locks: in order. */
	place(b, &lock, "names//plain/", 1);
	assert_int_equal(lock.count, 2);

	for (size_t i = 0; i < ODD_NAMES; i++) {
		snprintf(path, sizeof(path), "names//%s", odd_names[i]);
		assert_int_equal(remove_file(b, path, 0), 0);
	}
	assert_int_equal(barrier(a), 0);
	assert_int_equal(list_files(a, &asker, "names"), 0);
	assert_int_equal(asker.names_count, 0);

	/* Above all. */
	assert_int_equal(make(a, "//top", "top"), 0);
	assert_int_equal(list_files(a, &asker, ""), 0);
	assert_true(saw(&asker, "top"));
	assert_false(saw(&asker, "top/"));
}

/* An answer, or a list, shows what the session did before, without waiting for it. */
static void test_order(void **state)
{
	struct host *a = open_host(0, server);
	struct asker made, seen, removed, gone;
	const struct store_step first = {STEP_MAKE, "order//f", "text", 0},
				last = {STEP_REMOVE, "order//f", NULL, 0};

	assert_int_equal(make(a, "order//other", ""), 0);
	send_alter(a, &made, &first, 1);
	send_read(a, &seen, "order//f", NULL);
	send_alter(a, &removed, &last, 1);
	send_read(a, &gone, "order//f", NULL);
	WAIT_FOR(made.times && seen.times && removed.times && gone.times);
	assert_int_equal(made.error, 0);
	assert_int_equal(seen.error, 0);
	assert_string_equal(seen.data, "text");
	assert_int_equal(removed.error, 0);
	assert_int_equal(gone.error, -ENOENT);
}

static void test_texts(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	static char text[20 * 1024 + 1];

	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(make(a, "texts//empty", ""), 0);
	expect_text(b, "texts//empty", "");
	assert_int_equal(make(a, "texts//long", text), 0);
	expect_text(b, "texts//long", text);
	text[100] = 'y';
	assert_int_equal(ALTER(b, {STEP_REPLACE, "texts//empty", text, 0},
			       {STEP_TAKE, "texts//long", "", 0}),
			 0);
	expect_text(a, "texts//empty", text);
	expect_text(a, "texts//long", "");
}

/* What other clients put there is there; only the end of a session tells a file. */
static void test_others(void **state)
{
	struct host *a = open_host(0, server);
	struct asker asker;
	uint64_t session;

	assert_int_equal(make(a, "others//mine", ""), 0);
	session = backend->make_file("others//theirs", false);
	assert_true(session != 0);
	assert_int_equal(make(a, "others//theirs", "a"), -EEXIST);
	assert_int_equal(check(a, "others//theirs"), -ENOENT);
	assert_int_equal(read_truth(a, &asker, "others//theirs"), 0);
	assert_true(asker.claim.session == session);
	assert_int_equal(take(a, "others//theirs", "a"), 0);
	assert_int_equal(read_truth(a, &asker, "others//theirs"), 0);
	assert_true(asker.claim.session == session_of(a));

	assert_true(backend->make_file("others//lasting", true) == 0);
	assert_int_equal(make(a, "others//lasting", "a"), -EEXIST);
	assert_int_equal(check(a, "others//lasting"), -ENOENT);
	assert_int_equal(read_truth(a, &asker, "others//lasting"), 0);
	assert_true(asker.claim.session == 0);
	assert_int_equal(list_files(a, &asker, "others"), 0);
	assert_int_equal(asker.names_count, 3);
	assert_int_equal(remove_file(a, "others//lasting", 0), 0);
	expect_none(a, "others//lasting");
}

/* The end of the session takes its files, and no others. */
static void test_session(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct asker asker;

	assert_int_equal(make(a, "session//a", "a"), 0);
	assert_int_equal(make(b, "session//b", "b"), 0);
	close_host(a);
	do
		assert_int_equal(barrier(b), 0);
	while (read_file(b, &asker, "session//a") == 0);
	assert_int_equal(asker.error, -ENOENT);
	expect_text(b, "session//b", "b");

	b->session = STORE_LOST; /* which is not told */
	b->store->ops->renew(b->store, nobody_is_told());
	WAIT_FOR(b->session == STORE_CONNECTED);
	assert_int_equal(check(b, "session//b"), -ENOENT);
	do
		assert_int_equal(barrier(b), 0);
	while (read_file(b, &asker, "session//b") == 0);
	assert_int_equal(asker.error, -ENOENT);
}

static void test_prove(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	struct call claim, proof;

	place(a, &claim, "prove/claim", 1);
	assert_int_equal(make(a, "prove//one", "1"), 0);
	assert_int_equal(make(a, "prove//two", "2"), 0);
	const struct store_proof proofs[] = {
		{"prove//one", NULL, NULL, 0},
		{"prove/claim", claim.name, NULL, 0},
		{"prove//two", NULL, NULL, 0},
	};
	assert_int_equal(prove(a, &proof, proofs, 3), 0);
	assert_int_equal(replace(b, "prove//one", "changed", 0), 0);
	assert_int_equal(prove(a, &proof, proofs, 3), 0);
	assert_int_equal(prove(b, &proof, proofs, 1), -ENOENT);
	assert_int_equal(take(b, "prove//two", "b"), 0);
	assert_int_equal(prove(a, &proof, proofs, 3), -ENOENT);
	assert_string_equal(proof.text, "prove//two");
	assert_int_equal(remove_file(b, "prove//two", STORE_ANY_VERSION), 0);
	assert_int_equal(prove(a, &proof, proofs, 3), -ENOENT);
	assert_string_equal(proof.text, "prove//two");
	assert_int_equal(prove(a, &proof, proofs, 2), 0);
}

/* Every answer proves the session, a refusal as well. */
static void test_lease(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, server);
	int64_t until_ms = now_ms() + 2 * TIMEOUT_MS;
	int renewals;

	assert_int_equal(make(b, "lease//f", "b"), 0);
	run_for(TIMEOUT_MS / 10);
	barrier(a);
	renewals = a->renewals;
	while (a->renewals < renewals + 3 && now_ms() < until_ms) {
		assert_int_equal(make(a, "lease//f", "a"), -EEXIST);
		run_for(TIMEOUT_MS / 20);
	}
	assert_true(a->renewals >= renewals + 3);
}

/* Whatever a cut connection had under way is done or not, and a look afterwards tells which. */
static void test_cut(void **state)
{
	struct host *a = open_host(0, server), *b = open_host(1, proxy.address);
	struct asker made[8], seen;
	int ambiguous = 0;
	char path[32];

	for (int round = 0; round < 25; round++) {
		WAIT_FOR(b->session == STORE_CONNECTED);
		for (int i = 0; i < 8; i++) {
			snprintf(path, sizeof(path), "cut//%d-%d", round, i);
			const struct store_step step = {STEP_TAKE, path, path, 0};
			send_alter(b, &made[i], &step, 1);
		}
		for (int turns = 0; turns < round; turns++)
			dispatch_hosts(1);
		break_links();
		WAIT_FOR(made[0].times && made[1].times && made[2].times && made[3].times &&
			 made[4].times && made[5].times && made[6].times && made[7].times);
		for (int i = 0; i < 8; i++) {
			snprintf(path, sizeof(path), "cut//%d-%d", round, i);
			assert_true(made[i].error == 0 || made[i].error == -ECONNRESET);
			ambiguous += made[i].error != 0;
			bool there = read_truth(b, &seen, path) == 0;
			assert_true(there || made[i].error != 0);
			/* The truth stays. */
			assert_int_equal(make(a, path, "a"), there ? -EEXIST : 0);
		}
	}
	printf("of 200 alterations %d were ambiguous\n", ambiguous);
	assert_true(ambiguous > 0);
	assert_int_equal(b->changes[STORE_LOST], 0);
}

/* What was asked for in a connection that is lost, and comes late, has no effect after an answer in
 * the next one. */
static void test_late(void **state)
{
	struct host *a, *b = open_host(1, server);
	struct asker made, removed, seen;
	const struct store_step make_late = {STEP_MAKE, "late//made", "late", 0},
				remove_late = {STEP_REMOVE, "late//kept", NULL, 0};
	char servers[128], text[256];

	snprintf(servers, sizeof(servers), "%s,%s", proxy.address, server);
	a = open_host(0, servers);
	a->store->ops->describe(a->store, text, sizeof(text));
	for (int attempt = 0; !strstr(strstr(text, "connected to"), proxy.address); attempt++) {
		assert_true(attempt < 20);
		a->store->ops->nudge(a->store);
		WAIT_FOR(a->session == STORE_SUSPENDED);
		WAIT_FOR(a->session == STORE_CONNECTED);
		a->store->ops->describe(a->store, text, sizeof(text));
	}
	assert_int_equal(make(a, "late//kept", "kept"), 0);
	set_link(LINK_SILENT);
	proxy.lingers = true;
	send_alter(a, &made, &make_late, 1);
	send_alter(a, &removed, &remove_late, 1);
	run_for(100);
	a->store->ops->nudge(a->store);
	WAIT_FOR(made.times && removed.times);
	assert_int_equal(made.error, -ECONNRESET);
	assert_int_equal(removed.error, -ECONNRESET);
	assert_int_equal(read_truth(a, &seen, "late//made"), -ENOENT);
	expect_text(a, "late//kept", "kept");
	set_link(LINK_PASSES);
	run_for(500);
	expect_none(b, "late//made");
	expect_text(b, "late//kept", "kept");
	assert_int_equal(a->changes[STORE_LOST], 0);
}

/* Who asks is answered also if the session, or all connection, is lost; nobody is after close(). */
static void test_loss(void **state)
{
	struct host *a = open_host(0, proxy.address);
	struct asker made, listed;
	const struct store_step step = {STEP_TAKE, "loss//f", "text", 0};

	set_link(LINK_SILENT);
	send_alter(a, &made, &step, 1);
	send_files(a, &listed, "loss");
	a->session = STORE_LOST;
	a->store->ops->renew(a->store, nobody_is_told());
	WAIT_FOR(made.times && listed.times);
	assert_int_equal(made.error, -ECONNRESET);
	assert_int_equal(listed.error, -ECONNRESET);
	assert_int_equal(barrier(a), -ECONNRESET);
	set_link(LINK_PASSES);
	WAIT_FOR(a->session == STORE_CONNECTED);
	expect_none(a, "loss//f");
	set_link(LINK_SILENT);
	send_alter(a, &made, &step, 1);
	close_host(a);
	assert_int_equal(made.times, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_make_and_remove, close_hosts),
		cmocka_unit_test_teardown(test_replace, close_hosts),
		cmocka_unit_test_teardown(test_steps, close_hosts),
		cmocka_unit_test_teardown(test_take, close_hosts),
		cmocka_unit_test_teardown(test_check, close_hosts),
		cmocka_unit_test_teardown(test_kept, close_hosts),
		cmocka_unit_test_teardown(test_watch, close_hosts),
		cmocka_unit_test_teardown(test_watch_cut, close_hosts),
		cmocka_unit_test_teardown(test_names, close_hosts),
		cmocka_unit_test_teardown(test_order, close_hosts),
		cmocka_unit_test_teardown(test_texts, close_hosts),
		cmocka_unit_test_teardown(test_others, close_hosts),
		cmocka_unit_test_teardown(test_session, close_hosts),
		cmocka_unit_test_teardown(test_prove, close_hosts),
		cmocka_unit_test_teardown(test_lease, close_hosts),
		cmocka_unit_test_teardown(test_cut, close_hosts),
		cmocka_unit_test_teardown(test_late, close_hosts),
		cmocka_unit_test_teardown(test_loss, close_hosts),
	};

	begin_tests(argc, argv, NULL);
	return end_tests(cmocka_run_group_tests_name("store_file", tests, NULL, NULL));
}
