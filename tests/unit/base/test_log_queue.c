/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that wait for a log which does not take them: nobody waits with them, what does not fit
 * in is counted, and what was taken comes, in its order.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_queue.h"

/* Fills the pipe, so that the next message stays in the queue. Returns how many bytes that takes.
 */
static size_t fill(int pipe_end)
{
	static const char filler[4096];
	size_t filled = 0;

	assert_int_equal(fcntl(pipe_end, F_SETFL, O_NONBLOCK), 0);
	while (write(pipe_end, filler, sizeof(filler)) == (ssize_t)sizeof(filler))
		filled += sizeof(filler);
	assert_int_equal(fcntl(pipe_end, F_SETFL, 0), 0);
	return filled;
}

static void test_all(void **state)
{
	static const char *const fields[] = {"FIELD=value", "OTHER=value"};
	int ends[2], saved = dup(STDERR_FILENO);
	unsigned int number;
	char line[256];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	size_t filled = fill(ends[1]);
	dup2(ends[1], STDERR_FILENO);
	for (unsigned int i = 0; i < LOG_QUEUE_MESSAGES + 7; i++) {
		snprintf(line, sizeof(line), "message %u", i);
		log_queue_write(line, fields, 2);
	}
	log_queue_flush(); /* not for long */
	FILE *stream = fdopen(ends[0], "re");
	assert_non_null(stream);
	while (filled-- > 0)
		assert_int_equal(getc(stream), 0);
	/* The loss is told behind the next message that was not being written yet. */
	for (unsigned int expected = 0, told = 0; expected < LOG_QUEUE_MESSAGES || told == 0;) {
		assert_non_null(fgets(line, sizeof(line), stream));
		if (sscanf(line, "dlockfs: message %u\n", &number) == 1) {
			assert_int_equal(number, expected++);
			continue;
		}
		assert_int_equal(told++, 0);
		assert_string_equal(line,
				    "dlockfs: warning: 7 lines of the audit were left out: the log "
				    "does not keep up\n");
	}
	log_queue_write("last", NULL, 0);
	assert_non_null(fgets(line, sizeof(line), stream));
	assert_string_equal(line, "dlockfs: last\n");
	log_queue_flush();
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	fclose(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
