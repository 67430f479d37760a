/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files, in stores/local/files.c: alterations of all or nothing, who sees what,
 * and that a session takes its files with it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../told.h"
#include "stores/local/store.h"

struct listener {
	struct store *store;
	int64_t stamp;
	char heard[1024];
};

struct fixture {
	struct local_service *service;
	struct listener one, two;
};

/* Who asked; its answer is one line. */
static struct listener *asking;

__attribute__((format(printf, 1, 2))) static void hear(const char *format, ...)
{
	size_t length = strlen(asking->heard);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(asking->heard + length, sizeof(asking->heard) - length, format, arguments);
	va_end(arguments);
}

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static char placed[CLAIM_NAME_BYTES]; /* the latest claim */

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	assert_int_equal(error, 0);
	strcpy(placed, name);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	hear("proved %d%s%s", error, missing != NULL ? " " : "", missing != NULL ? missing : "");
	asking->stamp = stamp;
}

static void on_watch_read(void *context, void *tag, const char *text, uint32_t version)
{
	hear("%s read %s %u, ", (const char *)tag, text, (unsigned)version);
}

static void on_watched(void *context, void *tag, int error)
{
	hear("%s over %d, ", (const char *)tag, error);
}

static const struct store_events events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_proved = on_proved,
	.on_read = on_watch_read,
	.on_watched = on_watched,
};

static void on_changed(struct store_change *change, int error)
{
	hear("%d", error);
}

static void on_read(struct store_read *read, int error, const struct store_claim *claim)
{
	if (error != 0) {
		hear("%d", error);
		return;
	}
	assert_true(claim->since_ms > 0 && claim->changed_ms >= claim->since_ms);
	assert_int_equal(claim->data_bytes, strlen(claim->data));
	hear("%s %u", (const char *)claim->data, (unsigned)claim->version);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_files(struct store_files *files, int error, const char *const *names, size_t count)
{
	const char *sorted[16];

	hear("%d", error);
	memcpy(sorted, names, count * sizeof(*names));
	qsort(sorted, count, sizeof(*sorted), compare);
	for (size_t i = 0; i < count; i++)
		hear(" %s", sorted[i]);
}

/* What has come of it is in `heard`, from dispatch() only. */
static const char *answer(struct listener *listener)
{
	assert_string_equal(listener->heard, "");
	listener->store->ops->dispatch(listener->store);
	return listener->heard;
}

static void begin(struct listener *listener)
{
	asking = listener;
	listener->heard[0] = '\0';
}

static const char *alter(struct listener *listener, const struct store_step *steps, size_t count)
{
	struct store_change change = {on_changed};

	begin(listener);
	assert_int_equal(listener->store->ops->alter(listener->store, &change, steps, count), 0);
	return answer(listener);
}

static const char *step(struct listener *listener, enum store_step_kind kind, const char *path,
			const char *text, uint32_t version)
{
	struct store_step step = {kind, path, text, version};

	return alter(listener, &step, 1);
}

static const char *make(struct listener *listener, const char *path, const char *text)
{
	return step(listener, STEP_MAKE, path, text, 0);
}

static const char *read_file(struct listener *listener, const char *path)
{
	struct store_read read = {on_read};

	begin(listener);
	assert_int_equal(listener->store->ops->read(listener->store, &read, path, NULL), 0);
	return answer(listener);
}

static const char *list(struct listener *listener, const char *directory)
{
	struct store_files files = {on_files};

	begin(listener);
	assert_int_equal(listener->store->ops->files(listener->store, &files, directory), 0);
	return answer(listener);
}

static const char *prove(struct listener *listener, const char *path, const char *text,
			 uint32_t version)
{
	struct store_proof proof = {path, NULL, text, version};

	begin(listener);
	listener->store->ops->prove(listener->store, NULL, &proof, 1);
	return answer(listener);
}

static void open_one(struct fixture *fixture, struct listener *listener)
{
	assert_int_equal(store_local_open(fixture->service, &events, listener, &listener->store),
			 0);
	listener->store->ops->dispatch(listener->store);
}

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->service = local_service_create();
	assert_non_null(fixture->service);
	open_one(fixture, &fixture->one);
	open_one(fixture, &fixture->two);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	fixture->one.store->ops->close(fixture->one.store, nobody_is_told());
	fixture->two.store->ops->close(fixture->two.store, nobody_is_told());
	local_service_destroy(fixture->service);
	free(fixture);
	return 0;
}

static void test_exists_for_all(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(read_file(&f->one, "d//a"), "-2");
	assert_string_equal(make(&f->one, "d//a", "first"), "0");
	assert_string_equal(make(&f->two, "d//a", "second"), "-17");
	assert_string_equal(make(&f->one, "d/a", "third"), "-17");
	assert_string_equal(read_file(&f->two, "d//a"), "first 0");
	assert_string_equal(step(&f->two, STEP_REPLACE, "d//a", "more", 0), "0");
	assert_string_equal(step(&f->two, STEP_REPLACE, "d//a", "again", 0), "-116");
	assert_string_equal(step(&f->two, STEP_REPLACE, "d//a", "no", STORE_ANY_VERSION), "-2");
	assert_string_equal(step(&f->two, STEP_REMOVE, "d//a", NULL, STORE_ANY_VERSION), "-2");
	assert_string_equal(step(&f->one, STEP_REPLACE, "d//a", "again", STORE_ANY_VERSION), "0");
	assert_string_equal(read_file(&f->one, "d//a"), "again 2");
	assert_string_equal(step(&f->one, STEP_REMOVE, "d//a", NULL, 1), "-116");
	assert_string_equal(step(&f->one, STEP_REMOVE, "d//a", NULL, 2), "0");
	assert_string_equal(step(&f->one, STEP_REMOVE, "d//a", NULL, 2), "-2");
	assert_string_equal(step(&f->one, STEP_REPLACE, "d//a", "more", 2), "-2");
	assert_string_equal(make(&f->two, "d//a", "second"), "0");
}

static void test_is_of_a_session(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(make(&f->one, "d//a", "first"), "0");
	assert_string_equal(step(&f->one, STEP_CHECK, "d//a", NULL, 0), "0");
	assert_string_equal(step(&f->two, STEP_CHECK, "d//a", NULL, 0), "-2");
	assert_string_equal(step(&f->two, STEP_TAKE, "d//a", "mine", 0), "0");
	assert_string_equal(read_file(&f->one, "d//a"), "mine 0");
	assert_string_equal(step(&f->one, STEP_CHECK, "d//a", NULL, 0), "-2");
	assert_string_equal(step(&f->one, STEP_TAKE, "d//b", "first", 0), "0");
	store_local_expire(f->two.store);
	assert_string_equal(read_file(&f->one, "d//a"), "-2");
	assert_string_equal(read_file(&f->one, "d//b"), "first 0");
	f->one.store->ops->renew(f->one.store, nobody_is_told());
	assert_string_equal(read_file(&f->one, "d//b"), "-2");
}

static void test_all_or_nothing(void **state)
{
	struct fixture *f = *state;
	const struct store_step move[] = {
		{.kind = STEP_MAKE, .path = "d//c", .text = "moved"},
		{.kind = STEP_TAKE, .path = "d//b", .text = "taken"},
		{.kind = STEP_REMOVE, .path = "d//a", .version = STORE_ANY_VERSION},
	};

	assert_string_equal(alter(&f->one, move, 3), "-2");
	assert_string_equal(list(&f->one, "d"), "-2");
	assert_string_equal(make(&f->one, "d//a", "first"), "0");
	assert_string_equal(make(&f->two, "d//b", "second"), "0");
	assert_string_equal(alter(&f->one, move, 3), "0");
	assert_string_equal(list(&f->one, "d"), "0 b c");
	assert_string_equal(read_file(&f->two, "d//c"), "moved 0");
	assert_string_equal(read_file(&f->two, "d//b"), "taken 0");
	assert_string_equal(alter(&f->one, move, 3), "-17");
	assert_string_equal(alter(&f->one, NULL, 0), "0");
}

static void test_lists(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(make(&f->one, "d//a", "1"), "0");
	assert_string_equal(make(&f->one, "d//a/b", "2"), "0");
	assert_string_equal(make(&f->one, "dd//a", "3"), "0");
	assert_string_equal(make(&f->one, "//e", "4"), "0");
	assert_string_equal(list(&f->two, "d"), "0 a a/b");
	assert_string_equal(list(&f->two, "d//a"), "0 b");
	assert_string_equal(list(&f->two, ""), "0 d/a d/a/b dd/a e");
	assert_string_equal(list(&f->two, "e"), "-2");
	assert_string_equal(read_file(&f->two, "//e"), "4 0");
}

static void test_proves(void **state)
{
	struct fixture *f = *state;
	int64_t stamp;

	assert_string_equal(prove(&f->one, "d//a", NULL, 0), "proved -2 d//a");
	assert_string_equal(make(&f->one, "d//a", "first"), "0");
	assert_string_equal(prove(&f->one, "d//a", NULL, 0), "proved 0");
	assert_string_equal(prove(&f->two, "d//a", NULL, 0), "proved -2 d//a");
	assert_string_equal(prove(&f->one, "d//a", "more", 1), "proved -116");
	assert_string_equal(prove(&f->one, "d//a", "more", 0), "proved 0");
	stamp = f->one.stamp;
	assert_string_equal(prove(&f->one, "d//a", "again", STORE_ANY_VERSION), "proved 0");
	assert_true(f->one.stamp > stamp && stamp > 0);
	assert_string_equal(read_file(&f->two, "d//a"), "again 2");
}

static const char *watch(struct listener *listener, const char *tag, const char *path)
{
	begin(listener);
	listener->store->ops->watch(listener->store, (void *)tag, path, NULL);
	return answer(listener);
}

/* What the watches of the host have to tell. */
static const char *news(struct listener *listener)
{
	begin(listener);
	return answer(listener);
}

/* Each change is told, whoever makes it, up to the end. */
static void test_watches(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(watch(&f->one, "none", "d//a"), "none over 0, ");
	assert_string_equal(make(&f->one, "d//a", "first"), "0");
	assert_string_equal(watch(&f->one, "w", "d//a"), "w read first 0, ");
	assert_string_equal(watch(&f->two, "other", "d//a"), "other read first 0, ");
	assert_string_equal(step(&f->two, STEP_REPLACE, "d//a", "again", 0),
			    "0other read again 1, ");
	assert_string_equal(news(&f->one), "w read again 1, ");
	assert_string_equal(step(&f->two, STEP_TAKE, "d//a", "taken", 0), "0other read taken 0, ");
	assert_string_equal(news(&f->one), "w read taken 0, ");
	assert_string_equal(prove(&f->two, "d//a", "proved", 0), "other read proved 1, proved 0");
	assert_string_equal(news(&f->one), "w read proved 1, ");
	assert_string_equal(step(&f->one, STEP_REMOVE, "d//a", NULL, 1), "0w over 0, ");
	assert_string_equal(news(&f->two), "other over 0, ");
	assert_string_equal(make(&f->one, "d//a", "new"), "0");
	assert_string_equal(news(&f->two), "");

	/* With a session end its files, and its watches. */
	assert_string_equal(watch(&f->two, "w", "d//a"), "w read new 0, ");
	store_local_expire(f->one.store);
	assert_string_equal(news(&f->two), "w over 0, ");
	assert_string_equal(news(&f->one), "");
	assert_string_equal(make(&f->two, "d//a", "last"), "0");
	assert_string_equal(watch(&f->one, "w", "d//a"), "w read last 0, ");
	store_local_expire(f->one.store);
	assert_string_equal(step(&f->two, STEP_REMOVE, "d//a", NULL, 0), "0");
	assert_string_equal(news(&f->one), "");
}

/* A lock of a file's path is another thing. */
static void test_locks_beside(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(make(&f->one, "d//a", "first"), "0");
	assert_true(local_service_is_empty(f->service, "d/a"));
	assert_true(local_service_is_empty(f->service, "d//a/"));
}

/* A file that is kept outlives its session, and is changed while a claim stands. */
static void test_kept(void **state)
{
	struct fixture *f = *state;
	const struct claim_name name = {.id = {.session = claim_id_session(1), .number = 1},
					.mode = CLAIM_EXCLUSIVE,
					.span = CLAIM_SPAN_WHOLE};
	struct store_step steps[] = {{.kind = STEP_STAND, .path = "job", .text = placed},
				     {.kind = STEP_KEEP, .path = "top//k", .text = "first"}};

	begin(&f->one);
	f->one.store->ops->place(f->one.store, NULL, "job", &name, "", false, NULL);
	f->one.store->ops->dispatch(f->one.store);
	assert_string_equal(alter(&f->two, steps, 2), "-2");
	assert_string_equal(alter(&f->one, steps, 2), "0");
	assert_string_equal(alter(&f->one, steps, 2), "-17");
	steps[1] = (struct store_step){STEP_REPLACE, "top//k", "more", 0};
	steps[0].version = 1;
	assert_string_equal(alter(&f->one, steps, 2), "-116");
	steps[0].version = 0;
	assert_string_equal(alter(&f->one, steps, 2), "0");
	store_local_expire(f->one.store);
	f->one.store->ops->dispatch(f->one.store);
	steps[1].version = 1;
	assert_string_equal(alter(&f->one, steps, 2), "-2");
	assert_string_equal(read_file(&f->two, "top//k"), "more 1");
	assert_string_equal(step(&f->two, STEP_REPLACE, "top//k", "x", STORE_ANY_VERSION), "-2");
	assert_string_equal(list(&f->two, "top"), "0 k");
}

/* Who asks is answered whatever becomes of the session. */
static void test_expiry(void **state)
{
	struct fixture *f = *state;
	struct store_change change = {on_changed};
	const struct store_step steps[] = {{.kind = STEP_MAKE, .path = "d//a", .text = "first"}};

	begin(&f->one);
	assert_int_equal(f->one.store->ops->alter(f->one.store, &change, steps, 1), 0);
	store_local_expire(f->one.store);
	assert_int_equal(f->one.store->ops->alter(f->one.store, &change, steps, 1), 0);
	assert_string_equal(answer(&f->one), "-104-104");
	assert_string_equal(read_file(&f->two, "d//a"), "-2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(exists_for_all), TEST(is_of_a_session), TEST(all_or_nothing),
		TEST(lists),	      TEST(proves),	     TEST(watches),
		TEST(locks_beside),   TEST(expiry),	     TEST(kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
