/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders to the kernel, which is a socket here: what it is told, what can be taken back, what is
 * kept for another daemon, and the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/log.h"
#include "journal/journal.h"
#include "kernel/notifier.h"
#include "kernel/notifier_process.h"

#define LIMIT_MS 30000

struct fixture {
	struct notifier *notifier;
	struct state_journal *journal;
	int daemon, kernel; /* ends of the connection */
	size_t filled;	    /* messages that hold up the process */
};

static int begin(void **state)
{
	static struct fixture fixture;
	int ends[2];

	log_set_level(LOG_LEVEL_ERROR);
	fixture = (struct fixture){0};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	fixture.daemon = ends[0];
	fixture.kernel = ends[1];
	int journal = memfd_create("journal", MFD_CLOEXEC);
	assert_int_equal(state_journal_create(journal, 4096, 0, &fixture.journal), 0);
	const struct notifier_mount mount = {.fuse = ends[0], .mountpoint = "/"};
	assert_int_equal(notifier_create(&mount, fixture.journal, NULL, &fixture.notifier), 0);
	*state = &fixture;
	return 0;
}

static int end(void **state)
{
	struct fixture *fixture = *state;

	if (fixture->daemon >= 0)
		close(fixture->daemon);
	close(fixture->kernel);
	notifier_destroy(fixture->notifier);
	state_journal_destroy(fixture->journal);
	return 0;
}

/* Whatever is written to the kernel from now on waits. */
static void hold_up(struct fixture *fixture)
{
	while (send(fixture->daemon, "", 1, MSG_DONTWAIT) == 1)
		fixture->filled++;
	assert_int_equal(errno, EAGAIN);
}

static void let_go(struct fixture *fixture)
{
	char byte;

	for (; fixture->filled > 0; fixture->filled--)
		assert_int_equal(recv(fixture->kernel, &byte, 1, 0), 1);
}

static void wait_for(int descriptor)
{
	struct pollfd polled = {.fd = descriptor, .events = POLLIN};
	assert_int_equal(poll(&polled, 1, LIMIT_MS), 1);
}

/* The process tells of something that it has done. */
static void dispatch(struct fixture *fixture)
{
	wait_for(notifier_descriptor(fixture->notifier));
	notifier_dispatch(fixture->notifier);
}

/* The next message: a header with that code, a body, which is copied, and the name. */
static void expect_message(struct fixture *fixture, int code, void *body, size_t body_bytes,
			   const char *name)
{
	char message[NOTIFIER_MESSAGE_BYTES];
	struct fuse_out_header header;

	wait_for(fixture->kernel);
	ssize_t got = recv(fixture->kernel, message, sizeof(message), 0);
	assert_int_equal(got, sizeof(header) + body_bytes + strlen(name) + 1);
	memcpy(&header, message, sizeof(header));
	memcpy(body, message + sizeof(header), body_bytes);
	assert_int_equal(header.len, got);
	assert_int_equal(header.error, code);
	assert_int_equal(header.unique, 0);
	assert_string_equal(message + sizeof(header) + body_bytes, name);
}

static void expect_name(struct fixture *fixture, uint64_t parent, uint64_t node, const char *name)
{
	struct fuse_notify_delete_out body;

	expect_message(fixture, FUSE_NOTIFY_DELETE, &body, sizeof(body), name);
	assert_int_equal(body.parent, parent);
	assert_int_equal(body.child, node);
	assert_int_equal(body.namelen, strlen(name));
}

/* What another daemon would do: the names, each with a space behind it. */
static void expect_orders(struct fixture *fixture, const char *expected)
{
	struct state_journal_content content;
	char *texts[2], names[2][64] = {"", ""}, why[256];
	size_t bytes;

	FILE *out = open_memstream(&texts[0], &bytes);
	notifier_save_orders(fixture->notifier, out);
	fclose(out);
	state_journal_commit(fixture->journal, 0, NULL, 0);
	assert_int_equal(state_journal_load(state_journal_descriptor(fixture->journal), &content,
					    why, sizeof(why)),
			 0);
	bytes = 0;
	texts[1] = NULL;
	assert_true(getdelim(&texts[1], &bytes, '\0', content.text) > 0);
	state_journal_content_finish(&content);
	for (int i = 0; i < 2; i++) {
		for (const char *at = texts[i]; (at = strstr(at, "name=")) != NULL;) {
			at += strlen("name=");
			strncat(names[i], at, strcspn(at, " \n"));
			strcat(names[i], " ");
		}
		free(texts[i]);
	}
	assert_string_equal(names[0], expected);
	assert_string_equal(names[1], expected);
}

static void expect_renewal(struct fixture *fixture, uint64_t parent, const char *name)
{
	struct fuse_notify_inval_entry_out body;

	expect_message(fixture, FUSE_NOTIFY_INVAL_ENTRY, &body, sizeof(body), name);
	assert_int_equal(body.parent, parent);
	assert_int_equal(body.namelen, strlen(name));
	assert_int_equal(body.flags, FUSE_EXPIRE_ONLY);
}

static void test_messages(void **state)
{
	struct fixture *fixture = *state;
	struct {
		struct fuse_out_header header;
		struct fuse_notify_inval_inode_out body;
	} message;
	char longest[256];

	notifier_forget_name(fixture->notifier, 1, 5, "job");
	expect_name(fixture, 1, 5, "job");
	dispatch(fixture);
	memset(longest, 'x', 255);
	longest[255] = '\0';
	notifier_forget_name(fixture->notifier, UINT64_MAX, 7, longest);
	expect_name(fixture, UINT64_MAX, 7, longest);
	dispatch(fixture);
	notifier_forget_attributes(fixture->notifier, 9);
	wait_for(fixture->kernel);
	assert_int_equal(recv(fixture->kernel, &message, sizeof(message), MSG_TRUNC),
			 sizeof(message));
	assert_int_equal(message.header.len, sizeof(message));
	assert_int_equal(message.header.error, FUSE_NOTIFY_INVAL_INODE);
	assert_int_equal(message.body.ino, 9);
	assert_true(message.body.off < 0);
}

static void test_taken_back(void **state)
{
	struct fixture *fixture = *state;

	notifier_forget_name(fixture->notifier, 1, 5, "begun");
	expect_name(fixture, 1, 5, "begun");
	notifier_forget_name(fixture->notifier, 1, 6, "used");
	notifier_forget_attributes(fixture->notifier, 1);
	notifier_forget_name(fixture->notifier, 2, 7, "used");
	expect_orders(fixture, "begun used used ");
	notifier_keep_name(fixture->notifier, 1, "used");
	notifier_keep_name(fixture->notifier, 1, "unknown");
	expect_orders(fixture, "begun used ");
	/* It is too late for this one, but nobody does it again. */
	notifier_keep_name(fixture->notifier, 1, "begun");
	expect_orders(fixture, "used ");
	dispatch(fixture);
	char message[NOTIFIER_MESSAGE_BYTES];
	assert_true(recv(fixture->kernel, message, sizeof(message), 0) > 0); /* attributes */
	dispatch(fixture);
	expect_name(fixture, 2, 7, "used");
	expect_orders(fixture, "used "); /* until it is known */
	dispatch(fixture);
	expect_orders(fixture, "");
}

/* A directory has come where a file was to be forgotten; and is taken away again. */
static void test_renewed(void **state)
{
	struct fixture *fixture = *state;

	notifier_forget_name(fixture->notifier, 1, 5, "begun");
	expect_name(fixture, 1, 5, "begun");
	notifier_forget_name(fixture->notifier, 1, 6, "a");
	notifier_renew_name(fixture->notifier, 1, "a");
	notifier_renew_name(fixture->notifier, 1, "b");
	notifier_renew_name(fixture->notifier, 2, "b");
	notifier_keep_name(fixture->notifier, 1, "b");
	expect_orders(fixture, "begun a b ");
	dispatch(fixture);
	expect_renewal(fixture, 1, "a");
	expect_orders(fixture, "a b "); /* until it is known */
	dispatch(fixture);
	expect_renewal(fixture, 2, "b");
	dispatch(fixture);
	expect_orders(fixture, "");
}

static void test_end(void **state)
{
	struct fixture *fixture = *state;

	hold_up(fixture);
	notifier_forget_name(fixture->notifier, 1, 5, "begun");
	notifier_forget_name(fixture->notifier, 1, 6, "next");
	notifier_stop(fixture->notifier);
	assert_false(notifier_has_ended(fixture->notifier));
	let_go(fixture);
	expect_name(fixture, 1, 5, "begun");
	while (!notifier_has_ended(fixture->notifier))
		dispatch(fixture);
	expect_orders(fixture, "next ");
	/* Nobody has the connection any more but this test. */
	close(fixture->daemon);
	fixture->daemon = -1;
	char byte;
	wait_for(fixture->kernel);
	assert_int_equal(recv(fixture->kernel, &byte, 1, 0), 0);
	notifier_forget_name(fixture->notifier, 1, 7, "late");
	assert_true(notifier_has_ended(fixture->notifier));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_messages, begin, end),
		cmocka_unit_test_setup_teardown(test_taken_back, begin, end),
		cmocka_unit_test_setup_teardown(test_renewed, begin, end),
		cmocka_unit_test_setup_teardown(test_end, begin, end),
	};
	if (notifier_process_is_meant(argv))
		notifier_process_run(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
