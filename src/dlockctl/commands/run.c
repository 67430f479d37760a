/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl run: takes a lock as flock(1) does, and runs a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <paths.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/commands/once.h"
#include "dlockctl/commands/opening.h"
#include "dlockctl/commands/supervise.h"
#include "dlockctl/commands/waiting.h"
#include "dlockctl/descriptor.h"
#include "dlockctl/look.h"
#include "dlockctl/mount.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"
#include "dlockfs.h"

/* The interval of the timer, which repeats in case the first signal comes right before flock(2) is
 * called. */
#define TICK_US 20000

/* How many names --also may add. */
#define ALSO_MAX 15

/* One of the locks. */
struct held {
	struct place place;
	char *name;	    /* printable */
	const char *number; /* behind the names of its variables in the environment */
	int fd;
	uint64_t token;
	bool is_slot; /* others may hold it, too */
	struct waiting waiting;
};

struct run {
	const char *also[ALSO_MAX];
	size_t also_count;
	bool shared, verbose;
	long long wait_ms;	     /* -1: for ever */
	int conflict_status;	     /* -1: not set */
	long long least_ms, most_ms; /* --min-hold, --max-hold; 0: not set */
	long long taken_ms;	     /* when all were taken, by now_ms() */
	enum action on_lost, on_revoke;
	struct once once;
};

enum {
	OPTION_ON_LOST = OPTION_OWN,
	OPTION_ON_REVOKE,
	OPTION_ONCE,
	OPTION_EVERY,
	OPTION_ALSO,
	OPTION_MIN_HOLD,
	OPTION_MAX_HOLD,
};

static const struct option long_options[] = {
	{"exclusive", no_argument, NULL, 'x'},
	{"shared", no_argument, NULL, 's'},
	{"nonblock", no_argument, NULL, 'n'},
	{"nb", no_argument, NULL, 'n'},
	{"wait", required_argument, NULL, 'w'},
	{"timeout", required_argument, NULL, 'w'},
	{"conflict-exit-code", required_argument, NULL, 'E'},
	{"verbose", no_argument, NULL, 'v'},
	{"quiet", no_argument, NULL, 'q'},
	{"once", required_argument, NULL, OPTION_ONCE},
	{"every", required_argument, NULL, OPTION_EVERY},
	{"also", required_argument, NULL, OPTION_ALSO},
	{"min-hold", required_argument, NULL, OPTION_MIN_HOLD},
	{"max-hold", required_argument, NULL, OPTION_MAX_HOLD},
	{"on-lost", required_argument, NULL, OPTION_ON_LOST},
	{"on-revoke", required_argument, NULL, OPTION_ON_REVOKE},
	COMMON_OPTIONS};

static volatile sig_atomic_t time_is_over;

static void on_alarm(int number)
{
	(void)number;
	time_is_over = 1;
}

static int parse_action(const char *option, const char *word, bool may_kill, enum action *ret)
{
	if (strcmp(word, "term") == 0)
		*ret = ACTION_TERM;
	else if (strcmp(word, "ignore") == 0)
		*ret = ACTION_IGNORE;
	else if (may_kill && strcmp(word, "kill") == 0)
		*ret = ACTION_KILL;
	else
		return fail(EX_USAGE, "%s %s: no such action; expected term%s or ignore", option,
			    word, may_kill ? ", kill" : "");
	return -1;
}

/* The time of --min-hold or --max-hold. */
static int parse_hold(const char *option, long long most_ms, const char *most, long long *ret_ms)
{
	if (parse_time(optarg, most_ms, ret_ms))
		return -1;
	return fail(EX_USAGE,
		    "%s %s: is no such time; expected up to %s, such as 90s, 5m, 1h or 1d", option,
		    optarg, most);
}

static int parse_option(struct run *run, struct context *context, int letter, char **argv)
{
	long long number;

	switch (letter) {
	case 'x':
	case 'e':
		run->shared = false;
		return -1;
	case 's':
		run->shared = true;
		return -1;
	case 'n':
		run->wait_ms = 0;
		return -1;
	case 'v':
		run->verbose = true;
		return -1;
	case 'w':
		if (parse_seconds(optarg, &run->wait_ms))
			return -1;
		return fail(EX_USAGE, "-w %s: is no time; expected seconds, such as 2.5", optarg);
	case 'E':
		if (!parse_number(optarg, 0, 255, &number))
			return fail(EX_USAGE,
				    "-E %s: is no exit status; expected a number from 0 to 255",
				    optarg);
		run->conflict_status = (int)number;
		return -1;
	case 'q':
		run->once.quiet = true;
		return -1;
	case OPTION_ALSO:
		if (run->also_count == ALSO_MAX)
			return fail(EX_USAGE, "--also %s: is one too many; expected up to %d",
				    optarg, ALSO_MAX);
		run->also[run->also_count++] = optarg;
		return -1;
	case OPTION_ONCE:
		return once_set_key(&run->once, optarg);
	case OPTION_EVERY:
		return once_set_period(&run->once, optarg);
	case OPTION_MIN_HOLD:
		return parse_hold("--min-hold", DLOCKFS_LEAST_MAX_MS, "1d", &run->least_ms);
	case OPTION_MAX_HOLD:
		return parse_hold("--max-hold", DLOCKFS_MOST_MAX_MS, "30d", &run->most_ms);
	case OPTION_ON_LOST:
		return parse_action("--on-lost", optarg, true, &run->on_lost);
	case OPTION_ON_REVOKE:
		return parse_action("--on-revoke", optarg, false, &run->on_revoke);
	default:
		return common_option(context, letter, argv);
	}
}

static void start_timer(long long ms)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval timer = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000},
		.it_interval = {.tv_usec = TICK_US},
	};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void stop_timer(void)
{
	const struct itimerval none = {0};
	setitimer(ITIMER_REAL, &none, NULL);
	signal(SIGALRM, SIG_DFL);
}

/* Returns 0 or an errno; EWOULDBLOCK also after the time limit. */
static int lock(int fd, bool shared, long long wait_ms)
{
	int operation = (shared ? LOCK_SH : LOCK_EX) | (wait_ms == 0 ? LOCK_NB : 0);
	int error;

	if (wait_ms > 0)
		start_timer(wait_ms);
	do
		error = flock(fd, operation) == 0 ? 0 : errno;
	while (error == EINTR && !time_is_over);
	if (wait_ms > 0)
		stop_timer();
	return error == EINTR ? EWOULDBLOCK : error;
}

static int lock_failed(const struct place *place, const struct run *run, int error)
{
	if (error == EWOULDBLOCK && once_is_asked(&run->once))
		return once_skip(&run->once, run->conflict_status);
	if (error == EWOULDBLOCK && !run->verbose && !isatty(STDERR_FILENO))
		return run->conflict_status; /* as flock(1) */
	if (error == EWOULDBLOCK)
		return fail(run->conflict_status, "%s: others hold it%s; see: dlockctl show %s",
			    place->name, run->wait_ms > 0 ? " still" : "", place->name);
	if (error == ENOLCK)
		return fail(EX_OSERR,
			    "%s: the store could not be reached in time; see: dlockctl doctor",
			    place->name);
	if (error == EINVAL && run->shared)
		return fail(EX_DATAERR,
			    "%s: with slots there are no shared locks; expected it without -s",
			    place->name);
	int status = status_of_errno(error);
	return fail(status == EXIT_NO_MOUNT || status == EX_OSERR ? status : EX_DATAERR,
		    "%s: cannot be locked: %s; see: dlockctl doctor", place->name, strerror(error));
}

/* What is left of the time to wait, which began then; -1: for ever. */
static long long left_ms(const struct run *run, long long begin_ms)
{
	long long left = begin_ms + run->wait_ms - now_ms();

	if (run->wait_ms <= 0)
		return run->wait_ms;
	return left > 0 ? left : 0;
}

/* Returns -1 if the lock is taken; or the status to end with, which may be 0 with -E 0. */
static int take_lock(struct held *held, const struct run *run, long long begin_ms)
{
	const struct place *place = &held->place;

	waiting_init(&held->waiting, place, getpid());
	if (run->verbose && run->wait_ms != 0 && place_has_queue(place))
		waiting_start(&held->waiting);
	int error = lock(held->fd, run->shared, left_ms(run, begin_ms));
	waiting_stop(&held->waiting);
	if (error != 0)
		return lock_failed(place, run, error);
	if (run->verbose)
		fail(0, "%s: locked after %.3f s", place->name,
		     (double)(now_ms() - begin_ms) / 1000);
	return -1;
}

static int compare_names(const void *a, const void *b)
{
	const struct held *const *first = a, *const *second = b;

	return strcmp((*first)->place.name, (*second)->place.name);
}

/* Takes all of them, or returns the status to end with, as take_lock(). They are taken in the order
 * of their names, on every host: so two that want some of the same never wait for each other. */
static int take_locks(struct held *locks, size_t count, const struct run *run)
{
	struct held *in_order[ALSO_MAX + 1] = {NULL};
	long long begin_ms = now_ms();
	int status = -1;

	for (size_t i = 0; i < count; i++)
		in_order[i] = &locks[i];
	qsort(in_order, count, sizeof(*in_order), compare_names);
	for (size_t i = 0; i < count && status < 0; i++)
		status = take_lock(in_order[i], run, begin_ms);
	return status;
}

static void set_variable(const char *name, const char *number, const char *value)
{
	char *variable = must_format("%s%s", name, number);

	if (setenv(variable, value, 1) != 0)
		must(NULL);
	free(variable);
}

static void set_number(const char *name, const char *number, uint64_t value)
{
	char *digits = must_format("%" PRIu64, value);

	set_variable(name, number, digits);
	free(digits);
}

/* The slot is told only where several may hold the lock. */
static int set_environment(struct held *held)
{
	char *slot_name = must_format("DLOCK_SLOT%s", held->number);
	uint64_t slot;
	int error = descriptor_token(held->fd, &held->token);

	unsetenv(slot_name); /* that of a lock around this one */
	free(slot_name);
	if (error != 0)
		return descriptor_fail(held->place.name, error);
	set_number("DLOCK_TOKEN", held->number, held->token);
	set_variable("DLOCK_NAME", held->number, held->place.name);
	error = descriptor_slot(held->fd, &slot);
	held->is_slot = error == 0;
	if (error == 0)
		set_number("DLOCK_SLOT", held->number, slot);
	return error == 0 || error == -ENODATA ? 0 : descriptor_fail(held->place.name, error);
}

/* Runs the command under the locks, which are held. Returns the status. */
static int run_command(struct held *locks, size_t count, struct run *run, char **command)
{
	static int descriptors[ALSO_MAX + 1]; /* for the thread that asks for the lease */
	const char *names[ALSO_MAX + 1];
	bool is_once = once_is_asked(&run->once);
	int status = 0;

	for (size_t i = 0; i < count && status == 0; i++) {
		status = set_environment(&locks[i]);
		descriptors[i] = locks[i].fd;
		names[i] = locks[i].name;
	}
	if (status != 0)
		return status;
	if (is_once && locks->is_slot)
		return fail(EX_USAGE,
			    "%s: several may hold it at a time; expected a lock without slots, for "
			    "--once and --every",
			    locks->name);
	status =
		is_once ? once_begin(&run->once, locks->name, locks->fd, run->conflict_status) : -1;
	if (status >= 0)
		return status;
	const struct supervised supervised = {
		.locks = descriptors,
		.count = count,
		.names = names,
		.on_lost = run->on_lost,
		.on_revoke = run->on_revoke,
		.most_ms = run->most_ms,
		.taken_ms = run->taken_ms,
		.command = command,
	};
	status = supervise(&supervised);
	return is_once ? once_end(&run->once, locks->name, locks->fd, locks->token, status)
		       : status;
}

/* Whether the file is that of one of the first locks, by another name or by the same. */
static bool is_there(const struct held *locks, size_t count, int fd)
{
	struct stat one, other;

	for (size_t i = 0; i < count; i++) {
		if (fstat(fd, &one) == 0 && fstat(locks[i].fd, &other) == 0 &&
		    one.st_dev == other.st_dev && one.st_ino == other.st_ino)
			return true;
	}
	return false;
}

/* Says for how long the lock is to be held, before it is asked for. Returns 0, or tells the error
 * and returns the status. */
static int set_term(const struct held *held, const struct run *run)
{
	if (run->least_ms == 0 && run->most_ms == 0)
		return 0;
	int error = descriptor_set_term(held->fd, run->least_ms, run->most_ms);
	if (error == -ENOTTY)
		return fail(EX_UNAVAILABLE,
			    "%s: the daemon is older than dlockctl, and knows no --min-hold and no "
			    "--max-hold; restart it",
			    held->name);
	return error == 0 ? 0 : descriptor_fail(held->name, error);
}

/* Opens the files of all locks, whose mount answers. Returns 0, or tells the error and returns the
 * status. */
static int open_locks(struct held *locks, size_t count, const struct run *run)
{
	for (size_t i = 0; i < count; i++) {
		int status = opening_lock(&locks[i].place, &locks[i].fd);
		if (status != 0)
			return status;
		if (is_there(locks, i, locks[i].fd))
			return fail(EX_USAGE, "--also %s: is named twice; expected another lock",
				    locks[i].place.name);
		status = set_term(&locks[i], run);
		if (status != 0)
			return status;
	}
	return 0;
}

static int run_locked(struct held *locks, size_t count, struct run *run, char **command)
{
	const struct place *place = &locks->place;

	if (!look_answers(place->mount))
		return tree_fail(place->mount, place->name, LOOK_NO_ANSWER);
	int status = open_locks(locks, count, run);
	if (status != 0)
		return status;
	status = once_look(&run->once, locks->name, locks->fd, run->conflict_status);
	if (status < 0)
		status = take_locks(locks, count, run);
	run->taken_ms = now_ms();
	if (status < 0)
		status = run_command(locks, count, run, command);
	for (size_t i = 0; i < count; i++)
		close(locks[i].fd);
	return status;
}

/* Finds the locks: the first is that of `name`. Returns 0, or tells the error and returns the
 * status. */
static int find_locks(const struct context *context, const struct run *run, const char *name,
		      struct held *locks)
{
	for (size_t i = 0; i <= run->also_count; i++) {
		struct held *held = &locks[i];
		int status = place_find(context, i == 0 ? name : run->also[i - 1], &held->place);

		if (status != 0)
			return status;
		held->name = text_printable(held->place.name);
		held->number = i == 0 ? "" : must_format("_%zu", i);
		if (strcmp(held->place.mount, locks->place.mount) != 0)
			return fail(EX_USAGE, "--also %s: is in another mount; expected one of %s",
				    held->name, locks->place.mount);
	}
	return 0;
}

/* The command behind the name: as it stands there, or one line for the shell, as flock(1) has it,
 * then in `shell`. NULL: neither, which has been reported. */
static char **find_command(char **words, char *shell[4])
{
	const char *name = words[0], *program = getenv("SHELL");
	char **command = words + 1;

	if (strcmp(command[0], "-c") == 0 || strcmp(command[0], "--command") == 0) {
		if (command[1] == NULL || command[2] != NULL) {
			fail(EX_USAGE,
			     "run: %s: has %s; expected one, as in: dlockctl run %s -c \"COMMAND "
			     "ARGUMENT...\"",
			     command[0], command[1] == NULL ? "no argument" : "several arguments",
			     name);
			return NULL;
		}
		shell[0] = program != NULL && program[0] != '\0' ? (char *)program : _PATH_BSHELL;
		shell[1] = "-c";
		shell[2] = command[1];
		shell[3] = NULL;
		return shell;
	}
	if (strcmp(command[0], "--") == 0)
		command++;
	if (command[0] == NULL) {
		fail(EX_USAGE, "run: a command is missing; expected: dlockctl run %s COMMAND",
		     name);
		return NULL;
	}
	return command;
}

/* What the options say together. Returns -1, or the status to end with. */
static int check_options(struct run *run)
{
	if (run->once.key != NULL && run->once.every_ms > 0)
		return fail(EX_USAGE, "--once, --every: expected one of them");
	if (run->shared && once_is_asked(&run->once))
		return fail(EX_USAGE, "--shared: several would run at a time; expected --once or "
				      "--every without it");
	if (run->conflict_status < 0)
		run->conflict_status = once_is_asked(&run->once) ? 0 : EXIT_NO;
	return -1;
}

int command_run(struct context *context, int argc, char **argv)
{
	static struct held locks[ALSO_MAX + 1]; /* for the threads, too */
	struct run run = {.wait_ms = -1, .conflict_status = -1};
	int letter, status = -1;

	while (status < 0 &&
	       (letter = getopt_long(argc, argv, "+:xesnw:E:vqh", long_options, NULL)) != -1)
		status = parse_option(&run, context, letter, argv);
	if (status < 0)
		status = check_words(context, argc, argv, 2, argc);
	if (status >= 0)
		return status;
	status = check_options(&run);
	if (status >= 0)
		return status;
	char *shell[4];
	char **command = find_command(argv + optind, shell);
	if (command == NULL)
		return EX_USAGE;
	status = find_locks(context, &run, argv[optind], locks);
	if (status == 0)
		status = run_locked(locks, run.also_count + 1, &run, command);
	return status;
}
