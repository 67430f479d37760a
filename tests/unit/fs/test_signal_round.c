/* SPDX-License-Identifier: Apache-2.0
 *
 * A process gets a signal once in a round, and only in the name of a user who could send it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/platform.h"
#include "kernel/descriptors.h"
#include "kernel/kill_right.h"
#include "kernel/signal_round.h"

enum { USER = 4001, SAVED = 4002, OTHER = 4003, CHILDREN = 300 };

struct child {
	pid_t pid;
	int pidfd;
};

/* A process that waits, of these users. */
static struct child begin_child(uid_t real, uid_t saved)
{
	struct child child;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		signal(SIGUSR1, SIG_IGN);
		if (setresuid(real, real, saved) < 0)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	child.pidfd = pidfd_open(child.pid, 0);
	assert_true(child.pidfd >= 0);
	return child;
}

static void end_child(struct child child)
{
	kill(child.pid, SIGKILL);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	close(child.pidfd);
}

static void test_right(void **state)
{
	(void)state;
	if (getuid() != 0)
		skip();
	struct child own = begin_child(USER, USER), passed = begin_child(USER, SAVED);
	struct child roots = begin_child(0, 0);

	assert_true(kill_right_has(USER, own.pid));
	assert_false(kill_right_has(OTHER, own.pid));
	assert_true(kill_right_has(USER, passed.pid));
	assert_true(kill_right_has(SAVED, passed.pid));
	assert_false(kill_right_has(USER, roots.pid));
	assert_true(kill_right_has(0, own.pid));
	end_child(roots);
	end_child(own);
	end_child(passed);
	assert_false(kill_right_has(USER, own.pid));
}

static void test_once(void **state)
{
	struct child children[CHILDREN];
	struct signal_round round = signal_round_begin(NULL);
	uid_t user = getuid();

	(void)state;
	for (int i = 0; i < CHILDREN; i++)
		children[i] = begin_child(user, user);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < CHILDREN; i++)
			assert_int_equal(signal_round_send(&round, children[i].pidfd,
							   children[i].pid, user, SIGUSR1),
					 turn == 0);
	}
	/* Another signal, and another round. */
	assert_int_equal(signal_round_send(&round, children[0].pidfd, children[0].pid, user, 0), 1);
	signal_round_end(&round);
	assert_int_equal(
		signal_round_send(&round, children[0].pidfd, children[0].pid, user, SIGUSR1), 1);
	signal_round_end(&round);
	for (int i = 0; i < CHILDREN; i++)
		end_child(children[i]);
}

static void test_refused(void **state)
{
	struct signal_round round = signal_round_begin(NULL);

	(void)state;
	if (getuid() != 0)
		skip();
	struct child child = begin_child(USER, USER);
	for (int turn = 0; turn < 2; turn++)
		assert_int_equal(signal_round_send(&round, child.pidfd, child.pid, OTHER, SIGUSR1),
				 -EPERM);
	/* It holds through the file of another user, too. */
	assert_int_equal(signal_round_send(&round, child.pidfd, child.pid, USER, SIGUSR1), 1);
	end_child(child);
	signal_round_end(&round);
}

static void test_ended(void **state)
{
	struct signal_round round = signal_round_begin(NULL);
	struct child child = begin_child(getuid(), getuid());
	int pidfd = dup(child.pidfd);

	(void)state;
	end_child(child);
	assert_int_equal(signal_round_send(&round, pidfd, child.pid, 0, SIGUSR1), -ESRCH);
	assert_int_equal(signal_round_send(&round, pidfd, child.pid, OTHER, SIGUSR1), -ESRCH);
	signal_round_end(&round);
	close(pidfd);
}

static void test_descriptors(void **state)
{
	size_t looks = 1000, few = 1;
	struct stat attr;
	FILE *file = tmpfile();

	(void)state;
	assert_int_equal(fstat(fileno(file), &attr), 0);
	assert_true(descriptors_have(getpid(), attr.st_ino, &looks));
	assert_true(looks < 1000);
	fclose(file);
	looks = 1000;
	assert_false(descriptors_have(getpid(), attr.st_ino, &looks));
	/* Who cannot be looked at to the end has it, perhaps. */
	assert_true(descriptors_have(getpid(), attr.st_ino, &few));
	assert_int_equal(few, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_right),	    cmocka_unit_test(test_once),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_ended),
		cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
