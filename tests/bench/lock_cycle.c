/* SPDX-License-Identifier: Apache-2.0
 *
 * lock_cycle FILE: how long it takes to take and release a lock that nobody else wants.
 *
 * Reads lines "KIND CYCLES" from standard input, makes that many cycles and writes the microseconds
 * of each, one a line, then an empty line; again until the input ends. KIND is
 *
 *     flock   flock(LOCK_EX) and flock(LOCK_UN) on a file that stays open
 *     open    open, flock(LOCK_EX) and close, as flock(1) does
 *     excl    open(O_CREAT|O_EXCL) and close
 *     range   fcntl(F_SETLKW) of the first ten bytes, and F_UNLCK, on a file that stays open
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

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

static void cycle_flock(const char *file, int open_fd)
{
	(void)file;
	check(flock(open_fd, LOCK_EX) == 0, "flock");
	check(flock(open_fd, LOCK_UN) == 0, "flock");
}

static void cycle_open(const char *file, int open_fd)
{
	int fd = open(file, O_RDONLY | O_CREAT, 0666);

	(void)open_fd;
	check(fd >= 0, file);
	check(flock(fd, LOCK_EX) == 0, "flock");
	check(close(fd) == 0, "close");
}

static void cycle_excl(const char *file, int open_fd)
{
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0666);

	(void)open_fd;
	check(fd >= 0, file);
	check(close(fd) == 0, "close");
}

static void cycle_range(const char *file, int open_fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};

	(void)file;
	check(fcntl(open_fd, F_SETLKW, &lock) == 0, "fcntl");
	lock.l_type = F_UNLCK;
	check(fcntl(open_fd, F_SETLK, &lock) == 0, "fcntl");
}

static const struct {
	const char *name;
	void (*cycle)(const char *file, int open_fd);
} kinds[] = {
	{"flock", cycle_flock},
	{"open", cycle_open},
	{"excl", cycle_excl},
	{"range", cycle_range},
};

int main(int argc, char **argv)
{
	char kind[16];
	long cycles;
	int fd;

	if (argc != 2) {
		fprintf(stderr, "usage: lock_cycle FILE\n");
		return 2;
	}
	fd = open(argv[1], O_RDWR | O_CREAT, 0666);
	check(fd >= 0, argv[1]);
	while (scanf("%15s %ld", kind, &cycles) == 2) {
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strcmp(kind, kinds[i].name) != 0)
				continue;
			for (long cycle = 0; cycle < cycles; cycle++) {
				int64_t begin = now_us();

				kinds[i].cycle(argv[1], fd);
				printf("%" PRId64 "\n", now_us() - begin);
			}
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
