/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of handles against an array in which everything is looked for one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../failing_memory.h"
#include "handles/handle_table.h"

enum { STEPS = 20000 };
#define NUMBERS 3000u

struct handle {
	uint64_t number;
	bool open;
};

static struct handle handles[NUMBERS]; /* by number */
static uint64_t random_state;

/* xorshift64 (Marsaglia). From 0 to below - 1. */
static uint32_t draw(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

static struct handle *model_next(uint64_t number)
{
	for (uint64_t i = number + 1; i < NUMBERS; i++) {
		if (handles[i].open)
			return &handles[i];
	}
	return NULL;
}

static void check(const struct handle_table *table, uint64_t number)
{
	assert_ptr_equal(handle_table_find(table, number),
			 handles[number].open ? &handles[number] : NULL);
	assert_ptr_equal(handle_table_next(table, number), model_next(number));
	assert_true(table->empty <= table->used);
}

static void add(struct handle_table *table, uint64_t number)
{
	handles[number] = (struct handle){number, true};
	assert_int_equal(handle_table_add(table, number, &handles[number]), 0);
}

static void begin(struct handle_table *table)
{
	*table = (struct handle_table){0};
	allocations_to_failure = 0;
	for (uint32_t i = 0; i < NUMBERS; i++)
		handles[i] = (struct handle){0};
}

/* Files are opened and closed, few or many at a time; nearly all numbers grow. */
static void test_opens_and_closes(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct handle_table table;
		uint64_t last = 0;

		begin(&table);
		random_state = seed;
		for (int step = 0; step < STEPS; step++) {
			uint64_t number = 1 + draw(NUMBERS - 1);
			bool opens = draw(1000) < (step / 2000 % 2 == 0 ? 400u : 700u);
			if (opens && draw(50) > 0 && last < NUMBERS - 1) {
				add(&table, ++last);
			} else if (opens && !handles[number].open) {
				add(&table, number);
				last = number > last ? number : last;
			} else if (!opens && handles[number].open) {
				handles[number].open = false;
				handle_table_remove(&table, number);
			}
			check(&table, number);
			check(&table, draw(NUMBERS));
		}
		handle_table_finish(&table);
	}
}

/* Whoever visits all may close the one that is visited. */
static void test_visit_and_close(void **state)
{
	struct handle_table table;
	const struct handle *handle;
	uint64_t number = 0, visited = 0;

	begin(&table);
	for (uint64_t i = 1; i < NUMBERS; i++)
		add(&table, i);
	while ((handle = handle_table_next(&table, number)) != NULL) {
		number = handle->number;
		assert_int_equal(number, ++visited);
		handle_table_remove(&table, number);
	}
	assert_int_equal(visited, NUMBERS - 1);
	assert_int_equal(table.used, 0);
	handle_table_finish(&table);
}

/* Most of what is open is closed, the oldest first: the memory is used again. */
static void test_empty_entries_are_few(void **state)
{
	struct handle_table table;

	begin(&table);
	for (uint64_t i = 1; i < NUMBERS; i++) {
		add(&table, i);
		if (i > 10)
			handle_table_remove(&table, i - 10);
	}
	assert_true(table.capacity < 300);
	handle_table_finish(&table);
}

static void test_without_memory(void **state)
{
	struct handle_table table;

	begin(&table);
	allocations_to_failure = 1;
	assert_int_equal(handle_table_add(&table, 1, &handles[1]), -ENOMEM);
	assert_null(handle_table_find(&table, 1));
	add(&table, 1);
	check(&table, 1);
	handle_table_finish(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens_and_closes),
		cmocka_unit_test(test_visit_and_close),
		cmocka_unit_test(test_empty_entries_are_few),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
