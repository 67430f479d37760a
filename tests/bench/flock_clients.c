/* SPDX-License-Identifier: Apache-2.0
 *
 * flock_clients KIND FILE...: a driver (driver.py) for locks on files. Each client is a process,
 * and the processes take turns with the files. KIND is
 *
 *     flock   flock(2) on a file that stays open
 *     open    open, flock(LOCK_EX) and close, as flock(1) does
 *     excl    open(O_CREAT|O_EXCL) and close
 *     range   fcntl(F_SETLKW) of the first ten bytes, and F_UNLCK, on a file that stays open
 *     create  open(O_CREAT|O_EXCL), again and again until it succeeds, and unlink
 *     mkdir   mkdir, likewise, and rmdir
 */
#include "order.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_LIMIT_S	140
#define ASLEEP_LIMIT_US 30000000 /* until a client waits that has asked */

struct lock {
	char file[PATH_MAX];
	int fd;
	bool shared;
};

struct kind {
	const char *name;
	bool stays_open;
	int (*take)(struct lock *lock);
	int (*release)(struct lock *lock);
};

/* Shared by the parent and one client. */
struct client {
	pid_t pid;
	sem_t go;
	volatile int64_t asked;
	volatile long count;
};

/* Shared by the parent and all clients. */
struct board {
	sem_t ready;
	sem_t over;	      /* posted for each client: the end of a process takes its time too */
	volatile int64_t end; /* no attempt is begun later */
};

/* One order. */
struct job {
	int clients;
	long cycles; /* at most, of each client */
	bool own;
	long hold_us, apart_us, shared_percent, wait_ms, held_each;
	struct board *board;
	struct client *client;
	struct record *records; /* cycles for each client */
};

static const struct kind *kind;
static char **files;
static int file_count;

static void check(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static int take_flock(struct lock *lock)
{
	return flock(lock->fd, lock->shared ? LOCK_SH : LOCK_EX);
}

static int release_flock(struct lock *lock)
{
	return flock(lock->fd, LOCK_UN);
}

static int take_open(struct lock *lock)
{
	lock->fd = open(lock->file, O_RDONLY | O_CREAT, 0666);
	return lock->fd < 0 ? -1 : take_flock(lock);
}

static int release_close(struct lock *lock)
{
	return close(lock->fd);
}

static int take_excl(struct lock *lock)
{
	lock->fd = open(lock->file, O_RDWR | O_CREAT | O_EXCL, 0666);
	return lock->fd;
}

/* How long programs wait that only try: less than they do, so that the file system is measured. */
static void pause_between_tries(void)
{
	static const struct timespec pause = {.tv_nsec = 500000};
	nanosleep(&pause, NULL);
}

static int take_create(struct lock *lock)
{
	while (take_excl(lock) < 0) {
		if (errno != EEXIST)
			return -1;
		pause_between_tries();
	}
	return close(lock->fd);
}

static int release_unlink(struct lock *lock)
{
	return unlink(lock->file);
}

static int take_mkdir(struct lock *lock)
{
	while (mkdir(lock->file, 0777) < 0) {
		if (errno != EEXIST)
			return -1;
		pause_between_tries();
	}
	return 0;
}

static int release_rmdir(struct lock *lock)
{
	return rmdir(lock->file);
}

static int set_range(struct lock *lock, int command, short type)
{
	struct flock range = {.l_type = type, .l_whence = SEEK_SET, .l_len = 10};

	return fcntl(lock->fd, command, &range);
}

static int take_range(struct lock *lock)
{
	return set_range(lock, F_SETLKW, lock->shared ? F_RDLCK : F_WRLCK);
}

static int release_range(struct lock *lock)
{
	return set_range(lock, F_SETLK, F_UNLCK);
}

static const struct kind kinds[] = {
	{"flock", true, take_flock, release_flock},	{"open", false, take_open, release_close},
	{"excl", false, take_excl, release_close},	{"range", true, take_range, release_range},
	{"create", false, take_create, release_unlink}, {"mkdir", false, take_mkdir, release_rmdir},
};

static void lock_open(struct lock *lock, int client, const char *suffix, long number)
{
	const char *file = files[client % file_count];

	if (number < 0)
		snprintf(lock->file, sizeof(lock->file), "%s", file);
	else
		snprintf(lock->file, sizeof(lock->file), "%s-%s%ld", file, suffix, number);
	if (kind->stays_open) {
		lock->fd = open(lock->file, O_RDWR | O_CREAT, 0666);
		check(lock->fd >= 0, lock->file);
	}
}

static void on_alarm(int number)
{
	(void)number;
}

static void set_alarm(long ms)
{
	struct itimerval timer = {.it_value = {ms / 1000, ms % 1000 * 1000}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Returns whether the lock was taken; if not, the time to wait was over. */
static bool take(const struct job *job, struct lock *lock)
{
	int result;

	if (job->wait_ms)
		set_alarm(job->wait_ms);
	result = kind->take(lock);
	check(result >= 0 || (job->wait_ms && errno == EINTR), lock->file);
	if (job->wait_ms)
		set_alarm(0);
	return result >= 0;
}

static void hold_for(long us)
{
	if (us)
		usleep((useconds_t)us);
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		check(errno == EINTR, "sem_wait");
}

static void cycle(const struct job *job, struct lock *lock, struct record *record)
{
	lock->shared = job->shared_percent && random() % 100 < job->shared_percent;
	record->kind = lock->shared ? 's' : 'x';
	record->asked = now_us();
	if (!take(job, lock)) {
		record->kind = 't';
		record->granted = record->releasing = record->released = now_us();
		return;
	}
	record->granted = now_us();
	hold_for(job->hold_us);
	record->releasing = now_us();
	check(kind->release(lock) == 0, "release");
	record->released = now_us();
}

static void run_client(struct job *job, int number)
{
	struct client *self = &job->client[number];
	struct record *records = job->records + (size_t)number * job->cycles;
	struct lock lock;

	srandom((unsigned)number);
	lock_open(&lock, number, "", job->own ? number : -1);
	sem_post(&job->board->ready);
	wait_for(&self->go);
	while (self->count < job->cycles && now_us() < job->board->end)
		cycle(job, &lock, &records[self->count++]);
}

static void queue_client(struct job *job, int number)
{
	struct client *self = &job->client[number];
	struct record *record = &job->records[number];
	struct lock lock;

	lock_open(&lock, number, "", -1);
	lock.shared = false;
	record->kind = 'x';
	sem_post(&job->board->ready);
	wait_for(&self->go);
	self->asked = record->asked = now_us();
	check(take(job, &lock), lock.file);
	record->granted = record->releasing = now_us();
	check(kind->release(&lock) == 0, "release");
	record->released = now_us();
	self->count = 1;
	sem_post(&job->board->ready);
	wait_for(&job->board->over);
}

static void hold_client(struct job *job, int number)
{
	struct lock lock;

	lock.shared = false;
	for (long i = 0; i < job->held_each; i++) {
		lock_open(&lock, number, "other", number * job->held_each + i);
		check(take(job, &lock), lock.file);
	}
	sem_post(&job->board->ready);
	wait_for(&job->client[number].go);
}

static void *map_shared(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	check(memory != MAP_FAILED, "mmap");
	return memory;
}

static void start_client(struct job *job, int number, void (*work)(struct job *job, int number))
{
	pid_t parent = getpid();
	pid_t child;

	sem_init(&job->client[number].go, 1, 0);
	child = fork();
	check(child >= 0, "fork");
	if (child > 0) {
		job->client[number].pid = child;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	work(job, number);
	_exit(0);
}

/* Waits until each client has said so. */
static void wait_until_ready(struct job *job)
{
	for (int i = 0; i < job->clients; i++) {
		struct timespec limit = {.tv_sec = time(NULL) + READY_LIMIT_S};

		/* A client that has failed has said why. */
		while (sem_timedwait(&job->board->ready, &limit) < 0)
			check(errno == EINTR, "a client is not ready");
	}
}

/* Starts the clients, which then wait for go. */
static void job_start(struct job *job, void (*work)(struct job *job, int number))
{
	job->board = map_shared(sizeof(*job->board));
	sem_init(&job->board->ready, 1, 0);
	sem_init(&job->board->over, 1, 0);
	job->client = map_shared((size_t)job->clients * sizeof(*job->client));
	job->records = map_shared((size_t)job->clients * job->cycles * sizeof(*job->records));
	for (int i = 0; i < job->clients; i++)
		start_client(job, i, work);
	wait_until_ready(job);
}

static void job_go(const struct job *job)
{
	for (int i = 0; i < job->clients; i++)
		sem_post(&job->client[i].go);
}

/* Waits for the end of the clients and writes their records. */
static void job_finish(struct job *job)
{
	for (int i = 0; i < job->clients; i++) {
		int status;

		check(waitpid(job->client[i].pid, &status, 0) > 0, "waitpid");
		if (status != 0)
			exit(1);
	}
	for (int i = 0; i < job->clients; i++) {
		for (long j = 0; j < job->client[i].count; j++)
			record_print(i, &job->records[(size_t)i * job->cycles + j]);
	}
	munmap(job->records, (size_t)job->clients * job->cycles * sizeof(*job->records));
	munmap(job->client, (size_t)job->clients * sizeof(*job->client));
	munmap(job->board, sizeof(*job->board));
	order_done();
}

static bool asleep(pid_t pid)
{
	char name[64], text[512], *end;
	size_t length;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	file = fopen(name, "r");
	check(file, name);
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = 0;
	end = strrchr(text, ')');
	check(end && end[2] != 'Z', "a client has ended");
	return end[2] == 'S';
}

/* Lets the clients ask, each after the one before it sleeps in its call. */
static void ask_in_turn(struct job *job)
{
	for (int i = 0; i < job->clients; i++) {
		struct client *client = &job->client[i];
		int64_t limit = now_us() + ASLEEP_LIMIT_US;

		sem_post(&client->go);
		while (!client->asked || !asleep(client->pid)) {
			check(now_us() < limit, "a client does not wait");
			sched_yield();
		}
		hold_for(job->apart_us);
	}
}

static void order_queue(struct job *job)
{
	struct lock first = {.shared = false};

	job->cycles = 1;
	lock_open(&first, file_count - 1, "", -1); /* another host than the first waiter's */
	check(kind->take(&first) >= 0, first.file);
	job_start(job, queue_client);
	ask_in_turn(job);
	hold_for(job->hold_us);
	check(kind->release(&first) == 0, "release");
	if (kind->stays_open)
		close(first.fd);
	wait_until_ready(job);
	for (int i = 0; i < job->clients; i++)
		sem_post(&job->board->over);
	job_finish(job);
}

static void order_hold(struct job *job, long count)
{
	job->cycles = 1;
	job->clients = count < 64 ? 1 : 64;
	job->held_each = (count + job->clients - 1) / job->clients;
	job_start(job, hold_client);
	order_done();
}

static void carry_out(const char *line)
{
	static struct job held;
	struct job job = {
		.clients = (int)order_number(line, "clients", 1),
		.cycles = order_number(line, "cycles", 1000),
		.own = order_number(line, "own", 0),
		.hold_us = order_number(line, "hold_us", 0),
		.apart_us = order_number(line, "apart_us", 0),
		.shared_percent = order_number(line, "shared", 0),
		.wait_ms = order_number(line, "wait_ms", 0),
	};

	if (order_is(line, "run")) {
		job_start(&job, run_client);
		job.board->end = now_us() + order_number(line, "seconds_ms", 1000) * 1000;
		job_go(&job);
		job_finish(&job);
	} else if (order_is(line, "queue")) {
		order_queue(&job);
	} else if (order_is(line, "hold")) {
		held = job;
		order_hold(&held, order_number(line, "count", 1));
	} else if (order_is(line, "drop")) {
		job_go(&held);
		job_finish(&held);
	} else {
		fprintf(stderr, "flock_clients: no such order: %s", line);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct rlimit descriptors;
	char line[256];

	for (size_t i = 0; argc > 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0)
			kind = &kinds[i];
	}
	if (!kind) {
		fprintf(stderr,
			"usage: flock_clients flock|open|excl|range|create|mkdir FILE...\n");
		return 2;
	}
	files = argv + 2;
	file_count = argc - 2;
	sigaction(SIGALRM, &action, NULL);
	getrlimit(RLIMIT_NOFILE, &descriptors);
	descriptors.rlim_cur = descriptors.rlim_max;
	setrlimit(RLIMIT_NOFILE, &descriptors);
	while (order_read(line, sizeof(line)))
		carry_out(line);
	return 0;
}
