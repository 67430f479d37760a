/* SPDX-License-Identifier: Apache-2.0
 *
 * waiters FILE KIND NUMBER HAND-OVERS: a lock that is held, and so many threads that wait for it,
 * each through an open file of its own.
 *
 * KIND is "flock", or "range": the first ten bytes, by F_OFD_SETLKW, so that each has an owner of
 * its own. Says "held", and begins to queue at the first line that it reads; releases at the second
 * one. After so many hand-overs it writes the median of their microseconds, and ends.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)

static const char *path;
static bool ranges;
static long hand_overs, granted;
static int64_t *times; /* of the grants, in microseconds */

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void check(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static int open_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);

	check(fd >= 0, path);
	return fd;
}

static void lock(int fd)
{
	struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};

	if (ranges)
		check(fcntl(fd, F_OFD_SETLKW, &range) == 0, "fcntl");
	else
		check(flock(fd, LOCK_EX) == 0, "flock");
}

static void unlock(int fd)
{
	struct flock range = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 10};

	if (ranges)
		check(fcntl(fd, F_OFD_SETLK, &range) == 0, "fcntl");
	else
		check(flock(fd, LOCK_UN) == 0, "flock");
}

static int compare(const void *a, const void *b)
{
	const int64_t *time_a = a, *time_b = b;

	return (*time_a > *time_b) - (*time_a < *time_b);
}

static void tell(void)
{
	for (long i = 0; i + 1 < granted; i++)
		times[i] = times[i + 1] - times[i];
	qsort(times, (size_t)granted - 1, sizeof(*times), compare);
	printf("%" PRId64 "\n", times[(granted - 1) / 2]);
	exit(0);
}

/* The lock that is waited for guards what all threads share. */
static void *wait_for_lock(void *argument)
{
	int fd = (int)(intptr_t)argument;

	lock(fd);
	times[granted++] = now_us();
	if (granted > hand_overs)
		tell();
	unlock(fd);
	return NULL;
}

static void read_line(void)
{
	char line[16];

	check(fgets(line, sizeof(line), stdin) != NULL, "standard input");
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	pthread_attr_t attributes;
	long number;
	int fd;

	if (argc != 5 || (number = atol(argv[3])) < 2 || (hand_overs = atol(argv[4])) < 1) {
		fprintf(stderr, "usage: waiters FILE flock|range NUMBER HAND-OVERS\n");
		return 2;
	}
	path = argv[1];
	ranges = strcmp(argv[2], "range") == 0;
	if (hand_overs >= number)
		hand_overs = number - 1;
	times = calloc((size_t)number, sizeof(*times));
	check(times != NULL, "memory");
	check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "limit of open files");
	limit.rlim_cur = limit.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit of open files");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	fd = open_file();
	lock(fd);
	printf("held\n");
	fflush(stdout);
	read_line();
	for (long i = 0; i < number; i++) {
		pthread_t thread;

		check(pthread_create(&thread, &attributes, wait_for_lock,
				     (void *)(intptr_t)open_file()) == 0,
		      "thread");
	}
	read_line();
	unlock(fd);
	pause();
}
