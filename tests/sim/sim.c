/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulator: runs engines of several hosts on one service of claims through random schedules of
 * calls, delays, broken connections, expiries and crashes, on a virtual clock, and checks after
 * every step that what the engines promise is true. A schedule is a number, its seed; the same seed
 * gives the same schedule again. Usage:
 *
 *     sim [--seed N] [--seeds COUNT] [--steps N] [--until-failure] [--verbose]
 *         [--store zookeeper|etcd|redis] [--drift N] [--peers]
 *
 * The service is of that kind (faulty_rules); without the option it is a ZooKeeper.
 * The hosts' clocks run up to N ten-thousandths fast or slow, or 100 without the option. With
 * --peers hosts tell each other of releases in every schedule, and many want the same lock.
 *
 * After every step:
 *   - the engines' books do not contradict themselves (engine_check_invariants);
 *   - no two users of different hosts or of the same hold one lock in modes that conflict, nor does
 * a user while a foreign client's claim stands first; and nobody gets or holds one in a session
 * that the service has ended, or would have if it were as hasty as it may, whatever befell the
 * hosts;
 *   - who was just granted a lock has a claim that stands in the queue, and no claim in front of it
 * conflicts, but for those of its own host whose withdrawal is under way: mutual exclusion and
 * FIFO, as the service knows them; where claims go on from call to call, each host is one there,
 * and its own callers come in the order of their asking for a claim;
 *   - such a claim does not go on more often than it may, nor is it kept, while another host waits
 * behind it that its own knows of; and not for too long;
 *   - a call that does not wait is decided in time, and refused only if there was a reason;
 *   - nobody who waits is refused, but for the limit of waiting without the store;
 *   - nobody loses a lock on a host that has been well for a while; and there, whose claim somebody
 * takes away by hand soon hears of that;
 *   - who asks whether it still holds is told so only if there was a moment since the question when
 * it did, and its claims stood at the service; that it has lost, if it has; that it holds nothing,
 * if there was a moment when it did not; and all that once;
 *   - where the service tells that a claim has ended which nobody withdrew, its holder is told
 * before who waits behind it is granted the lock, if all is well with both hosts;
 *   - a token is greater than all that were told before to others for what conflicts, on whichever
 * host, and the same as the user's last one as long as nothing was granted to it since.
 *   - no host has a lock file, or is told to have made one, which does not
 * stand at the service, unless another has removed it; what is lost is told before another host can
 * make it, and what is left undone leaves nothing behind.
 *   - nobody is granted a lock on a host that drains who holds nothing of it.
 *   - nobody is granted a lock before its least time is over, nor holds it for longer than its
 * longest (world_term.c).
 * When the faults end: nobody waits for what is free, or for an answer, and claims do not give way
 * to each other for ever. When all holders let go: everybody has been decided, and no claim is
 * left.
 *
 * Each host has a clock of its own, up to 1 % fast or slow. A host that is paused cannot be asked
 * what it holds; what its users have is judged as soon as it goes on.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "world.h"

/* A host that holds sends something 64 times in a session timeout (lease.h). */
enum { CALM_STEPS_MAX = 60000 };

static const struct world *current; /* for who is called by abort() or the log */

/* In place of the daemon's: what engines report is part of what happens. */
static void print_message(const char *lock, const char *format, va_list arguments)
{
	if (current == NULL || !current->verbose)
		return;
	printf("%5ld %6lld  log: %s%s", current->step, (long long)current->now_ms, lock,
	       *lock != '\0' ? ": " : "");
	vprintf(format, arguments);
	printf("\n");
}

void log_hold(void)
{
}

void log_resume(void)
{
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_message("", format, arguments);
	va_end(arguments);
}

void log_write_lock(enum log_level level, const char *lock, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	print_message(lock, format, arguments);
	va_end(arguments);
}

/* The engine's invariants end the program; tell at least how to see it again. */
static void on_abort(int signal)
{
	if (current != NULL)
		dprintf(STDERR_FILENO, "sim: seed %llu step %ld: aborted\n",
			(unsigned long long)current->seed, current->step);
}

/* In worlds that are about hand-overs it is more often one who holds. */
static struct user *choose_user(struct world *world, struct host *host)
{
	struct user *user = &host->users[prng_below(&world->prng, USERS_MAX)];

	if (!world->telling || world->calm || !prng_chance(&world->prng, 40))
		return user;
	for (int i = 0; i < USERS_MAX; i++)
		if (host->users[i].owner != NULL && host->users[i].holds)
			user = &host->users[i];
	return user;
}

static void act(struct world *world)
{
	struct host *host = &world->hosts[prng_below(&world->prng, world->hosts_count)];

	for (int i = 0; i < world->hosts_count; i++)
		if (host_runs(&world->hosts[i]))
			engine_advance(world->hosts[i].engine, host_clock(&world->hosts[i]));
	if (world->quiet_ms > 0 || world->lull_ms > 0)
		return;
	if (!world->calm && prng_chance(&world->prng, world->fault_percent))
		world_misfortune(world);
	else if (host_runs(host))
		user_act(host, choose_user(world, host));
	else if (!world->calm && host->engine == NULL && prng_chance(&world->prng, 10))
		world_misfortune(world);
}

/* One step: what is due next happens, or before that somebody does something. */
static void step(struct world *world)
{
	int64_t due_ms = world_due(world);
	int64_t still_ms = world->quiet_ms > 0 ? world->quiet_ms : world->lull_ms;

	world->step++;
	view_forget(world);
	if (still_ms > 0 && due_ms > still_ms) {
		world->now_ms = still_ms;
		act(world);
	} else if (still_ms == 0 && (due_ms == INT64_MAX || prng_chance(&world->prng, 40))) {
		int64_t later_ms = world->now_ms + prng_below(&world->prng, 6);

		if (later_ms < due_ms)
			world->now_ms = later_ms;
		act(world);
	} else {
		if (due_ms > world->now_ms)
			world->now_ms = due_ms;
		world_happen(world);
	}
	files_act(world);
	world_drain(world);
	world_commit(world);
	world_note(world);
	check_step(world);
	check_files(world);
	check_peers(world);
	if (world->ready.life != 0 && !world->calm)
		users_hurry(world, world->ready);
	world->ready.life = 0;
	world_lull(world);
	if (world->quiet_ms > 0 && world->now_ms >= world->quiet_ms) {
		check_quiet(world);
		world->quiet_ms = 0;
	}
}

static bool is_over(const struct world *world)
{
	for (int i = 0; i < world->hosts_count; i++)
		for (int j = 0; j < USERS_MAX; j++)
			if (world->hosts[i].users[j].owner != NULL)
				return false;
	return world_is_idle(world) && files_are_over(world);
}

/* Runs one schedule. Returns whether all was well, and adds its length to *steps, and how many were
 * granted by a message of another host. */
static bool run(uint64_t seed, const struct faulty_rules *rules, int drift, bool peers, long length,
		bool verbose, long *steps, uint64_t *by_message)
{
	static struct world world; /* too big for the stack */

	current = &world;
	world_init(&world, seed, rules, drift, peers, verbose);
	while (!world.failed && world.step < length)
		step(&world);
	long calm_steps = world.late_numbers ? 5 * CALM_STEPS_MAX : CALM_STEPS_MAX;
	world_calm_down(&world);
	while (!world.failed && !is_over(&world) && world.step < length + calm_steps)
		step(&world);
	if (!world.failed)
		check_end(&world);
	if (!world.failed)
		check_files_end(&world);
	*steps += world.step;
	*by_message += world.granted_by_message;
	world.verbose = false;
	world_finish(&world);
	current = NULL;
	return !world.failed;
}

static bool parse_number(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-')
		return false;
	*ret = number;
	return true;
}

static bool parse_rules(const char *name, const struct faulty_rules **ret)
{
	static const struct faulty_rules *const all[] = {&faulty_zookeeper, &faulty_etcd,
							 &faulty_redis};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		*ret = all[i];
		if (strcmp(name, all[i]->name) == 0)
			return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", required_argument, NULL, 's'},
						{"seeds", required_argument, NULL, 'n'},
						{"steps", required_argument, NULL, 'l'},
						{"until-failure", no_argument, NULL, 'u'},
						{"verbose", no_argument, NULL, 'v'},
						{"store", required_argument, NULL, 'k'},
						{"drift", required_argument, NULL, 'd'},
						{"peers", no_argument, NULL, 'p'},
						{NULL, 0, NULL, 0}};
	const struct faulty_rules *rules = &faulty_zookeeper;
	uint64_t first = 1, count = 0, done, length = 300, drift = 100;
	bool one = false, until_failure = false, verbose = false, peers = false, good = true;
	long steps = 0, violations = 0;
	uint64_t by_message = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			good = parse_number(optarg, &first) && (one = true);
		else if (option == 'n')
			good = parse_number(optarg, &count);
		else if (option == 'l')
			good = parse_number(optarg, &length) && length <= 1000000000;
		else if (option == 'd')
			good = parse_number(optarg, &drift) && drift < 10000;
		else if (option == 'k')
			good = parse_rules(optarg, &rules);
		else if (option == 'p')
			peers = true;
		else if (option == 'u')
			until_failure = true;
		else if (option == 'v')
			verbose = true;
		if (option == '?' || !good) {
			fprintf(stderr, "usage: sim [--seed N] [--seeds COUNT] [--steps N] "
					"[--until-failure] [--verbose] "
					"[--store zookeeper|etcd|redis] [--drift N] [--peers]\n");
			return 2;
		}
	}
	if (count == 0)
		count = one ? 1 : 1500;
	setvbuf(stdout, NULL, _IOLBF, 0); /* so that nothing is missing before an abort */
	signal(SIGABRT, on_abort);
	for (done = 0; done < count && !(until_failure && violations > 0); done++)
		violations += !run(first + done, rules, (int)drift, peers, (long)length, verbose,
				   &steps, &by_message);
	printf("sim: %llu seeds, %ld steps, %llu granted by message, %ld violations\n",
	       (unsigned long long)done, steps, (unsigned long long)by_message, violations);
	return violations == 0 ? 0 : 1;
}
