/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that wait, passed on to the next process and from there on: nothing of them is lost, and a
 * request that cannot be that of the call is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/fuse.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "handles/parked.h"
#include "ops/serving.h"
#include "restart/takeover.h"

enum { PROCESS = 900000, PID = 4711 };

static const struct fuse_in_header init;
static const struct takeover_process process = {
	.folder = "/",
	.mountpoint = "/test",
	.fuse = 3,
	.init = &init,
	.init_bytes = sizeof(init),
};

struct heir {
	struct config config;
	struct takeover takeover;
	struct shards shards;
	struct serving serving;
	char why[512];
};

static int begin(void **state)
{
	log_set_level(LOG_LEVEL_ERROR);
	*state = calloc(1, sizeof(struct heir));
	struct heir *heir = *state;
	assert_non_null(heir);
	assert_int_equal(config_init(&heir->config), 0);
	assert_int_equal(shards_open(&heir->config, &serving_events, NULL, &heir->shards), 0);
	return serving_init(&heir->serving, &heir->config, &heir->shards);
}

static int end(void **state)
{
	struct heir *heir = *state;
	serving_finish(&heir->serving.filesystem);
	shards_close(&heir->shards);
	takeover_finish(&heir->takeover);
	config_finish(&heir->config);
	free(heir);
	return 0;
}

/* A line about a call that waits: such a request, of which there are so many bytes. */
static char *make_line(const char *kind, size_t bytes)
{
	struct {
		struct fuse_in_header header;
		struct fuse_lk_in lock;
	} request = {
		.header = {.len = sizeof(request), .opcode = FUSE_SETLKW, .unique = 5, .pid = 1},
		.lock = {.owner = PROCESS, .lk = {.end = 9, .type = 1, .pid = PID}},
	};
	char *line = NULL;
	size_t line_bytes;
	FILE *out = open_memstream(&line, &line_bytes);

	assert_non_null(out);
	assert_true(bytes <= sizeof(request));
	state_begin(out, "parked");
	state_text(out, "kind", kind);
	state_unsigned(out, "handle", 1);
	state_unsigned(out, "number", 3);
	state_number(out, "since_us", 6);
	state_unsigned(out, "user", 8);
	state_bytes(out, "bytes", &request, bytes);
	if (strcmp(kind, "open") == 0) {
		state_number(out, "thread", 7);
		state_unsigned(out, "uid", 8);
		state_unsigned(out, "gid", 9);
		state_unsigned(out, "mode", 0600);
	}
	state_end(out);
	assert_int_equal(fclose(out), 0);
	return line;
}

static int restore(struct heir *heir, const char *line)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "dlockfs format=%d reader=%d folder=/ mountpoint=/m max_write=0 "
		 "init=iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii\nstore prefix=\n"
		 "inode node=1 path= mode=16895 uid=0 gid=0 maker=0 atime=1 mtime=2 ctime=3\n"
		 "inode node=2 parent=1 path=a mode=33188 lookups=1 uid=0 gid=0 maker=0 atime=1 "
		 "mtime=2 "
		 "ctime=3\n"
		 "handle number=1 node=2 owner=1\n%s"
		 "numbers last_node=2 last_status=4611686018427387904 last_number=3\nend\n",
		 TAKEOVER_OLDEST, TAKEOVER_OLDEST, line);
	FILE *file = fmemopen(text, strlen(text), "r");
	assert_non_null(file);
	assert_int_equal(takeover_read_kept(&heir->takeover, file, 3, heir->why, sizeof(heir->why)),
			 0);
	return takeover_restore(&heir->takeover, &heir->serving.filesystem, heir->why,
				sizeof(heir->why));
}

static void expect_passed_on(struct heir *heir, char *line)
{
	char *text = NULL;
	size_t bytes;

	if (restore(heir, line) != 0)
		fail_msg("%s", heir->why);
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	takeover_save(&heir->serving.filesystem, &process, out);
	assert_int_equal(fclose(out), 0);
	if (strstr(text, line) == NULL)
		fail_msg("%s is not in\n%s", line, text);
	free(text);
	free(line);
}

static void expect_refused(struct heir *heir, char *line)
{
	assert_int_equal(restore(heir, line), -EINVAL);
	assert_non_null(strstr(heir->why, "line 6: parked: bytes: expected a request"));
	free(line);
}

static void test_record(void **state)
{
	expect_passed_on(*state, make_line("record", PARKED_REQUEST_BYTES));
}

/* Only a record lock has an owner and a pid. */
static void test_flock(void **state)
{
	expect_passed_on(*state, make_line("flock", PARKED_REQUEST_BYTES));
}

static void test_open(void **state)
{
	expect_passed_on(*state, make_line("open", 0));
}

static void test_record_without_lock(void **state)
{
	expect_refused(*state, make_line("record", PARKED_REQUEST_BYTES - 1));
}

static void test_flock_without_request(void **state)
{
	expect_refused(*state, make_line("flock", 0));
}

/* malloc(3) then takes 176 and 112 bytes: each waiter has one of both. */
static void test_size(void **state)
{
	assert_true(sizeof(struct parked) <= 168);
	assert_true(sizeof(struct handle) <= 104);
}

#define PARKED_TEST_CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PARKED_TEST_CASE(test_record),
		PARKED_TEST_CASE(test_flock),
		PARKED_TEST_CASE(test_open),
		PARKED_TEST_CASE(test_record_without_lock),
		PARKED_TEST_CASE(test_flock_without_request),
		cmocka_unit_test(test_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
