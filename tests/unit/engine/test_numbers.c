/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine promises about a lock whose numbers run out: new claims are held back until its
 * queue is empty and they start anew, nobody loses anything by that, and nothing is granted by the
 * last number, that several claims may have.
 */
#include "fixture.h"

enum { LOOK_MS = 50, HOLD_BACK_MS = 20000, KEEP_MS = 300, DELAY_MS = 3000 };

/* The next time that the queue begins, it does so as everybody knows it. */
static void close_and_settle(struct file *file)
{
	local_service_set_first_order(file->host->world->service, 0);
	file_close(file);
	settle(file->host->world);
}

static void test_new_claims_are_held_back(void **state)
{
	struct world *world = *state;
	struct file first, second, third, other;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE - 1);
	file_open_and_lock(&first, &world->one, EX);
	file_open_and_lock(&second, &world->one, EX); /* has a late number, and its turn */
	file_open_and_lock(&third, &world->one, EX);
	file_open_and_lock(&other, &world->two, EX); /* of a host that has not seen one yet */
	assert_int_equal(queue_length(world, "a"), 3);
	close_and_settle(&first);
	assert_holds(&second);
	close_and_settle(&second);
	assert_holds(&other);
	assert_waits(&third);
	close_and_settle(&other);
	pass(world, LOOK_MS);
	assert_holds(&third);
	assert_int_equal(queue_length(world, "a"), 1);
	assert_int_equal(world->claims[0].order, 0);
	close_and_settle(&third);
}

/* Those of one host go on in the order of their asking, and others of another host too. */
static void test_order_is_kept(void **state)
{
	struct world *world = *state;
	struct file holder, files[4];

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open_and_lock(&holder, &world->one, EX);
	for (int i = 0; i < 4; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	assert_int_equal(queue_length(world, "a"), 1);
	close_and_settle(&holder);
	for (int i = 0; i < 4; i++) {
		assert_holds(&files[i]);
		file_close(&files[i]);
		settle(world);
	}
}

static void test_who_holds_goes_on(void **state)
{
	struct world *world = *state;
	struct file holder, waiter, other;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open(&holder, &world->one, "a");
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	file_open(&waiter, &world->two, "a");
	record_lock(&waiter, EX, 0, 9, WAIT);
	settle(world);
	file_open(&other, &world->one, "a");
	record_lock(&other, EX, 40, 49, WAIT);
	settle(world);
	assert_waits(&other);
	record_lock(&holder, EX, 20, 29, WAIT);
	settle(world);
	assert_string_equal(record_ranges(&holder), "w0-9,w20-29");
	close_and_settle(&holder);
	close_and_settle(&waiter);
	pass(world, LOOK_MS);
	assert_string_equal(record_ranges(&other), "w40-49");
	close_and_settle(&other);
}

/* What is named like a claim, with the last number of all or an earlier one, and is none: it holds
 * nothing back, and nobody is refused because of it. */
static void test_names_are_no_claims(void **state)
{
	struct world *world = *state;
	struct file first, second, third;

	unclaimed_make(&world->unclaimed.nodes[0], "a", "job-2147483647");
	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open_and_lock(&first, &world->one, SH);
	assert_holds(&first);
	unclaimed_make(&world->unclaimed.nodes[1], "a", "x-__WRIT__0000000003");
	file_open(&third, &world->one, "a");
	file_lock(&third, SH,
		  TRY); /* is held back for longer than it may wait, but in nobody's way */
	pass(world, TRY_LIMIT_MS);
	assert_denied(&third, -ENOLCK);
	file_open_and_lock(&second, &world->one, EX);
	assert_waits(&second);
	close_and_settle(&first);
	pass(world, 2 * LOOK_MS);
	assert_holds(&second);
	file_close(&third);
	close_and_settle(&second);
}

/* Else two that are in nobody's way could wait for each other. */
static void test_not_for_ever(void **state)
{
	struct world *world = *state;
	struct file reader, other;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open_and_lock(&reader, &world->one, SH);
	file_open_and_lock(&other, &world->one, SH);
	pass(world, HOLD_BACK_MS - 1000);
	assert_waits(&other);
	pass(world, 1000 + LOOK_MS);
	assert_holds(&other);
	close_and_settle(&other);
	close_and_settle(&reader);
}

static void test_calls_that_do_not_wait(void **state)
{
	struct world *world = *state;
	struct file holder, reader, file;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open(&file, &world->two, "a");
	file_open_and_lock(&reader, &world->two, SH);
	file_open_and_lock(&holder, &world->one, SH);
	close_and_settle(&reader); /* whose host has seen a late number */
	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);

	file_lock(&file, EX, TRY);
	pass(world, 3 * LOOK_MS);
	assert_refused(&file, -EWOULDBLOCK);
	file_lock(&file, SH, TRY); /* nobody who has it is in its way */
	pass(world, 3 * LOOK_MS);
	assert_waits(&file);
	pass(world, TRY_LIMIT_MS);
	assert_refused(&file, -ENOLCK);
	file_lock(&file, SH, TRY);
	settle(world);
	close_and_settle(&holder);
	pass(world, LOOK_MS);
	assert_holds(&file);
	close_and_settle(&file);
}

/* Several claims may have it. Not even the first of them holds. */
static void test_last_number(void **state)
{
	struct world *world = *state;
	struct file holder, files[6];

	local_service_set_first_order(world->service, INT32_MAX - 1);
	file_open_and_lock(&holder, &world->one, EX);
	for (int i = 0; i < 6; i++) {
		file_open(&files[i], world->hosts[i % 3], "a");
		file_lock(&files[i], EX, WAIT); /* all at once */
	}
	settle(world);
	pass(world, HOLD_BACK_MS + LOOK_MS);
	assert_int_equal(queue_length(world, "a"), 1);
	for (int i = 0; i < 6; i++)
		assert_waits(&files[i]);
	close_and_settle(&holder);
	for (int round = 0; round < 6; round++) {
		int held = -1;

		pass(world, LOOK_MS);
		for (int i = 0; i < 6; i++) {
			if (files[i].owner == NULL || !file_holds(&files[i]))
				continue;
			assert_int_equal(held, -1);
			held = i;
		}
		assert_int_not_equal(held, -1);
		file_close(&files[held]);
		files[held].owner = NULL;
		settle(world);
	}
}

/* Who holds and is given the last number would wait for who waits for it. */
static void test_last_number_of_a_holder(void **state)
{
	struct world *world = *state;
	struct file holder;

	local_service_set_first_order(world->service, INT32_MAX - 1);
	file_open(&holder, &world->one, "a");
	record_lock(&holder, EX, 0, 9, WAIT);
	settle(world);
	record_lock(&holder, EX, 20, 29, WAIT);
	settle(world);
	assert_refused(&holder, -ENOLCK);
	assert_string_equal(record_ranges(&holder), "w0-9");
	close_and_settle(&holder);
}

/* What is handed on, or kept, would keep the queue from becoming empty. */
static void test_leads_end(void **state)
{
	struct world *world = *state;
	struct file files[4], other;

	world->policy.handoff = 1;
	world->policy.keep_ms = KEEP_MS;
	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	for (int i = 0; i < 4; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	file_open_and_lock(&other, &world->two, EX);
	local_service_set_first_order(world->service, 0);
	file_unlock(&files[0]);
	settle(world);
	assert_holds(&files[1]);
	file_unlock(&files[1]);
	settle(world);
	assert_holds(&other);
	for (int i = 2; i < 4; i++)
		assert_waits(&files[i]);
	close_and_settle(&other);
	pass(world, LOOK_MS);
	assert_holds(&files[2]);
	for (int i = 0; i < 4; i++)
		close_and_settle(&files[i]);
	pass(world, KEEP_MS);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* The session ends while claims are held back. */
static void test_session_ends(void **state)
{
	struct world *world = *state;
	struct file holder, waiter;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	file_open_and_lock(&holder, &world->one, EX);
	file_open_and_lock(&waiter, &world->one, EX);
	assert_waits(&waiter);
	local_service_set_first_order(world->service, 0);
	store_faulty_expire(world->one.store);
	store_faulty_reconnect(world->one.store);
	pass(world, LOOK_MS);
	assert_int_equal(holder.lost, 1);
	assert_holds(&waiter);
	close_and_settle(&waiter);
	close_and_settle(&holder);
}

struct shown {
	size_t count;
	struct engine_worn worn;
};

static void show(void *context, const struct engine_worn *worn)
{
	struct shown *shown = context;

	shown->count++;
	shown->worn = *worn;
}

static struct shown shown_on(const struct host *host)
{
	struct shown shown = {0};

	engine_each_worn(host->engine, show, &shown);
	return shown;
}

static void test_shown(void **state)
{
	struct world *world = *state;
	struct file files[4];
	struct shown shown;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE - 1);
	file_open_and_lock(&files[0], &world->one, EX);
	assert_int_equal(shown_on(&world->one).count, 0);
	for (int i = 1; i < 4; i++)
		file_open_and_lock(&files[i], &world->one, EX);
	pass(world, 100);
	shown = shown_on(&world->one);
	assert_int_equal(shown.count, 1);
	assert_string_equal(shown.worn.path, "a");
	assert_int_equal(shown.worn.number, STORE_LOCAL_ORDER_LATE);
	assert_int_equal(shown.worn.known_ms, 100);
	assert_int_equal(shown.worn.held_back, 2);
	assert_int_equal(shown.worn.awaits, ENGINE_AWAITS_CLAIMS);
	assert_int_equal(shown_on(&world->two).count, 0);
	local_service_set_first_order(world->service, 0);
	for (int i = 0; i < 2; i++) {
		file_close(&files[i]);
		settle(world);
	}
	pass(world, LOOK_MS);
	assert_holds(&files[2]);
	assert_int_equal(shown_on(&world->one).count, 0);
	file_close(&files[2]);
	settle(world);
	assert_holds(&files[3]);
	file_close(&files[3]);
}

static void lose_holder(struct world *world, struct file *file)
{
	world->policy.lock_delay_ms = DELAY_MS;
	file_take(file, &world->one);
	store_faulty_expire(world->one.store);
	settle(world);
}

static void end_lost_holder(struct world *world, struct file *file)
{
	reconnect(&world->one);
	settle(world);
	assert_int_equal(file->lost, 1);
	file_close(file);
	settle(world);
	pass(world, 1000 + LOOK_MS);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* A lost holder's claim is in the queue until its delay is over: that becomes no shorter, and the
 * numbers start anew after it. */
static void test_lost_holder(void **state)
{
	struct world *world = *state;
	struct file holder, next, last;

	local_service_set_first_order(world->service, STORE_LOCAL_ORDER_LATE);
	lose_holder(world, &holder);
	file_open_and_lock(&next, &world->two, EX);
	file_open_and_lock(&last, &world->two, EX);
	assert_int_equal(queue_length(world, "a"), 2); /* the orphan, and the next one */
	local_service_set_first_order(world->service, 0);
	pass(world, DELAY_MS - 1);
	assert_waits(&next);
	pass(world, 1);
	assert_holds(&next);
	assert_waits(&last);
	file_close(&next);
	settle(world);
	pass(world, LOOK_MS);
	assert_holds(&last);
	queue_length(world, "a");
	assert_int_equal(world->claims[0].order, 0);
	file_close(&last);
	settle(world);
	end_lost_holder(world, &holder);
}

/* The same where there are no more numbers. */
static void test_lost_holder_with_last_numbers(void **state)
{
	struct world *world = *state;
	struct file holder, next;

	local_service_set_first_order(world->service, INT32_MAX - 1);
	lose_holder(world, &holder);
	file_open_and_lock(&next, &world->two, EX);
	local_service_set_first_order(world->service, 0);
	for (int ms = 0; ms < DELAY_MS - LOOK_MS; ms += LOOK_MS) {
		pass(world, LOOK_MS);
		assert_waits(&next);
		assert_int_equal(queue_length(world, "a"), 1);
	}
	assert_int_equal(shown_on(&world->two).worn.awaits, ENGINE_AWAITS_DELAY);
	assert_int_equal(shown_on(&world->two).worn.held_back, 1);
	pass(world, 3 * LOOK_MS);
	assert_holds(&next);
	queue_length(world, "a");
	assert_int_equal(world->claims[0].order, 0);
	file_close(&next);
	settle(world);
	assert_int_equal(shown_on(&world->two).count, 0);
	end_lost_holder(world, &holder);
}

#define TEST(noun) cmocka_unit_test_setup_teardown(test_##noun, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new_claims_are_held_back),
		TEST(order_is_kept),
		TEST(who_holds_goes_on),
		TEST(names_are_no_claims),
		TEST(not_for_ever),
		TEST(calls_that_do_not_wait),
		TEST(last_number),
		TEST(last_number_of_a_holder),
		TEST(leads_end),
		TEST(session_ends),
		TEST(shown),
		TEST(lost_holder),
		TEST(lost_holder_with_last_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
