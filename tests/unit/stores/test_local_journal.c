/* SPDX-License-Identifier: Apache-2.0
 *
 * The queues of stores/local/store.c in a journal: after whatever was done, it has what would be
 * written of them, in an order in which they can be read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kept.h"
#include "prng.h"
#include "../../told.h"
#include "stores/local/store.h"

enum { STEPS = 400, CLAIMS = 12, TEXT_BYTES = 16 };

/* The last two are of locks on lock files: claim/file_path.h. */
static const char *const paths[] = {"a", "a/b", "c", "a//x/", "//a/"};

struct claim {
	const char *path; /* NULL: there is none */
	char name[CLAIM_NAME_BYTES];
	int64_t order;
};

struct fixture {
	struct local_service *service;
	struct store *store;
	struct state_journal *journal;
	struct claim claims[CLAIMS];
	uint32_t placed; /* so far */
};

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct claim *claim = tag;

	assert_int_equal(error, 0);
	strcpy(claim->name, name);
	claim->order = order;
}

static void on_done(void *context, void *tag, int error)
{
	assert_int_equal(error, 0);
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	assert_int_equal(error, 0);
}

static const struct store_events events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_amended = on_done,
	.on_withdrawn = on_done,
	.on_proved = on_proved,
};

static void begin(struct fixture *fixture, int descriptor)
{
	fixture->service = local_service_create();
	assert_non_null(fixture->service);
	assert_int_equal(store_local_open(fixture->service, &events, fixture, &fixture->store), 0);
	assert_int_equal(state_journal_create(descriptor, 4096, 0, &fixture->journal), 0);
	fixture->store->ops->keep_claims(fixture->store, fixture->journal, STATE_PLACE_SHARD);
}

static void end(struct fixture *fixture)
{
	fixture->store->ops->close(fixture->store, nobody_is_told());
	local_service_destroy(fixture->service);
	state_journal_destroy(fixture->journal);
}

static char *known_text(const struct fixture *fixture)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	fixture->store->ops->save_claims(fixture->store, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static char *kept_text(const struct fixture *fixture)
{
	char why[256] = "";
	char *text = kept_read(state_journal_descriptor(fixture->journal), why, sizeof(why));

	assert_string_equal(why, "");
	return text;
}

static void check_kept(const struct fixture *fixture)
{
	char *kept = kept_text(fixture), *known = known_text(fixture);
	char why[1024] = "";

	if (!kept_is_same(kept, known, why, sizeof(why)))
		fail_msg("%s", why);
	free(kept);
	free(known);
}

static void commit(struct fixture *fixture)
{
	fixture->store->ops->dispatch(fixture->store);
	state_journal_commit(fixture->journal, 0, NULL, 0);
}

static void on_changed(struct store_change *change, int error)
{
}

/* Something is done with a lock file. */
static void alter_file(struct fixture *fixture, struct prng *prng)
{
	static struct store_change change = {on_changed};
	static const char *const files[] = {"a//x", "//a", "c//y/z"};
	char text[TEXT_BYTES];
	struct store_step step = {
		.kind = prng_chance(prng, 20) ? STEP_KEEP
					      : (enum store_step_kind)prng_below(prng, STEP_CHECK),
		.path = files[prng_below(prng, 3)],
		.text = text,
		.version = STORE_ANY_VERSION,
	};

	snprintf(text, sizeof(text), "text=%u", (unsigned)fixture->placed);
	assert_int_equal(fixture->store->ops->alter(fixture->store, &change, &step, 1), 0);
}

/* Something is done with one of the claims. */
static void act(struct fixture *fixture, struct prng *prng)
{
	const struct store_ops *ops = fixture->store->ops;
	struct claim *claim = &fixture->claims[prng_below(prng, CLAIMS)];
	struct claim_name name = {
		.id = {.session = claim_id_session(1), .number = ++fixture->placed},
		.mode = CLAIM_EXCLUSIVE,
		.span = CLAIM_SPAN_WHOLE,
	};
	struct store_proof proof = {claim->path, claim->name, "proved", STORE_ANY_VERSION};
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "text=%u", (unsigned)fixture->placed);
	if (prng_chance(prng, 30)) {
		alter_file(fixture, prng);
	} else if (claim->path == NULL) {
		claim->path = paths[prng_below(prng, 5)];
		ops->place(fixture->store, claim, claim->path, &name, text, false, NULL);
	} else if (prng_chance(prng, 30)) {
		ops->amend(fixture->store, claim, claim->path, claim->name, text,
			   STORE_ANY_VERSION);
	} else if (prng_chance(prng, 10)) {
		ops->prove(fixture->store, claim, &proof, 1);
	} else {
		ops->withdraw(fixture->store, nobody_is_told(), claim, claim->path, claim->name,
			      claim->order, false);
		claim->path = NULL;
	}
	commit(fixture);
}

/* Another process goes on. */
static void succeed(struct fixture *fixture)
{
	int descriptor = dup(state_journal_descriptor(fixture->journal));
	char *kept = kept_text(fixture), *known;
	FILE *file = fmemopen(kept, strlen(kept), "r");
	struct state_reader reader;

	assert_non_null(file);
	end(fixture);
	begin(fixture, descriptor);
	state_reader_init(&reader, file);
	if (fixture->store->ops->restore_claims(fixture->store, &reader) != 0)
		fail_msg("%s", reader.why);
	state_reader_finish(&reader);
	fclose(file);
	known = known_text(fixture);
	assert_string_equal(kept, known);
	free(kept);
	free(known);
	commit(fixture);
	check_kept(fixture);
}

static void run(uint64_t seed, int64_t first_order)
{
	struct fixture fixture = {0};
	struct prng prng;

	prng_seed(&prng, seed);
	begin(&fixture, memfd_create("test", MFD_CLOEXEC));
	local_service_set_first_order(fixture.service, first_order);
	for (int i = 0; i < STEPS; i++) {
		act(&fixture, &prng);
		check_kept(&fixture);
		if (prng_chance(&prng, 5)) {
			succeed(&fixture);
			local_service_set_first_order(fixture.service, first_order);
		}
	}
	end(&fixture);
}

static void test_keeps_what_is_done(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		run(seed, 0);
}

static void test_numbers_stop(void **state)
{
	run(1, INT32_MAX - 3);
	run(2, INT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps_what_is_done),
		cmocka_unit_test(test_numbers_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
