/* SPDX-License-Identifier: Apache-2.0
 *
 * What passes the filter of system calls, what fails as unknown, and what ends the process; each in
 * a process of its own, as no filter can be taken away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/call_filter.h"

#define PASSED	0
#define REFUSED 1 /* ENOSYS */
#define OTHER	2

static int judge(long result)
{
	return result >= 0 ? PASSED : errno == ENOSYS ? REFUSED : OTHER;
}

/* Runs what the test does below a filter. Returns its result, or minus the signal that ended it. */
static int below_filter(int (*act)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(call_filter_set(true) == 0 ? act() : 100);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void *be_a_thread(void *context)
{
	return context;
}

static int work(void)
{
	static int token;
	struct addrinfo *found = NULL;
	pthread_t thread;
	void *result = NULL;

	if (pthread_create(&thread, NULL, be_a_thread, &token) != 0 ||
	    pthread_join(thread, &result) != 0 || result != &token)
		return OTHER;
	if (getaddrinfo("localhost", "2181", NULL, &found) == 0)
		freeaddrinfo(found);
	/* Starts a program, which has to load its libraries. */
	return system("exec ls /proc/self >/dev/null") == 0 ? PASSED : OTHER;
}

static int make_link(void)
{
	return judge(symlink("x", "/tmp/made below the filter"));
}

static int make_file(void)
{
	return judge(mknod("/tmp/made below the filter", S_IFREG | 0600, 0));
}

static int ask_for_ring(void)
{
	return judge(syscall(SYS_io_uring_setup, 1, NULL));
}

static int push_input(void)
{
	return judge(ioctl(STDIN_FILENO, TIOCSTI, "x"));
}

static int make_namespace(void)
{
	return judge(syscall(SYS_clone, CLONE_NEWUTS | SIGCHLD, NULL, NULL, NULL, NULL));
}

static int map_code(void)
{
	void *code = mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return judge(code != MAP_FAILED ? 0 : -1);
}

static int turn_to_code(void)
{
	void *data = mmap(NULL, 4096, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return data == MAP_FAILED ? OTHER : judge(mprotect(data, 4096, PROT_READ | PROT_EXEC));
}

static int open_packets(void)
{
	return judge(socket(AF_PACKET, SOCK_DGRAM, 0));
}

static int open_audit(void)
{
	return judge(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
}

static int open_internet(void)
{
	return judge(socket(AF_INET, SOCK_STREAM, 0));
}

static int open_routes(void)
{
	return judge(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

static int remove_file(void)
{
	return judge(unlinkat(AT_FDCWD, "/tmp/there is no such file", 0));
}

static int remove_folder(void)
{
	return judge(unlinkat(AT_FDCWD, "/tmp/there is no such folder", AT_REMOVEDIR));
}

static int leave_namespace(void)
{
	return judge(unshare(CLONE_NEWUTS));
}

static int load_program(void)
{
	return judge(syscall(SYS_bpf, 0, NULL, 0));
}

static int write_to_other(void)
{
	return judge(syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0));
}

static int leave_by_program(void)
{
	return judge(execlp("unshare", "unshare", "--uts", "true", (char *)NULL));
}

/* The number of filters (proc(5); Linux 5.9); 0: unknown. */
static int count_filters(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	int count = 0;

	while (status != NULL && fgets(line, sizeof(line), status) != NULL)
		sscanf(line, "Seccomp_filters: %d", &count);
	if (status != NULL)
		fclose(status);
	return count;
}

static int filter_again(void)
{
	int count = count_filters();

	return call_filter_set(true) == 0 && count_filters() == count ? PASSED : OTHER;
}

static void test_passes(void **state)
{
	(void)state;
	assert_int_equal(below_filter(work), PASSED);
	assert_int_equal(below_filter(open_internet), PASSED);
	assert_int_equal(below_filter(open_routes), PASSED);
	assert_int_equal(below_filter(remove_folder), OTHER); /* ENOENT */
}

static void test_refuses(void **state)
{
	(void)state;
	assert_int_equal(below_filter(make_link), REFUSED);
	assert_int_equal(below_filter(make_file), REFUSED);
	assert_int_equal(below_filter(remove_file), REFUSED);
	assert_int_equal(below_filter(ask_for_ring), REFUSED);
	assert_int_equal(below_filter(push_input), REFUSED);
	assert_int_equal(below_filter(make_namespace), REFUSED);
	assert_int_equal(below_filter(map_code), REFUSED);
	assert_int_equal(below_filter(turn_to_code), REFUSED);
	assert_int_equal(below_filter(open_packets), REFUSED);
	assert_int_equal(below_filter(open_audit), REFUSED);
}

static void test_ends(void **state)
{
	(void)state;
	assert_int_equal(below_filter(leave_namespace), -SIGSYS);
	assert_int_equal(below_filter(load_program), -SIGSYS);
	assert_int_equal(below_filter(write_to_other), -SIGSYS);
	assert_int_equal(below_filter(leave_by_program), -SIGSYS);
}

static void test_is_set_once(void **state)
{
	(void)state;
	assert_int_equal(below_filter(filter_again), PASSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_is_set_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
