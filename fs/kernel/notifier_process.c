/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the descriptors of the guard and of the writer.
 */
#include "kernel/notifier_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/platform.h"
#include "journal/journal.h"
#include "kernel/lease_board.h"
#include "kernel/lease_watch.h"
#include "kernel/mount_point.h"
#include "kernel/notifier.h"
#include "kernel/own_program.h"
#include "kernel/process_start.h"
#include "kernel/request.h"
#include "kernel/warden.h"

#define NAME "dlockfs-notifier"

/* argv[0], for `ps`; the descriptor of the journal, or -1; the daemon's process id, and when it
 * started; whether the guard unmounts, or leaves that to others; the mount's device, or 0; the
 * mount point.
 */
enum {
	ARGUMENT_NAME,
	ARGUMENT_JOURNAL,
	ARGUMENT_DAEMON,
	ARGUMENT_START,
	ARGUMENT_UNMOUNTS,
	ARGUMENT_DEVICE,
	ARGUMENT_MOUNTPOINT,
	ARGUMENTS
};

#define UNMOUNTS "unmounts"

/* How often the guard looks whether another daemon may still go on with the mount. */
#define LOOK_MS 1000

/* How long a daemon that was killed may take from the end of its descriptors to its own. */
#define DYING_LIMIT_MS 1000

/* How long the daemon waits for a process that is about to end. */
#define REAP_LIMIT_MS 100

/* The descriptors of writer and guard. The journal, which only the guard uses, has a number above
 * these. */
enum { SOCKET, CONNECTION, SHARED, BOARD, WAKE, DESCRIPTORS };

/* The writer begins with a message, or the daemon takes the message back: whichever comes first.
 */
enum { TURN_ANYBODYS, TURN_WRITERS, TURN_DAEMONS };

static bool take_turn(atomic_int *turn, int whose)
{
	int before = TURN_ANYBODYS;
	return atomic_compare_exchange_strong(turn, &before, whose);
}

/* Returns NULL with errno. */
static atomic_int *map_turn(int shared)
{
	void *memory =
		mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
	return memory != MAP_FAILED ? memory : NULL;
}

/* The processes */

static _Noreturn void run_writer(pid_t guard)
{
	char message[NOTIFIER_MESSAGE_BYTES];
	atomic_int *turn = map_turn(SHARED);
	ssize_t length;

	if (turn == NULL)
		_exit(EXIT_FAILURE);
	prctl(PR_SET_NAME, "dlockfs-writer");
	/* The writer ends with the guard, so that the daemon learns of the end of either. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == guard && (length = recv(SOCKET, message, sizeof(message), 0)) > 0) {
		if (take_turn(turn, TURN_WRITERS)) {
			/* ENOENT: the kernel has forgotten the name by itself. */
			ssize_t written = write(CONNECTION, message, (size_t)length);
			(void)written;
		}
		send(SOCKET, "", 1, MSG_NOSIGNAL);
	}
	_exit(EXIT_SUCCESS);
}

/* Reads a request, and refuses it as the kernel would without a connection. Returns false if the
 * connection has ended. */
static bool refuse_request(void)
{
	static char buffer[REQUEST_BYTES_MAX];
	struct fuse_in_header request;

	ssize_t got = read(CONNECTION, buffer, sizeof(buffer));
	if (got < (ssize_t)sizeof(request))
		return got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOENT);
	memcpy(&request, buffer, sizeof(request));
	struct fuse_out_header answer = {
		.len = sizeof(answer),
		.error = -ENOTCONN,
		.unique = request.unique,
	};
	/* ENOENT: the request wants no answer. */
	ssize_t written = write(CONNECTION, &answer, sizeof(answer));
	(void)written;
	return true;
}

/* The daemon has ended, and no other daemon can go on with the mount. */
static bool is_abandoned(int journal)
{
	return journal < 0 || flock(journal, LOCK_SH | LOCK_NB) == 0;
}

struct guard {
	pid_t writer;
	int writer_end, daemon; /* pidfds; -1: it has ended */
	int journal;		/* -1: no other daemon could go on with the mount */
	int number;		/* among the guards of the journal */
	bool orphaned;		/* the daemon has ended, and perhaps no other guard watches yet */
	bool abandoned;
	struct lease_watch watch;
};

/* Whether the guard of a later daemon has begun to watch, even if that guard has ended since: what
 * this guard knows of leases is out of date. */
static bool has_successor(const struct guard *guard)
{
	return guard->journal >= 0 && state_journal_guards(guard->journal) > guard->number;
}

/* Another program goes on in the daemon's process, and its guard cannot be counted. */
static bool is_left_to_program(const struct guard *guard)
{
	return guard->daemon >= 0 && guard->journal < 0 &&
	       lease_watch_is_handed_over(&guard->watch);
}

/* The daemon's process has ended; or its notifier has, which ends the writer: then the daemon
 * stops, or another program goes on; or somebody has ended the writer, and the daemon starts
 * another guard. */
static void lose_daemon(struct guard *guard)
{
	if (guard->orphaned)
		return;
	guard->orphaned = true;
	if (is_left_to_program(guard))
		lease_watch_end(&guard->watch);
}

static void end_daemon(struct guard *guard)
{
	close(guard->daemon);
	guard->daemon = -1;
	lose_daemon(guard);
}

/* Whether the daemon, in whose process another program was to go on, is dying: the kernel closes
 * its descriptors, which ends the writer, before its end can be seen. A program that goes on learns
 * of the writer's end meanwhile. */
static bool is_dying(const struct guard *guard)
{
	struct pollfd end = {.fd = guard->daemon, .events = POLLIN};

	if (!is_left_to_program(guard) || !lease_watch_is_needed(&guard->watch))
		return false;
	shutdown(SOCKET, SHUT_RDWR);
	return poll(&end, 1, DYING_LIMIT_MS) == 1;
}

static void end_writer(struct guard *guard)
{
	waitpid(guard->writer, NULL, 0);
	close(guard->writer_end);
	guard->writer_end = -1;
	if (is_dying(guard))
		end_daemon(guard);
	lose_daemon(guard);
	/* Nobody waits in the kernel any more: the connection is to end with the daemon's
	 * descriptor though the guard may watch on. */
	dup2(SHARED, CONNECTION);
}

/* Whether another process, or another program in the daemon's process, may have renewed the leases
 * since. In the second case this guard may not have noticed: its writer, which would end with the
 * daemon's socket, may wait in the kernel, or be stopped. */
static bool is_out_of_date(const struct guard *guard)
{
	bool handed_over = lease_watch_is_handed_over(&guard->watch);

	if (lease_watch_has_successor(&guard->watch))
		return true;
	return guard->journal < 0 ? handed_over
				  : (guard->orphaned || handed_over) && has_successor(guard);
}

static void watch_leases(struct guard *guard)
{
	enum lease_watch_verdict verdict = lease_watch_judge(&guard->watch);

	lease_watch_tell_passed(&guard->watch);
	if (verdict == LEASE_WATCH_WAITS)
		return;
	if (is_out_of_date(guard))
		lease_watch_end(&guard->watch);
	else if (verdict == LEASE_WATCH_LATE)
		lease_watch_tell(&guard->watch);
	else
		lease_watch_act(&guard->watch, guard->daemon,
				guard->daemon >= 0 ? "the daemon hung when its lease ended"
						   : "no daemon went on before the lease ended");
}

/* While another daemon may still go on with the mount. */
static void look_for_successor(struct guard *guard)
{
	if (guard->daemon < 0 && !guard->abandoned && is_abandoned(guard->journal)) {
		guard->abandoned = true;
		if (lease_watch_is_needed(&guard->watch))
			lease_watch_act(&guard->watch, -1, "the daemon has died");
	}
	if (!lease_watch_is_needed(&guard->watch) || is_out_of_date(guard))
		lease_watch_end(&guard->watch);
}

static void run_guard(struct guard *guard)
{
	int refused = -1;

	while (guard->writer_end >= 0 || guard->watch.board != NULL) {
		struct pollfd ends[] = {{.fd = guard->writer_end, .events = POLLIN},
					{.fd = guard->daemon, .events = POLLIN},
					{.fd = refused, .events = POLLIN},
					{.fd = guard->watch.wake, .events = POLLIN},
					{.fd = guard->watch.alarm.descriptor, .events = POLLIN}};
		bool abandoned = guard->abandoned;
		bool looks = guard->orphaned && !abandoned;
		if (poll(ends, 5, looks ? LOOK_MS : -1) < 0)
			continue;
		if (ends[3].revents != 0 || ends[4].revents != 0)
			watch_leases(guard);
		if (ends[0].revents != 0)
			end_writer(guard);
		if (ends[1].revents != 0 && guard->daemon >= 0)
			end_daemon(guard);
		if (guard->orphaned)
			look_for_successor(guard);
		/* The daemon learns of the writer's end though the guard stays. */
		if (ends[0].revents != 0 && guard->watch.board != NULL)
			shutdown(SOCKET, SHUT_RDWR);
		if (guard->abandoned && !abandoned)
			refused = CONNECTION;
		if (ends[2].revents != 0 && !refuse_request())
			refused = -1;
	}
}

static void guard(pid_t writer, int daemon, int journal, const char *mountpoint,
		  unsigned int device)
{
	struct guard guard = {
		.writer = writer,
		.writer_end = pidfd_open(writer, 0),
		.daemon = daemon,
		.journal = journal,
	};

	lease_watch_begin(&guard.watch, BOARD, WAKE, mountpoint, device);
	if (journal >= 0)
		guard.number = state_journal_count_guard(journal);
	if (daemon < 0)
		lose_daemon(&guard);
	if (guard.writer_end < 0) {
		kill(writer, SIGKILL);
		waitpid(writer, NULL, 0);
		return;
	}
	watch_leases(&guard);
	run_guard(&guard);
}

bool notifier_process_is_meant(char *const *arguments)
{
	int count = 0;

	while (arguments[count] != NULL)
		count++;
	return count == ARGUMENTS && strcmp(arguments[ARGUMENT_NAME], NAME) == 0;
}

/* Closes all other descriptors. Returns where the journal is from now on, or -1. */
static int close_others(int journal)
{
	int kept = journal >= 0 ? dup2(journal, DESCRIPTORS) : -1;

	close_range(kept >= 0 ? DESCRIPTORS + 1 : DESCRIPTORS, ~0U, 0);
	return kept;
}

_Noreturn void notifier_process_run(char *const *arguments)
{
	int given = atoi(arguments[ARGUMENT_JOURNAL]);
	int journal = close_others(given);

	if (given >= 0 && journal < 0)
		_exit(EXIT_FAILURE);
	int daemon = process_start_open(atoi(arguments[ARGUMENT_DAEMON]),
					strtoull(arguments[ARGUMENT_START], NULL, 10));
	if (daemon < 0 && errno != ESRCH) /* else it has ended */
		_exit(EXIT_FAILURE);
	/* The guard is not a child of the daemon: another program that goes on in the daemon's
	 * process would have a child that it does not know. */
	pid_t own = fork();
	if (own != 0)
		_exit(own > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	if (chdir("/") < 0)
		_exit(EXIT_FAILURE);
	pid_t self = getpid();
	pid_t writer = fork();
	if (writer == 0)
		run_writer(self);
	prctl(PR_SET_NAME, "dlockfs-guard"); /* not before the writer is another process */
	if (writer > 0)
		guard(writer, daemon, journal, arguments[ARGUMENT_MOUNTPOINT],
		      (unsigned int)strtoul(arguments[ARGUMENT_DEVICE], NULL, 10));
	close(CONNECTION); /* before the socket tells of the end */
	if (strcmp(arguments[ARGUMENT_UNMOUNTS], UNMOUNTS) == 0)
		mount_point_unmount_dead(arguments[ARGUMENT_MOUNTPOINT]);
	_exit(EXIT_SUCCESS);
}

/* The daemon */

/* Another descriptor of the same connection, or -1. */
static int clone_connection(int fuse)
{
	uint32_t source = (uint32_t)fuse;
	int descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (descriptor < 0 || ioctl(descriptor, FUSE_DEV_IOC_CLONE, &source) == 0)
		return descriptor;
	close(descriptor);
	return -1;
}

static int spawn_self(const posix_spawn_file_actions_t *actions, int journal,
		      const struct notifier_mount *mount, const struct notifier_daemon *daemon,
		      pid_t *child)
{
	char number[16], process[16], start[32], device[16];
	char *arguments[ARGUMENTS + 1] = {
		[ARGUMENT_NAME] = NAME,
		[ARGUMENT_JOURNAL] = number,
		[ARGUMENT_DAEMON] = process,
		[ARGUMENT_START] = start,
		[ARGUMENT_UNMOUNTS] = mount->unmounts ? UNMOUNTS : "leaves",
		[ARGUMENT_DEVICE] = device,
		[ARGUMENT_MOUNTPOINT] = (char *)mount->mountpoint,
	};

	snprintf(number, sizeof(number), "%d", journal);
	snprintf(process, sizeof(process), "%d", (int)daemon->pid);
	snprintf(start, sizeof(start), "%" PRIu64, daemon->start);
	snprintf(device, sizeof(device), "%u", mount->device);
	return own_program_spawn(actions, arguments, child);
}

/* Starts the program that forks the guard, with the guard's descriptors. Does not wait for it:
 * while it is loaded it may ask for files of the mount. Returns 0 or -errno. */
static int spawn_starter(const int descriptors[DESCRIPTORS], int journal,
			 const struct notifier_mount *mount, const struct notifier_daemon *daemon,
			 pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	int copies[DESCRIPTORS + 1]; /* the last one of the journal */
	int error = 0;

	/* The copies have numbers above all that the child's descriptors get, so that no descriptor
	 * takes the place of another. */
	for (int i = 0; i <= DESCRIPTORS; i++) {
		int source = i < DESCRIPTORS ? descriptors[i] : journal;
		copies[i] = source >= 0 ? fcntl(source, F_DUPFD_CLOEXEC, DESCRIPTORS + 1) : -1;
		if (source >= 0 && copies[i] < 0)
			error = -errno;
	}
	posix_spawn_file_actions_init(&actions);
	for (int i = 0; i < DESCRIPTORS; i++)
		posix_spawn_file_actions_adddup2(&actions, copies[i], i);
	journal = copies[DESCRIPTORS];
	if (journal >= 0) /* lets it pass */
		posix_spawn_file_actions_adddup2(&actions, journal, journal);
	if (error == 0)
		error = spawn_self(&actions, journal, mount, daemon, ret);
	posix_spawn_file_actions_destroy(&actions);
	for (int i = 0; i <= DESCRIPTORS; i++) {
		if (copies[i] >= 0)
			close(copies[i]);
	}
	return error;
}

static int make_shared(struct notifier_process *process)
{
	int shared = memfd_create("dlockfs turn", MFD_CLOEXEC);
	int error = 0;

	if (shared < 0 || ftruncate(shared, sizeof(atomic_int)) < 0)
		error = -errno;
	if (error == 0) {
		process->turn = map_turn(shared);
		error = process->turn == NULL ? -errno : 0;
	}
	if (error == 0)
		return shared;
	if (shared >= 0)
		close(shared);
	return error;
}

/* Another open file description of the journal, which is not locked through it. Returns -errno. */
static int open_journal(int journal)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", journal);
	int descriptor = open(path, O_RDWR | O_CLOEXEC);
	return descriptor >= 0 ? descriptor : -errno;
}

int notifier_process_spawn(const struct notifier_mount *mount, const struct notifier_daemon *daemon,
			   pid_t *ret)
{
	int journal = daemon->journal >= 0 ? open_journal(daemon->journal) : -1;

	if (daemon->journal >= 0 && journal < 0)
		return journal;
	int clone = clone_connection(mount->fuse);
	const int descriptors[] = {
		[SOCKET] = daemon->socket,
		[CONNECTION] = clone >= 0 ? clone : mount->fuse,
		[SHARED] = daemon->shared,
		[BOARD] = daemon->board >= 0 ? daemon->board : daemon->shared,
		[WAKE] = daemon->wake >= 0 ? daemon->wake : daemon->shared,
	};
	int error = spawn_starter(descriptors, journal, mount, daemon, ret);
	if (journal >= 0)
		close(journal);
	if (clone >= 0)
		close(clone);
	return error;
}

/* Has the warden start them. */
static int ask_warden(struct notifier_process *process, const struct notifier_mount *mount,
		      const struct notifier_daemon *daemon)
{
	const struct warden_request request = {.kind = WARDEN_GUARD};
	const int descriptors[] = {daemon->socket, mount->fuse,	 daemon->shared,
				   daemon->board,  daemon->wake, daemon->journal};
	struct warden_answer answer;
	size_t count = daemon->board < 0 ? 3 : daemon->journal < 0 ? 5 : 6;

	int error = warden_ask(&request, NULL, descriptors, count, &answer, &process->starter_end);
	return error != 0 ? error : (int)answer.result;
}

/* Starts guard and writer, with the descriptors of both sides. Returns 0 or -errno. */
static int start(struct notifier_process *process, const struct notifier_mount *mount, int journal,
		 int shared, const struct lease_board *board)
{
	int ends[2], error;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	const struct notifier_daemon daemon = {
		.pid = getpid(),
		.start = process_start(getpid()),
		.socket = ends[1],
		.shared = shared,
		.board = board != NULL ? lease_board_memory(board) : -1,
		.wake = board != NULL ? lease_board_wake(board) : -1,
		.journal = journal,
	};
	process->socket = ends[0];
	if (warden_socket() >= 0) {
		error = ask_warden(process, mount, &daemon);
	} else {
		error = notifier_process_spawn(mount, &daemon, &process->starter);
		if (error == 0)
			process->starter_end = pidfd_open(process->starter, 0);
	}
	close(ends[1]);
	if (error == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		error = -errno;
	return error;
}

int notifier_process_start(const struct notifier_mount *mount, int journal,
			   const struct lease_board *board, struct notifier_process *ret)
{
	struct notifier_process process = {.socket = -1, .starter_end = -1};
	int shared = make_shared(&process);
	int error = shared < 0 ? shared : 0;

	if (error == 0)
		error = start(&process, mount, journal, shared, board);
	if (shared >= 0)
		close(shared);
	if (error == 0)
		*ret = process;
	else
		notifier_process_leave(&process);
	return error;
}

void notifier_process_reap(struct notifier_process *process, int limit_ms)
{
	struct pollfd end = {.fd = process->starter_end, .events = POLLIN};

	if (process->starter_end < 0 || poll(&end, 1, limit_ms) != 1)
		return;
	if (process->starter > 0)
		waitpid(process->starter, NULL, 0);
	close(process->starter_end);
	process->starter_end = -1;
	process->starter = 0;
}

void notifier_process_leave(struct notifier_process *process)
{
	notifier_process_reap(process, REAP_LIMIT_MS);
	if (process->starter_end >= 0)
		close(process->starter_end);
	else if (process->starter > 0)
		waitpid(process->starter, NULL, WNOHANG);
	if (process->socket >= 0)
		close(process->socket);
	if (process->turn != NULL)
		munmap(process->turn, sizeof(atomic_int));
	*process = (struct notifier_process){.socket = -1, .starter_end = -1};
}

int notifier_process_send(const struct notifier_process *process, const void *message,
			  size_t length)
{
	atomic_store(process->turn, TURN_ANYBODYS);
	return send(process->socket, message, length, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void notifier_process_take_back(const struct notifier_process *process)
{
	take_turn(process->turn, TURN_DAEMONS);
}
