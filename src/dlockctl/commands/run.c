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
#include <sys/time.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/commands/supervise.h"
#include "dlockctl/commands/waiting.h"
#include "dlockctl/descriptor.h"
#include "dlockctl/inside.h"
#include "dlockctl/look.h"
#include "dlockctl/mount.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

/* The interval of the timer, which repeats in case the first signal comes right before flock(2) is
 * called. */
#define TICK_US 20000

struct run {
	bool shared, verbose;
	long long wait_ms; /* -1: for ever */
	int conflict_status;
	enum action on_lost, on_revoke;
};

enum { OPTION_ON_LOST = OPTION_OWN, OPTION_ON_REVOKE };

static const struct option long_options[] = {
	{"exclusive", no_argument, NULL, 'x'},
	{"shared", no_argument, NULL, 's'},
	{"nonblock", no_argument, NULL, 'n'},
	{"nb", no_argument, NULL, 'n'},
	{"wait", required_argument, NULL, 'w'},
	{"timeout", required_argument, NULL, 'w'},
	{"conflict-exit-code", required_argument, NULL, 'E'},
	{"verbose", no_argument, NULL, 'v'},
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
	case OPTION_ON_LOST:
		return parse_action("--on-lost", optarg, true, &run->on_lost);
	case OPTION_ON_REVOKE:
		return parse_action("--on-revoke", optarg, false, &run->on_revoke);
	default:
		return common_option(context, letter, argv);
	}
}

/* Makes missing directories: they are of this host only, so one that other hosts use may be missing
 * here. */
static void make_parents(const struct place *place)
{
	const char *slash = place->name;

	for (; (slash = strchr(slash, '/')) != NULL; slash++) {
		char *above = must(strndup(place->name, (size_t)(slash - place->name)));
		inside_make_directory(place->mount, above, 0777);
		free(above);
	}
}

/* A lock in use on this host is a file of the mount, and has nothing below it. */
static int fail_below_file(const struct place *place)
{
	size_t bytes = 0;
	int directory;

	do {
		bytes += strcspn(place->name + bytes + 1, "/") + 1;
		char *above = must(strndup(place->name, bytes));
		directory = inside_open(place->mount, above, O_PATH | O_DIRECTORY, 0);
		if (directory >= 0)
			close(directory);
		free(above);
	} while (place->name[bytes] != '\0' && directory >= 0);
	return fail(EX_NOINPUT,
		    "%s: %.*s is a lock in use on this host, and nothing can be below it; expected "
		    "another name",
		    place->name, (int)bytes, place->name);
}

static int open_failed(const struct place *place, int error)
{
	int status = status_of_errno(error);
	if (error == ENOTDIR)
		return fail_below_file(place);
	if (error == EISDIR)
		return fail(EX_NOINPUT,
			    "%s: is a directory, whose lock would be of this host only; expected "
			    "another name",
			    place->name);
	if (error == ELOOP || error == EXDEV)
		return fail(EX_NOINPUT,
			    "%s: a symbolic link, or another mount, is on the way, and may lead "
			    "anywhere; expected the name of a lock",
			    place->name);
	if (status == EXIT_NO_MOUNT)
		return fail(status, "%s: the mount is dead: %s; start dlockfs again", place->mount,
			    strerror(error));
	if (error == EROFS || error == ENOSPC)
		status = EX_CANTCREAT;
	else if (status != EX_NOPERM && status != EX_OSERR)
		status = EX_NOINPUT;
	return fail(status, "%s: cannot be opened: %s; expected the name of a lock", place->name,
		    strerror(error));
}

/* Opens the file of the lock. Returns 0, or tells the error and returns the status. */
static int open_lock(const struct place *place, int *ret_fd)
{
	const int flags = O_RDONLY | O_CREAT | O_NOCTTY;
	int fd = inside_open(place->mount, place->name, flags, 0666);
	if (fd == -ENOENT) {
		make_parents(place);
		fd = inside_open(place->mount, place->name, flags, 0666);
	}
	if (fd < 0)
		return open_failed(place, -fd);
	*ret_fd = fd;
	return 0;
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
static int lock(int fd, const struct run *run)
{
	int operation = (run->shared ? LOCK_SH : LOCK_EX) | (run->wait_ms == 0 ? LOCK_NB : 0);
	int error;

	if (run->wait_ms > 0)
		start_timer(run->wait_ms);
	do
		error = flock(fd, operation) == 0 ? 0 : errno;
	while (error == EINTR && !time_is_over);
	if (run->wait_ms > 0)
		stop_timer();
	return error == EINTR ? EWOULDBLOCK : error;
}

static int lock_failed(const struct place *place, const struct run *run, int error)
{
	if (error == EWOULDBLOCK && !run->verbose)
		return run->conflict_status;
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

/* Returns -1 if the lock is taken; or the status to end with, which may be 0 with -E 0. */
static int take_lock(const struct place *place, const struct run *run, int fd,
		     struct waiting *waiting)
{
	long long begin_ms = now_ms();

	waiting_init(waiting, place, getpid());
	if (run->verbose && run->wait_ms != 0 && place_has_queue(place))
		waiting_start(waiting);
	int error = lock(fd, run);
	waiting_stop(waiting);
	if (error != 0)
		return lock_failed(place, run, error);
	if (run->verbose)
		fail(0, "%s: locked after %.3f s", place->name,
		     (double)(now_ms() - begin_ms) / 1000);
	return -1;
}

static void set_number(const char *variable, uint64_t number)
{
	char *digits = must_format("%" PRIu64, number);
	if (setenv(variable, digits, 1) != 0)
		must(NULL);
	free(digits);
}

static int set_environment(const struct place *place, int fd)
{
	uint64_t token, slot;
	int error = descriptor_token(fd, &token);
	if (error != 0)
		return descriptor_fail(place->name, error);
	set_number("DLOCK_TOKEN", token);
	if (setenv("DLOCK_NAME", place->name, 1) != 0)
		must(NULL);
	unsetenv("DLOCK_SLOT"); /* that of a lock around this one */
	error = descriptor_slot(fd, &slot);
	if (error == 0)
		set_number("DLOCK_SLOT", slot);
	return error == 0 || error == -ENODATA ? 0 : descriptor_fail(place->name, error);
}

static int run_locked(const struct place *place, const struct run *run, char **command)
{
	static struct waiting waiting; /* static: its thread may run until the program ends */
	int fd = -1;

	if (!look_answers(place->mount))
		return tree_fail(place->mount, place->name, LOOK_NO_ANSWER);
	int status = open_lock(place, &fd);
	if (status != 0)
		return status;
	status = take_lock(place, run, fd, &waiting);
	bool locked = status < 0;
	if (locked)
		status = set_environment(place, fd);
	if (locked && status == 0) {
		char *name = text_printable(place->name);
		const struct supervised supervised = {
			.lock = fd,
			.name = name,
			.on_lost = run->on_lost,
			.on_revoke = run->on_revoke,
			.command = command,
		};
		status = supervise(&supervised);
		free(name);
	}
	close(fd);
	return status;
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

int command_run(struct context *context, int argc, char **argv)
{
	static struct place place; /* for the thread, too */
	struct run run = {.wait_ms = -1, .conflict_status = EXIT_NO};
	int letter, status = -1;

	while (status < 0 &&
	       (letter = getopt_long(argc, argv, "+:xesnw:E:vh", long_options, NULL)) != -1)
		status = parse_option(&run, context, letter, argv);
	if (status < 0)
		status = check_words(context, argc, argv, 2, argc);
	if (status >= 0)
		return status;
	char *shell[4];
	char **command = find_command(argv + optind, shell);
	if (command == NULL)
		return EX_USAGE;
	status = place_find(context, argv[optind], &place);
	if (status == 0)
		status = run_locked(&place, &run, command);
	return status;
}
