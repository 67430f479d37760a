/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks what a bad network (tests/sim/store_faulty.h) does to the attention to a queue: it is kept
 * and lost as a real client would, and never told for nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../told.h"
#include "store_faulty.h"

enum { TIMEOUT_MS = 4000 };

struct world {
	int64_t now_ms;
	struct prng prng;
	struct local_service *service;
	struct store *faulty, *other;
	int lists, error, changes, losses;
	size_t count;
};

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	struct world *world = context;

	world->losses += session == STORE_LOST;
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	struct world *world = context;

	world->lists++;
	world->error = error;
	world->count = count;
}

static void on_changed(void *context, void *tag)
{
	struct world *world = context;

	assert_int_equal(world->lists, 1);
	assert_int_equal(world->error, 0);
	world->changes++;
}

static const struct store_events events = {
	.on_session = on_session, .on_listed = on_listed, .on_changed = on_changed};

static void on_other_session(void *context, enum store_session session, int64_t timeout_ms)
{
}

static void on_other_placed(void *context, void *tag, int error, const char *name, int64_t order,
			    int64_t after, const struct store_entry *entries, size_t count)
{
	assert_int_equal(error, 0);
}

static const struct store_events other_events = {.on_session = on_other_session,
						 .on_placed = on_other_placed};

static void settle(struct world *world)
{
	while (store_faulty_step(world->faulty))
		;
}

static void place(struct world *world)
{
	struct claim_name name = {.mode = CLAIM_EXCLUSIVE, .span = CLAIM_SPAN_WHOLE};

	world->other->ops->place(world->other, NULL, "lock", &name, "", false, NULL);
	world->other->ops->dispatch(world->other);
}

static void attend(struct world *world)
{
	world->lists = world->changes = 0;
	world->faulty->ops->list(world->faulty, NULL, "lock", false, true);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct faulty_settings settings = {.now_ms = &world->now_ms,
					   .prng = &world->prng,
					   .delay_ms = 0,
					   .timeout_ms = TIMEOUT_MS,
					   .stale_percent = 100};

	prng_seed(&world->prng, 1);
	world->service = local_service_create();
	store_local_open(world->service, &other_events, world, &world->other);
	store_faulty_open(world->service, &settings, &events, world, &world->faulty);
	place(world);
	settle(world);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	world->faulty->ops->close(world->faulty, nobody_is_told());
	world->other->ops->close(world->other, nobody_is_told());
	local_service_destroy(world->service);
	free(world);
	return 0;
}

static void test_tells_once(void **state)
{
	struct world *world = *state;

	attend(world);
	settle(world);
	assert_int_equal(world->count, 1);
	assert_int_equal(world->changes, 0);
	place(world);
	place(world);
	settle(world);
	assert_int_equal(world->changes, 1);
}

/* The list takes place, but its answer never comes: neither does anything else. */
static void test_is_lost_with_its_list(void **state)
{
	struct world *world = *state;

	for (int fired = 0; fired < 2; fired++) {
		attend(world);
		assert_true(store_faulty_step(world->faulty)); /* it arrives */
		if (fired) {
			place(world);
			assert_int_equal(store_faulty_due(world->faulty), world->now_ms);
		}
		store_faulty_break(world->faulty, 0, 0, 0);
		settle(world);
		assert_int_equal(world->lists, 1);
		assert_int_equal(world->error, -ECONNRESET);
		store_faulty_reconnect(world->faulty);
		store_faulty_heal(world->faulty);
		settle(world);
		place(world);
		settle(world);
		assert_int_equal(world->changes, 0);
	}
}

static void test_survives_a_break(void **state)
{
	struct world *world = *state;

	/* It has told, but that did not come, or has not. */
	for (int fired = 0; fired < 2; fired++) {
		attend(world);
		settle(world);
		if (fired) {
			place(world);
			assert_int_equal(store_faulty_due(world->faulty), world->now_ms);
		}
		store_faulty_break(world->faulty, 0, 0, 0);
		settle(world);
		place(world);
		settle(world);
		assert_int_equal(world->changes, 0);
		store_faulty_reconnect(world->faulty);
		store_faulty_heal(world->faulty);
		settle(world);
		assert_int_equal(world->changes, 1);
		assert_int_equal(world->losses, 0);
	}

	attend(world);
	settle(world);
	store_faulty_break(world->faulty, 0, 0, 0);
	store_faulty_reconnect(world->faulty);
	store_faulty_heal(world->faulty);
	settle(world);
	assert_int_equal(world->changes, 0);
	place(world);
	settle(world);
	assert_int_equal(world->changes, 1);
}

static void test_ends_with_the_session(void **state)
{
	struct world *world = *state;

	attend(world);
	settle(world);
	store_faulty_expire(world->faulty);
	place(world);
	store_faulty_reconnect(world->faulty);
	settle(world);
	assert_int_equal(world->losses, 1);
	place(world);
	settle(world);
	assert_int_equal(world->changes, 0);

	attend(world);
	settle(world);
	world->faulty->ops->renew(world->faulty, nobody_is_told());
	place(world);
	settle(world);
	assert_int_equal(world->changes, 0);
}

/* A server that is cut off tells when it hears of the others again, if there is anything to tell.
 */
static void test_stale_server_catches_up(void **state)
{
	struct world *world = *state;

	/* Attended to before, or while it is cut off; before or after the change; or there is none.
	 */
	for (int order = 0; order < 4; order++) {
		if (order == 0) {
			attend(world);
			settle(world);
		}
		store_faulty_cut_off(world->faulty);
		if (order == 1)
			place(world);
		if (order > 0) {
			attend(world);
			settle(world);
		}
		if (order == 0 || order == 2)
			place(world);
		settle(world);
		assert_int_equal(world->lists, 1);
		assert_int_equal(world->changes, 0);
		store_faulty_heal(world->faulty);
		settle(world);
		assert_int_equal(world->changes, order < 3);
		place(world);
		settle(world);
		assert_int_equal(world->changes, 1);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tells_once),
		TEST(is_lost_with_its_list),
		TEST(survives_a_break),
		TEST(ends_with_the_session),
		TEST(stale_server_catches_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
