/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores that end with the process are closed on the loop's thread, to which the journal belongs.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "files/shard.h"
#include "ops/serving.h"

static int threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *argument), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *argument), void *argument);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *argument), void *argument)
{
	threads++;
	return __real_pthread_create(thread, attributes, run, argument);
}

static void close_nothing(struct store *store)
{
	(void)store;
}

static void test_close(void **state)
{
	static const struct store_ops ops = {.close = close_nothing};
	static struct store remote = {&ops};
	struct config_store stores[3] = {
		{.prefix = (char *)"", .url = {.scheme = STORE_SCHEME_LOCAL}},
		{.prefix = (char *)"a", .url = {.scheme = STORE_SCHEME_LOCAL}},
		{.prefix = (char *)"b", .url = {.scheme = STORE_SCHEME_LOCAL}},
	};
	struct config config;
	struct shards shards;

	assert_int_equal(config_init(&config), 0);
	struct config_store *own = config.stores;
	config.stores = stores;
	config.store_count = 3;
	assert_int_equal(shards_open(&config, &serving_engine_events, NULL, &shards), 0);
	struct store *local = shards.list[1].store;
	shards.list[1].store = &remote;
	shards_close(&shards);
	assert_int_equal(threads, 1);
	local->ops->close(local);
	config.stores = own;
	config.store_count = 1;
	config_finish(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_close)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
