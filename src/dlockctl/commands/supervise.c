/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread, one epoll: the locks' descriptors, a signalfd, which also reports that the command
 * has ended or stopped, and the clock of lease_clock.h. poll(2) would not do: it asks the daemon
 * about the lock each time anything happens, and hangs if the daemon hangs. epoll asks once, and
 * again only when the daemon reports a change.
 */
#include "dlockctl/commands/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dlockctl/commands/lease_clock.h"

#define GRACE_MS  5000
#define LINGER_MS 1000
#define LEAD_MS	  200

enum { EVENTS_MAX = 8 };

#define LOST "the lock is lost"

struct state {
	const struct supervised *what;
	pid_t parent, command; /* the command's process, and its group */
	sigset_t mask;	       /* as it was */
	int epoll, signals;
	int terminal; /* the controlling terminal, or -1 */
	bool lends;   /* the command's group may have the terminal */
	bool ended;
	int status;	/* of waitpid(2), once ended */
	bool signalled; /* a signal was passed on */
	bool lost;	/* the lock is lost, which was reported */
	bool ending;	/* the lock is lost, and the group has been told to end */
	long long kill_ms;
};

/* Signals that end programs go to the whole group, as from a terminal; the others have a meaning
 * for the command only, and would end its children. */
static const int group_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int command_signals[] = {SIGUSR1, SIGUSR2};

static bool has(const int *signals, size_t count, int number)
{
	for (size_t i = 0; i < count; i++) {
		if (signals[i] == number)
			return true;
	}
	return false;
}
#define HAS(signals, number) has(signals, sizeof(signals) / sizeof(*signals), number)

/*
 * The terminal
 */

static bool terminal_is_of(const struct state *state, pid_t group)
{
	return state->terminal >= 0 && tcgetpgrp(state->terminal) == group;
}

/* In a pipeline the other commands, which are in dlockctl's own group, need the terminal. */
static bool is_pipe(int fd)
{
	struct stat buffer;
	return fstat(fd, &buffer) == 0 && (S_ISFIFO(buffer.st_mode) || S_ISSOCK(buffer.st_mode));
}

/* SIGTTOU is blocked, so a group in the background may do this. */
static void give_terminal(const struct state *state, pid_t from, pid_t to)
{
	if (state->lends && terminal_is_of(state, from))
		tcsetpgrp(state->terminal, to);
}

/*
 * The lock
 */

static void signal_group(const struct state *state, int number)
{
	kill(-state->command, number);
}

static const size_t NO_LOCK = SIZE_MAX;

/* Which lock the descriptor is of; NO_LOCK: of none. */
static size_t lock_of(const struct state *state, int fd)
{
	for (size_t i = 0; i < state->what->count; i++) {
		if (state->what->locks[i] == fd)
			return i;
	}
	return NO_LOCK;
}

/* What a loss may come from is told; for sure, only the daemon's log knows. */
static void tell_lost(const struct supervised *what, size_t lock, const char *how, const char *deed)
{
	double held_s = (double)(now_ms() - what->taken_ms) / 1000;

	if (what->most_ms == 0)
		fail(0, "%s: %s; %s", what->names[lock], how, deed);
	else
		fail(0, "%s: %s, after %.1f s, where --max-hold is %g s; %s", what->names[lock],
		     how, held_s, (double)what->most_ms / 1000, deed);
}

/* All count as lost with one of them. */
static void on_lost(struct state *state, size_t lock, const char *how)
{
	static const char *const deeds[] = {
		[ACTION_TERM] = "the command is told to end",
		[ACTION_KILL] = "the command is killed",
		[ACTION_IGNORE] = "the command goes on, as --on-lost=ignore says",
	};
	enum action action = state->what->on_lost;

	for (size_t i = 0; i < state->what->count; i++)
		epoll_ctl(state->epoll, EPOLL_CTL_DEL, state->what->locks[i], NULL);
	state->lost = true;
	tell_lost(state->what, lock, how, deeds[action]);
	if (action == ACTION_IGNORE)
		return;
	state->ending = true;
	state->kill_ms = now_ms() + (action == ACTION_TERM ? GRACE_MS : 0);
	signal_group(state, action == ACTION_TERM ? SIGTERM : SIGKILL);
	signal_group(state, SIGCONT); /* if it is stopped */
}

static void on_revoke(struct state *state, size_t lock)
{
	/* The descriptor is asked once: the answer "ready" would come again and again. */
	int fd = state->what->locks[lock];
	struct epoll_event event = {.events = 0, .data.fd = fd};
	epoll_ctl(state->epoll, EPOLL_CTL_MOD, fd, &event);
	fail(0, "%s: somebody asks for the lock; %s", state->what->names[lock],
	     state->what->on_revoke == ACTION_TERM
		     ? "the command is told to end"
		     : "the command goes on, as --on-revoke=ignore says");
	if (state->what->on_revoke != ACTION_TERM)
		return;
	signal_group(state, SIGTERM);
	signal_group(state, SIGCONT); /* if it is stopped */
}

/*
 * The command
 */

/* The lock that is lost by now; NO_LOCK: none is. Waits no longer than that. */
static size_t find_lost(const struct state *state, int timeout_ms)
{
	struct epoll_event events[EVENTS_MAX];
	int count = epoll_wait(state->epoll, events, EVENTS_MAX, timeout_ms);
	for (int i = 0; i < count; i++) {
		size_t lock = lock_of(state, events[i].data.fd);
		if (lock != NO_LOCK && (events[i].events & (EPOLLERR | EPOLLHUP)) != 0)
			return lock;
	}
	return NO_LOCK;
}

/* The command has stopped because of the terminal: then the whole job, with dlockctl, stops, too.
 * The shell continues it with SIGCONT; in a group that no shell controls, SIGTSTP has no effect. */
static void stop_with_command(struct state *state)
{
	sigset_t stop;

	give_terminal(state, state->command, getpgrp());
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	kill(0, SIGTSTP);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	give_terminal(state, getpgrp(), state->command);
	/* A stopped dlockctl could not watch the lock. */
	size_t lost = state->ending ? NO_LOCK : find_lost(state, 0);
	if (lost != NO_LOCK)
		on_lost(state, lost, LOST);
	signal_group(state, SIGCONT);
}

static void on_child(struct state *state)
{
	int status;
	pid_t process;

	/* Other children are those that the command left behind: dlockctl is their reaper. */
	while ((process = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (process != state->command)
			continue;
		if (!WIFSTOPPED(status)) {
			state->ended = true;
			state->status = status;
		} else if (state->terminal >= 0 && WSTOPSIG(status) != SIGSTOP) {
			stop_with_command(state);
		}
	}
}

static void on_signals(struct state *state)
{
	struct signalfd_siginfo info;
	while (read(state->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		int number = (int)info.ssi_signo;
		if (number == SIGCHLD) {
			on_child(state);
		} else if (state->ended) {
			continue; /* its number may be another process's */
		} else if (number == SIGCONT) {
			give_terminal(state, getpgrp(), state->command);
			signal_group(state, SIGCONT);
		} else if (number == SIGTSTP) {
			signal_group(state, SIGTSTP); /* dlockctl follows: on_child() */
		} else if (HAS(group_signals, number)) {
			state->signalled = true;
			signal_group(state, number);
			signal_group(state, SIGCONT);
		} else {
			state->signalled = true;
			kill(state->command, number);
		}
	}
}

static void run_command(const struct state *state)
{
	setpgid(0, 0);
	give_terminal(state, getpgid(state->parent), getpid());
	/* When dlockctl ends, the lock is released and nobody watches it: the kernel then kills the
	 * command. */
	if (state->what->on_lost != ACTION_IGNORE)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != state->parent)
		_exit(EXIT_LOST);
	sigprocmask(SIG_SETMASK, &state->mask, NULL);
	execvp(state->what->command[0], state->what->command);
	int error = errno;
	fail(0, "%s: %s; expected a command that can be executed", state->what->command[0],
	     strerror(error));
	_exit(error == ENOMEM ? EX_OSERR : EX_UNAVAILABLE);
}

static int start(struct state *state)
{
	state->parent = getpid();
	state->command = fork();
	if (state->command < 0)
		return -errno;
	if (state->command == 0)
		run_command(state);
	/* Parent and child both do this, as neither knows which is first. */
	setpgid(state->command, state->command);
	give_terminal(state, getpgrp(), state->command);
	return 0;
}

/*
 * From the beginning to the end
 */

static int watch(const struct state *state, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};
	return epoll_ctl(state->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static int prepare(struct state *state)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(group_signals) / sizeof(*group_signals); i++)
		sigaddset(&set, group_signals[i]);
	for (size_t i = 0; i < sizeof(command_signals) / sizeof(*command_signals); i++)
		sigaddset(&set, command_signals[i]);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGTSTP);
	state->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (state->signals < 0)
		return -errno;
	sigaddset(&set, SIGTTOU);
	sigprocmask(SIG_BLOCK, &set, &state->mask);
	signal(SIGCHLD, SIG_DFL); /* if it were ignored, the command's end would not be reported */
	state->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (state->epoll < 0)
		return -errno;
	/* Processes that the command leaves behind stay below this process, which so learns of
	 * their end. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	state->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	state->lends = !is_pipe(STDIN_FILENO) && !is_pipe(STDOUT_FILENO);
	int error = watch(state, state->signals, EPOLLIN);
	for (size_t i = 0; error == 0 && i < state->what->count; i++)
		error = watch(state, state->what->locks[i], EPOLLPRI);
	return error;
}

static void finish(struct state *state)
{
	int descriptors[] = {state->signals, state->epoll, state->terminal};
	for (size_t i = 0; i < sizeof(descriptors) / sizeof(*descriptors); i++) {
		if (descriptors[i] >= 0)
			close(descriptors[i]);
	}
}

static void on_lock(struct state *state, size_t lock, uint32_t events)
{
	if (state->lost)
		return;
	if ((events & (EPOLLERR | EPOLLHUP)) != 0)
		on_lost(state, lock, LOST);
	else if ((events & EPOLLPRI) != 0)
		on_revoke(state, lock);
}

/* Whether any process of the group is left. */
static bool group_lives(const struct state *state)
{
	return kill(-state->command, 0) == 0 || errno != ESRCH;
}

static bool is_over(const struct state *state)
{
	/* A member that was killed stays as long as its parent does not wait for it. */
	bool waits = state->ending && group_lives(state) && now_ms() < state->kill_ms + LINGER_MS;
	return state->ended && !waits;
}

static void look_at_clock(struct state *state)
{
	if (!state->lost && lease_clock_is_over())
		on_lost(state, 0, "the daemon has not answered before the lease ended: " LOST);
}

static void loop(struct state *state)
{
	struct epoll_event events[EVENTS_MAX];

	while (!is_over(state)) {
		look_at_clock(state);
		long long left_ms = state->kill_ms - now_ms();
		int timeout_ms = !state->ending ? -1 : left_ms > 0 ? (int)left_ms : 100;
		if (!state->lost)
			timeout_ms = lease_clock_left_ms();
		if (state->ending && left_ms <= 0)
			signal_group(state, SIGKILL);
		int count = epoll_wait(state->epoll, events, EVENTS_MAX, timeout_ms);
		/* The lock comes first: a command that ended while the lock was lost counts as
		 * ended by the loss. */
		for (int i = 0; i < count; i++) {
			size_t lock = lock_of(state, events[i].data.fd);
			if (lock != NO_LOCK)
				on_lock(state, lock, events[i].events);
		}
		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == state->signals)
				on_signals(state);
		}
	}
}

/* Ctrl-C is for the whole job, but only the command's group got it. If it ended the command, the
 * rest of the job gets it, and dlockctl itself ends by it: a shell that runs a script expects that.
 */
static void pass_on_interrupt(const struct state *state, bool had_terminal)
{
	int number = WIFSIGNALED(state->status) ? WTERMSIG(state->status) : 0;
	sigset_t set;

	if (!had_terminal || (number != SIGINT && number != SIGQUIT))
		return;
	prctl(PR_SET_DUMPABLE, 0); /* no core file of dlockctl */
	kill(0, number);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* The lock for whose loss the command ended: by the daemon's on_lost, whose signal comes a moment
 * before the descriptor reports the loss. NO_LOCK: none is lost. */
static size_t find_cause(const struct state *state)
{
	if (!state->signalled)
		return find_lost(state, 0);
	epoll_ctl(state->epoll, EPOLL_CTL_DEL, state->signals, NULL);
	size_t lost = find_lost(state, LEAD_MS);
	watch(state, state->signals, EPOLLIN);
	return lost;
}

int supervise(const struct supervised *supervised)
{
	struct state state = {.what = supervised, .epoll = -1, .signals = -1, .terminal = -1};

	lease_clock_ask(supervised->locks, supervised->count);
	int error = prepare(&state);
	if (error == 0)
		error = start(&state);
	if (error == 0)
		lease_clock_start();
	if (error != 0) {
		finish(&state);
		return fail(EX_OSERR, "%s: cannot be started: %s; end other programs",
			    supervised->command[0], strerror(-error));
	}
	loop(&state);
	size_t cause = state.ending ? NO_LOCK : find_cause(&state);
	if (cause != NO_LOCK) {
		on_lost(&state, cause, LOST);
		loop(&state);
	}
	bool had_terminal = terminal_is_of(&state, state.command);
	give_terminal(&state, state.command, getpgrp());
	finish(&state);
	if (state.ending)
		return EXIT_LOST;
	pass_on_interrupt(&state, had_terminal);
	return WIFSIGNALED(state.status) ? 128 + WTERMSIG(state.status) : WEXITSTATUS(state.status);
}
