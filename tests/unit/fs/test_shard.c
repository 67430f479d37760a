/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores that end with the process are closed on the loop's thread, to which the journal belongs.
 * Its deadline is that of the process before, until what that held is restored.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/shard.h"
#include "../../told.h"
#include "files/filesystem.h"
#include "journal/deadline.h"
#include "kernel/lease_board.h"
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

static const struct store_told *told_at_close;

static void note_close(struct store *store, const struct store_told *told)
{
	(void)store;
	told_at_close = told;
}

/* Closes a shard of one store, which other hosts can see, of a file system. */
static void close_one(bool ends, struct filesystem *filesystem)
{
	static const struct store_ops ops = {.close = note_close};
	static struct store remote = {&ops};
	struct config config;
	struct shards shards;

	assert_int_equal(config_init(&config), 0);
	config.stores[0].url.scheme = STORE_SCHEME_LOCAL;
	assert_int_equal(shards_open(&config, &serving_events, NULL, &shards), 0);
	shards.list[0].store->ops->close(shards.list[0].store, nobody_is_told());
	shards.list[0].store = &remote;
	shards.list[0].filesystem = filesystem;
	if (ends)
		shards_end(&shards);
	shards_close(&shards);
	config_finish(&config);
}

/* The service is told that a session is over once everybody who may hold by it was told. */
static void test_close_needs_proof(void **state)
{
	struct filesystem filesystem = {0};

	told_at_close = NULL;
	close_one(true, NULL);
	assert_non_null(told_at_close);
	close_one(true, &filesystem);
	assert_non_null(told_at_close);
	close_one(false, &filesystem);
	assert_null(told_at_close);
	filesystem.session = (struct fuse_session *)&filesystem;
	close_one(true, &filesystem);
	assert_null(told_at_close);
}

static void test_close(void **state)
{
	static const struct store_ops ops = {.close = note_close};
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
	assert_int_equal(shards_open(&config, &serving_events, NULL, &shards), 0);
	struct store *local = shards.list[1].store;
	shards.list[1].store = &remote;
	shards_close(&shards);
	assert_int_equal(threads, 1);
	local->ops->close(local, nobody_is_told());
	config.stores = own;
	config.store_count = 1;
	config_finish(&config);
}

/* What the former process held stays held by the journal's deadline until all of it is restored. */
static void test_deadline_of_former(void **state)
{
	int descriptor = memfd_create("journal", MFD_CLOEXEC);
	struct filesystem filesystem = {0};
	struct takeover *takeover = (struct takeover *)&filesystem;
	struct config config;
	struct shards shards;

	(void)state;
	assert_int_equal(config_init(&config), 0);
	config.stores[0].url.scheme = STORE_SCHEME_LOCAL;
	assert_int_equal(shards_open(&config, &serving_events, NULL, &shards), 0);
	assert_int_equal(lease_board_create(1, &filesystem.board), 0);
	assert_int_equal(state_journal_create(dup(descriptor), 4096, 0, &filesystem.journal), 0);
	filesystem.shards = &shards;
	shards.list[0].filesystem = &filesystem;
	state_journal_set_deadline(filesystem.journal, 1234);
	filesystem.takeover = takeover;
	shard_tell_guard(&shards.list[0]);
	assert_int_equal(deadline_read(descriptor), 1234);
	filesystem.takeover = NULL;
	shard_tell_guard(&shards.list[0]);
	assert_int_equal(deadline_read(descriptor), 0);
	shards.list[0].filesystem = NULL;
	state_journal_destroy(filesystem.journal);
	lease_board_destroy(filesystem.board);
	shards_close(&shards);
	config_finish(&config);
	close(descriptor);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_deadline_of_former),
		cmocka_unit_test(test_close_needs_proof),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
