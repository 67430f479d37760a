/* SPDX-License-Identifier: Apache-2.0
 *
 * What a shelf has, and how it travels: whole or not at all, and no descriptor is left open.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "keeper/message.h"
#include "keeper/shelf.h"

static int ends[2]; /* of a connection */
static int opened;  /* descriptors, before the test */

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

static int begin(void **state)
{
	(void)state;
	opened = count_descriptors();
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends);
}

static int end(void **state)
{
	(void)state;
	close(ends[0]);
	close(ends[1]);
	return opened == count_descriptors() ? 0 : -1;
}

static int one(void)
{
	int descriptor = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(descriptor >= 0);
	return descriptor;
}

static void test_names(void **state)
{
	static const char *const wrong[] = {"", "a b", "a:b", "a\nb", "\x7f", "\xc3\xa4"};
	char name[SHELF_NAME_BYTES + 1];
	struct shelf shelf = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_true(shelf_put(&shelf, wrong[i], one()) == -EINVAL);
	memset(name, 'a', sizeof(name));
	name[SHELF_NAME_BYTES] = '\0';
	assert_true(shelf_put(&shelf, name, one()) == -EINVAL);
	name[SHELF_NAME_BYTES - 1] = '\0';
	assert_true(shelf_put(&shelf, name, one()) == 0);
	for (int i = 1; i < SHELF_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_true(shelf_put(&shelf, name, one()) == 0);
	}
	assert_true(shelf_put(&shelf, "more", one()) == -ENOSPC);
	/* The latest of a name takes the place of the one before. */
	assert_true(shelf_put(&shelf, "1", one()) == 0);
	assert_true(shelf.count == SHELF_MAX);
	shelf_remove(&shelf, "2");
	shelf_remove(&shelf, "2");
	assert_true(shelf_find(&shelf, "2") < 0);
	assert_true(shelf_find(&shelf, "3") >= 0);
	assert_true(shelf.count == SHELF_MAX - 1);
	shelf_clear(&shelf);
}

static void test_travels(void **state)
{
	struct shelf shelf = {0}, other = {0};

	(void)state;
	assert_true(shelf_receive(&other, ends[1]) == -EAGAIN);
	assert_true(shelf_put(&other, "old", one()) == 0);
	assert_true(shelf_put(&shelf, "fuse", one()) == 0);
	assert_true(shelf_put(&shelf, "state", one()) == 0);
	assert_true(shelf_send(&shelf, ends[0]) == 0);
	shelf_clear(&shelf);
	assert_true(shelf_send(&shelf, ends[0]) == 0);
	assert_true(shelf_receive(&other, ends[1]) == 0);
	assert_true(other.count == 2);
	assert_true(shelf_find(&other, "old") < 0);
	assert_true(fcntl(shelf_find(&other, "fuse"), F_GETFD) == FD_CLOEXEC);
	assert_true(fcntl(shelf_find(&other, "state"), F_GETFD) == FD_CLOEXEC);
	assert_true(shelf_receive(&other, ends[1]) == 0);
	assert_true(other.count == 0);
	shutdown(ends[0], SHUT_RDWR);
	assert_true(shelf_receive(&other, ends[1]) == -ENOTCONN);
	assert_true(shelf_send(&other, ends[0]) == -EPIPE);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		size_t count;
		int error;
	} packets[] = {
		{"dlockfs-keeper/2 a", 1, -EPROTO},
		{"a", 1, -EPROTO},
		{" ", 0, -EPROTO},
		{"dlockfs-keeper/1", 1, -EPROTO},
		{"dlockfs-keeper/1 a", 0, -EPROTO},
		{"dlockfs-keeper/1 a b", 1, -EPROTO},
		{"dlockfs-keeper/1 a a", 2, -EPROTO},
		{"dlockfs-keeper/1 a:b", 1, -EPROTO},
		{"dlockfs-keeper/1 1 2 3 4 5 6 7 8 9", 9, -EPROTO},
		{"dlockfs-keeper/1 a", MESSAGE_DESCRIPTORS, -EPROTO},
	};
	char long_text[MESSAGE_BYTES + 1];
	int descriptors[MESSAGE_DESCRIPTORS];
	struct shelf shelf = {0};

	(void)state;
	for (size_t i = 0; i < MESSAGE_DESCRIPTORS; i++)
		descriptors[i] = one();
	assert_true(shelf_put(&shelf, "old", one()) == 0);
	for (size_t i = 0; i < sizeof(packets) / sizeof(*packets); i++) {
		assert_true(message_send(ends[0], packets[i].text, descriptors, packets[i].count) ==
			    0);
		assert_true(shelf_receive(&shelf, ends[1]) == packets[i].error);
		assert_true(shelf_find(&shelf, "old") >= 0);
	}
	memset(long_text, 'a', sizeof(long_text));
	long_text[MESSAGE_BYTES] = '\0';
	assert_true(message_send(ends[0], long_text, descriptors, 2) == 0);
	assert_true(shelf_receive(&shelf, ends[1]) == -EMSGSIZE);
	assert_true(shelf.count == 1);
	shelf_clear(&shelf);
	for (size_t i = 0; i < MESSAGE_DESCRIPTORS; i++)
		close(descriptors[i]);
}

static void test_lines(void **state)
{
	struct message message = {.text = "FDSTORE=1\nFDNAME=state\nFDNAMED=1\n\nREADY=12\nEMPTY="};
	size_t bytes;

	(void)state;
	assert_true(message_says(&message, "FDSTORE"));
	assert_false(message_says(&message, "FDSTOREREMOVE"));
	assert_false(message_says(&message, "READY"));
	assert_true(strncmp(message_find(&message, "FDNAME", &bytes), "state", 5) == 0);
	assert_true(bytes == 5);
	assert_true(message_find(&message, "EMPTY", &bytes) != NULL);
	assert_true(bytes == 0);
	assert_true(message_find(&message, "STATUS", &bytes) == NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, begin, end),
		cmocka_unit_test_setup_teardown(test_travels, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
		cmocka_unit_test(test_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
