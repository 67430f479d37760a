/* SPDX-License-Identifier: Apache-2.0
 *
 * What a daemon that was taken over could ask of the warden: nothing is done that the plan does not
 * have, and no request ends the warden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/platform.h"
#include "kernel/calling.h"
#include "kernel/packet.h"
#include "kernel/warden.h"
#include "kernel/warden_process.h"

static char folder[] = "/tmp/test_warden.XXXXXX";
static char config[64], secret[64], known[64], other[64];
static int to_warden;

static void write_file(char path[64], const char *name, const char *text)
{
	snprintf(path, 64, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int set_up(void **state)
{
	char text[256], process[16];
	int ends[2], status;

	(void)state;
	assert_non_null(mkdtemp(folder));
	write_file(secret, "secret", "a:b\n");
	write_file(known, "known", "known");
	write_file(other, "other", "other");
	snprintf(text, sizeof(text), "[mount]\ndirectories = %s\n[store]\ndigest_file = %s\n",
		 other, secret);
	write_file(config, "config", text);
	snprintf(process, sizeof(process), "%d", (int)getpid());
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid_t child = fork();
	if (child == 0) {
		char *arguments[] = {[WARDEN_ARGUMENT_NAME] = WARDEN_NAME,
				     [WARDEN_ARGUMENT_DAEMON] = process,
				     [WARDEN_ARGUMENT_MOUNTPOINT] = folder,
				     [WARDEN_ARGUMENT_UNMOUNTS] = "no",
				     [WARDEN_ARGUMENT_MADE] = "no",
				     [WARDEN_ARGUMENT_HAS_FILES] = "no",
				     [WARDEN_ARGUMENT_CONFIG] = config,
				     [WARDEN_ARGUMENT_FILES] = known,
				     NULL};
		dup2(ends[1], WARDEN_SOCKET);
		if (warden_process_is_meant(arguments))
			warden_process_run(arguments);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[1]);
	to_warden = ends[0];
	warden_resume(to_warden);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(config);
	unlink(secret);
	unlink(known);
	unlink(other);
	return rmdir(folder);
}

/* Returns what the warden answers, and closes what comes with it. */
static int64_t ask(enum warden_kind kind, const char *text)
{
	const struct warden_request request = {.kind = kind, .pid = getpid(), .signal = 9};
	struct warden_answer answer;
	int descriptor;

	assert_int_equal(warden_ask(&request, text, NULL, 0, &answer, &descriptor), 0);
	assert_true(descriptor < 0 || answer.result == 0);
	if (descriptor >= 0)
		close(descriptor);
	return answer.result;
}

static void test_opens(void **state)
{
	(void)state;
	assert_int_equal(ask(WARDEN_OPEN, config), 0);
	assert_int_equal(ask(WARDEN_OPEN, known), 0);
	assert_int_equal(ask(WARDEN_OPEN, secret), 0);
	assert_int_equal(ask(WARDEN_OPEN, other), -EACCES); /* of another key */
	assert_int_equal(ask(WARDEN_OPEN, "/etc/shadow"), -EACCES);
	assert_int_equal(ask(WARDEN_OPEN, "config"), -EACCES);
	assert_int_equal(ask(WARDEN_OPEN, ""), -EACCES);
	/* What the configuration names later, and what it does not name any more. */
	char text[256];
	snprintf(text, sizeof(text), "[store]\ndigest_file = %s\n", other);
	write_file(config, "config", text);
	assert_int_equal(ask(WARDEN_OPEN, other), 0);
	assert_int_equal(ask(WARDEN_OPEN, secret), -EACCES);
}

/* Nothing is mounted there, and the folder was there before. */
static void test_keeps_to_plan(void **state)
{
	const struct warden_request request = {.kind = WARDEN_SIGNAL, .pid = getpid(), .signal = 9};
	struct warden_answer answer;
	struct stat attr;
	int self = pidfd_open(getpid(), 0);

	(void)state;
	assert_int_equal(ask(WARDEN_UNMOUNT, NULL), -EINVAL);
	assert_int_equal(ask(WARDEN_REMOVE, NULL), -EPERM);
	assert_int_equal(stat(folder, &attr), 0);
	assert_int_equal(ask(WARDEN_SIGNAL, NULL), -EINVAL);
	assert_int_equal(warden_ask(&request, NULL, &self, 1, &answer, NULL), 0);
	assert_int_equal(answer.result, -EINVAL); /* this process has nothing of the mount open */
	close(self);
	assert_int_equal(ask(WARDEN_GUARD, NULL), -EINVAL);
}

/* Sends the bytes as they are, and returns what is answered. */
static struct warden_answer exchange(const void *bytes, size_t count)
{
	const struct iovec part = {.iov_base = (void *)bytes, .iov_len = count};
	struct pollfd readable = {.fd = to_warden, .events = POLLIN};
	int received[PACKET_DESCRIPTORS_MAX];
	struct warden_answer answer;
	size_t descriptors;

	assert_int_equal(packet_send(to_warden, &part, 1, NULL, 0), 0);
	assert_int_equal(poll(&readable, 1, 60000), 1);
	assert_int_equal(packet_receive(to_warden, &answer, sizeof(answer), received, &descriptors),
			 sizeof(answer));
	assert_int_equal(descriptors, 0);
	return answer;
}

static void test_minds_nonsense(void **state)
{
	static char nonsense[70000];
	struct warden_request request = {.kind = WARDEN_KINDS};
	int many[PACKET_DESCRIPTORS_MAX];
	struct warden_answer answer;

	(void)state;
	memset(nonsense, 0xff, sizeof(nonsense));
	request.until_ms = INT64_MAX;
	memcpy(nonsense, &request, offsetof(struct warden_request, kind));
	for (size_t bytes = 1; bytes <= sizeof(request) + WARDEN_TEXT_BYTES - 1; bytes += 37) {
		answer = exchange(nonsense, bytes);
		assert_true(answer.result == -EINVAL || answer.result == -EOPNOTSUPP);
	}
	for (size_t i = 0; i < PACKET_DESCRIPTORS_MAX; i++)
		many[i] = to_warden;
	for (uint32_t kind = 0; kind <= WARDEN_KINDS; kind++) {
		if (kind == WARDEN_GUARD || kind == WARDEN_CHANNEL)
			continue;
		request = (struct warden_request){.kind = kind, .pid = -1, .signal = 1000};
		assert_int_equal(warden_ask(&request, "\xff\xff", many, PACKET_DESCRIPTORS_MAX - 1,
					    &answer, NULL),
				 0);
	}
	assert_int_equal(ask(WARDEN_OPEN, known), 0); /* it goes on */
}

/* What nobody waits for any more is not done; and such an answer is not taken for that to another
 * request. */
static void test_late(void **state)
{
	struct warden_request request = {.id = 7, .kind = WARDEN_CALL, .until_ms = INT64_MAX};
	const struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};

	(void)state;
	assert_int_equal(exchange(&request, sizeof(request)).result, CALLING_OTHER);
	request.until_ms = clock_now_ms();
	struct warden_answer answer = exchange(&request, sizeof(request));
	assert_int_equal(answer.id, 7);
	assert_int_equal(answer.result, -ETIMEDOUT);
	request.kind = WARDEN_CHANNEL;
	request.until_ms = INT64_MAX;
	assert_int_equal(packet_send(to_warden, &part, 1, NULL, 0), 0);
	assert_int_equal(ask(WARDEN_OPEN, "/etc/shadow"), -EACCES);
}

/* A channel more than there can be is refused, and one that was closed makes place. */
static void test_bounds_channels(void **state)
{
	const struct warden_request request = {.kind = WARDEN_CHANNEL};
	struct warden_answer answer = {0};
	int channels[64], count = 0;

	(void)state;
	while (answer.result == 0 && count < 64) {
		assert_int_equal(warden_ask(&request, NULL, NULL, 0, &answer, &channels[count]), 0);
		count += answer.result == 0;
	}
	assert_int_equal(answer.result, -EMFILE);
	while (count > 0)
		close(channels[--count]);
	for (int tries = 0; answer.result != 0 && tries < 1000; tries++) {
		assert_int_equal(warden_ask(&request, NULL, NULL, 0, &answer, &channels[0]), 0);
	}
	assert_int_equal(answer.result, 0);
	close(channels[0]);
}

/* Last: the warden is not asked any more. */
static void test_gives_up(void **state)
{
	static char long_text[WARDEN_TEXT_BYTES + 1];
	const struct warden_request request = {.kind = WARDEN_OPEN};
	struct warden_answer answer;

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	/* The warden ends a connection with a message that does not fit. */
	assert_true(warden_ask(&request, long_text, NULL, 0, &answer, NULL) < 0);
	assert_int_equal(warden_socket(), -1);
	assert_int_equal(warden_ask(&request, known, NULL, 0, &answer, NULL), -ENOTCONN);
	assert_int_equal(warden_uid(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opens),
		cmocka_unit_test(test_keeps_to_plan),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_minds_nonsense),
		cmocka_unit_test(test_bounds_channels),
		cmocka_unit_test(test_gives_up),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
