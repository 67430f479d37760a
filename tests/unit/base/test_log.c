/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages: their text on stderr, levels, escaping, length, errno, and what goes to syslog(3),
 * which is replaced here.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static char captured[16384];
static int saved_stderr, pipe_fds[2];
static char last_syslog[16384];
static int last_priority;

/* syslog(3) as the daemon calls it, fortified or not. */
void __syslog_chk(int priority, int flag, const char *format, ...);

void syslog(int priority, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(last_syslog, sizeof(last_syslog), format, arguments);
	va_end(arguments);
	last_priority = priority;
}

void __syslog_chk(int priority, int flag, const char *format, ...)
{
	va_list arguments;

	(void)flag;
	va_start(arguments, format);
	vsnprintf(last_syslog, sizeof(last_syslog), format, arguments);
	va_end(arguments);
	last_priority = priority;
}

static void capture(void)
{
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(pipe_fds[1], STDERR_FILENO);
}

/* What was written to stderr since capture(). */
static const char *captured_text(void)
{
	ssize_t bytes;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	bytes = read(pipe_fds[0], captured, sizeof(captured) - 1);
	captured[bytes < 0 ? 0 : bytes] = '\0';
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return captured;
}

static void test_about_a_lock(void **state)
{
	char name[5000];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	errno = EIO;
	capture();
	log_lock_error("a/b\n", "lost: %m");
	log_lock_warning("%s", "%d times", 2);
	assert_string_equal(captured_text(), "dlockfs: error: a/b\\x0A: lost: Input/output error\n"
					     "dlockfs: warning: %s: 2 times\n");
	/* A name that leaves no room for the text. */
	capture();
	log_lock_error(name, "lost");
	assert_string_equal(captured_text() + 2048 - 1 + strlen("dlockfs: error: ") - 3, "...\n");
}

/* What systemd says of stderr is believed only of the very file. */
static void test_stream_to_the_journal(void **state)
{
	char stream[64];
	struct stat attr;

	(void)state;
	unsetenv("JOURNAL_STREAM");
	assert_false(log_stderr_is_journal());
	assert_int_equal(fstat(STDERR_FILENO, &attr), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)attr.st_dev, (uintmax_t)attr.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_true(log_stderr_is_journal());
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)attr.st_dev,
		 (uintmax_t)attr.st_ino + 1);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_false(log_stderr_is_journal());
	setenv("JOURNAL_STREAM", "1", 1);
	assert_false(log_stderr_is_journal());
}

static void test_levels(void **state)
{
	(void)state;
	capture();
	log_error("e %d", 1);
	log_warning("w %s", "2");
	log_info("i");
	log_debug("d");
	assert_string_equal(captured_text(),
			    "dlockfs: error: e 1\ndlockfs: warning: w 2\ndlockfs: i\n");

	capture();
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
	log_set_level(LOG_LEVEL_ERROR);
	log_warning("w");
	log_error("e");
	log_set_level(LOG_LEVEL_INFO);
	assert_string_equal(captured_text(), "dlockfs: d\ndlockfs: error: e\n");
}

static void test_errno(void **state)
{
	(void)state;
	capture();
	errno = ENOENT;
	log_error("cannot open %s: %m", "/x");
	assert_int_equal(errno, ENOENT);
	log_debug("not written");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(captured_text(),
			    "dlockfs: error: cannot open /x: No such file or directory\n");
}

static void test_broken_stderr(void **state)
{
	int saved = dup(STDERR_FILENO);

	(void)state;
	close(STDERR_FILENO);
	errno = ENOENT;
	log_error("nobody hears it");
	assert_int_equal(errno, ENOENT);
	dup2(saved, STDERR_FILENO);
	close(saved);
}

static void test_escapes(void **state)
{
	(void)state;
	capture();
	log_info("%s", "a\nb\x1b[0m\x7f\tc\\x \xc3\xa4\xff\x9b\xc2\x9b\u202e");
	assert_string_equal(captured_text(),
			    "dlockfs: a\\x0Ab\\x1B[0m\\x7F\\x09c\\x \xc3\xa4\\xFF\\x9B"
			    "\\xC2\\x9B\\xE2\\x80\\xAE\n");
}

static void test_length(void **state)
{
	char text[4096];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[2047] = '\0';
	capture();
	log_info("%s", text);
	assert_int_equal(strlen(captured_text()), strlen("dlockfs: \n") + 2047);
	assert_null(strstr(captured, "..."));

	text[2047] = 'x';
	text[2048] = '\0';
	capture();
	log_info("%s", text);
	assert_int_equal(strlen(captured_text()), strlen("dlockfs: \n") + 2047);
	assert_non_null(strstr(captured, "xx...\n"));

	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	capture();
	log_error("%s", text);
	assert_int_equal(strlen(captured_text()),
			 strlen("dlockfs: error: ...\n") + 4 * (2047 - strlen("...")));
}

/* Comes last: there is no way back to stderr. */
static void test_syslog(void **state)
{
	(void)state;
	errno = EIO;
	log_to_syslog();
	assert_int_equal(errno, EIO);
	capture();
	log_warning("lost\n%s: %m", "100%s");
	assert_int_equal(errno, EIO);
	assert_string_equal(captured_text(), "");
	assert_int_equal(last_priority, LOG_WARNING);
	assert_string_equal(last_syslog, "lost\\x0A100%s: Input/output error");
	log_error("e");
	assert_int_equal(last_priority, LOG_ERR);
	log_info("i");
	assert_int_equal(last_priority, LOG_INFO);
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
	assert_int_equal(last_priority, LOG_DEBUG);
}

static void test_hold(void **state)
{
	(void)state;
	capture();
	log_hold();
	log_error("one");
	log_hold();
	log_write_lock(LOG_LEVEL_INFO, "job", "two");
	log_resume();
	assert_string_equal(captured_text(), "");
	capture();
	log_resume();
	log_error("three");
	assert_string_equal(captured_text(),
			    "dlockfs: error: one\ndlockfs: job: two\ndlockfs: error: three\n");
}

/* What was held is written a part at a time, and what comes meanwhile behind it. */
static void test_hold_many(void **state)
{
	char line[64];

	(void)state;
	capture();
	log_hold();
	for (int i = 0; i < 2 * LOG_HELD_AT_ONCE; i++)
		log_info("line %d", i);
	log_resume();
	log_info("later");
	snprintf(line, sizeof(line), "dlockfs: line %d\n", LOG_HELD_AT_ONCE - 1);
	const char *text = captured_text();
	assert_non_null(strstr(text, line));
	assert_string_equal(strstr(text, line), line);
	capture();
	assert_true(log_go_on());
	assert_false(log_go_on());
	text = captured_text();
	snprintf(line, sizeof(line), "dlockfs: line %d\ndlockfs: later\n",
		 2 * LOG_HELD_AT_ONCE - 1);
	assert_non_null(strstr(text, line));
	assert_string_equal(strstr(text, line), line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_broken_stderr),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_length),
		cmocka_unit_test(test_about_a_lock),
		cmocka_unit_test(test_stream_to_the_journal),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_hold_many),
		cmocka_unit_test(test_syslog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
