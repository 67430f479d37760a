/* SPDX-License-Identifier: Apache-2.0
 *
 * record_threads MILLISECONDS DATA FILE...: threads read and write sections of DATA, under record
 * locks on the same bytes of FILE.
 *
 * There is a process for each FILE, which are names of one lock. It has groups of threads: each
 * group reads or writes, and takes locks of open files or of the process. The sections of a group
 * lie side by side, and those of the next group begin a block later, so that each overlaps with two
 * of that. No thread waits for a second section, so every call has to be granted. But the process
 * holds what one of its threads has, while another one waits; so there is only one that takes locks
 * of its own, as two would wait for each other. Each case of groups takes so long.
 *
 * Whoever writes fills each block of its section with one value, and must find that again; whoever
 * reads must find each block whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GROUPS = 3,
	THREADS = 6, /* of a group */
	BLOCK_BYTES = 32,
	SECTION_BLOCKS = 4,
	BLOCKS = THREADS * SECTION_BLOCKS + GROUPS - 1,
	PATIENCE_S = 60, /* for any call */
};

enum locks { NOBODY, OPEN_FILE, PROCESS };

struct group {
	enum locks locks;
	short type;
};

static const struct {
	const char *name;
	struct group groups[GROUPS];
} cases[] = {
	{"OFD r, OFD w", {{OPEN_FILE, F_RDLCK}, {OPEN_FILE, F_WRLCK}}},
	{"OFD w, OFD w", {{OPEN_FILE, F_WRLCK}, {OPEN_FILE, F_WRLCK}}},
	{"OFD r, process w", {{OPEN_FILE, F_RDLCK}, {PROCESS, F_WRLCK}}},
	{"OFD w, process w", {{OPEN_FILE, F_WRLCK}, {PROCESS, F_WRLCK}}},
	{"OFD w, process r", {{OPEN_FILE, F_WRLCK}, {PROCESS, F_RDLCK}}},
	{"OFD r, OFD w, process w",
	 {{OPEN_FILE, F_RDLCK}, {OPEN_FILE, F_WRLCK}, {PROCESS, F_WRLCK}}},
	{"OFD w, OFD w, process r",
	 {{OPEN_FILE, F_WRLCK}, {OPEN_FILE, F_WRLCK}, {PROCESS, F_RDLCK}}},
};

struct shared {
	atomic_bool stop;
	atomic_int locked; /* so many times */
	unsigned char blocks[BLOCKS][BLOCK_BYTES];
};

struct worker {
	pthread_t thread;
	struct shared *shared;
	enum locks locks;
	short type;
	int first; /* block */
	int fd;
	unsigned char value;
};

static void fail(const char *what, int block)
{
	fprintf(stderr, "process %d, %s, block %d: %s\n", getpid(), what, block, strerror(errno));
	_exit(1);
}

static void lock(const struct worker *worker, short type)
{
	struct flock range = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)worker->first * BLOCK_BYTES,
		.l_len = (off_t)SECTION_BLOCKS * BLOCK_BYTES,
	};
	int command = worker->locks == OPEN_FILE ? F_OFD_SETLKW : F_SETLKW;

	if (fcntl(worker->fd, command, &range) != 0)
		fail(type == F_UNLCK ? "unlock" : "lock", worker->first);
}

static void check(const struct worker *worker, int block, int value)
{
	volatile unsigned char *bytes = worker->shared->blocks[block];

	errno = 0;
	for (int i = 0; i < BLOCK_BYTES; i++) {
		if (bytes[i] != value)
			fail("another one has written", block);
	}
}

static void read_section(const struct worker *worker)
{
	int values[SECTION_BLOCKS];

	for (int i = 0; i < SECTION_BLOCKS; i++) {
		values[i] = worker->shared->blocks[worker->first + i][0];
		check(worker, worker->first + i, values[i]);
	}
	sched_yield();
	for (int i = 0; i < SECTION_BLOCKS; i++)
		check(worker, worker->first + i, values[i]);
}

static void write_section(struct worker *worker)
{
	worker->value++;
	for (int i = 0; i < SECTION_BLOCKS; i++) {
		unsigned char *bytes = worker->shared->blocks[worker->first + i];

		memset(bytes, worker->value, BLOCK_BYTES / 2);
		sched_yield();
		memset(bytes + BLOCK_BYTES / 2, worker->value, BLOCK_BYTES / 2);
	}
	for (int i = 0; i < SECTION_BLOCKS; i++)
		check(worker, worker->first + i, worker->value);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	while (!worker->shared->stop) {
		lock(worker, worker->type);
		if (worker->type == F_WRLCK)
			write_section(worker);
		else
			read_section(worker);
		lock(worker, F_UNLCK);
		worker->shared->locked++;
	}
	return NULL;
}

/* A process of one case, until it is to stop; what it takes in place of locks of the process are
 * `process_locks`. No descriptor is closed before: with any the process would release its locks. */
static void run(struct shared *shared, const struct group *groups, const char *path,
		enum locks process_locks)
{
	struct worker workers[GROUPS * THREADS];

	alarm(PATIENCE_S);
	for (int i = 0; i < GROUPS * THREADS; i++) {
		workers[i] = (struct worker){
			.shared = shared,
			.locks = groups[i / THREADS].locks == PROCESS ? process_locks
								      : groups[i / THREADS].locks,
			.type = groups[i / THREADS].type,
			.first = i % THREADS * SECTION_BLOCKS + i / THREADS,
			.fd = open(path, O_RDWR | O_CREAT, 0666),
			.value = (unsigned char)(getpid() * 7 + i * 14),
		};
		if (workers[i].fd < 0)
			fail(path, workers[i].first);
	}
	for (int i = 0; i < GROUPS * THREADS; i++) {
		if (workers[i].locks != NOBODY &&
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			fail("thread", workers[i].first);
	}
	for (int i = 0; i < GROUPS * THREADS; i++) {
		if (workers[i].locks != NOBODY)
			pthread_join(workers[i].thread, NULL);
	}
	_exit(0);
}

static bool run_case(int number, struct shared *shared, int milliseconds, int count, char **paths)
{
	const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
	int status, failed = 0;

	shared->stop = false;
	shared->locked = 0;
	for (int i = 0; i < count; i++) {
		if (fork() == 0)
			run(shared, cases[number].groups, paths[i], i == 0 ? PROCESS : OPEN_FILE);
	}
	nanosleep(&pause, NULL);
	shared->stop = true;
	while (wait(&status) > 0)
		failed += status != 0;
	printf("%s: %d locks\n", cases[number].name, shared->locked);
	fflush(stdout);
	return failed == 0 && shared->locked > THREADS;
}

int main(int argc, char **argv)
{
	struct shared *shared;
	bool good = true;

	if (argc < 4) {
		fprintf(stderr, "usage: %s MILLISECONDS DATA FILE...\n", argv[0]);
		return 2;
	}
	int fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || ftruncate(fd, sizeof(*shared)) != 0) {
		perror(argv[2]);
		return 1;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (int i = 0; i < (int)(sizeof(cases) / sizeof(cases[0])); i++)
		good &= run_case(i, shared, atoi(argv[1]), argc - 3, argv + 3);
	return good ? 0 : 1;
}
