/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the epoll set, the alarm and the signal descriptor. One thread reads the kernel's requests,
 * in order, so that a release that was read is seen by whatever is read after it.
 */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/platform.h"
#include "files/filesystem.h"
#include "journal/journal.h"
#include "kernel/lease_board.h"
#include "kernel/mount_point.h"
#include "kernel/notifier.h"
#include "kernel/warden.h"
#include "ops/late.h"
#include "ops/lockfile_ops.h"
#include "ops/serving.h"
#include "peers/peers.h"
#include "restart/supervisor.h"

/* How many requests of the kernel are read before the stores get their turn. */
#define REQUESTS_AT_ONCE 64

/* How often the log tells of a clock that is set again and again. */
#define JUMPS_TOLD_MS 10000

#define PATIENCES_IN_TIMEOUT   100
#define WARDEN_PATIENCE_MIN_MS 10

/* How long a stop waits for the writer (kernel/notifier_process.h), which a user can hold up for
 * ever. */
#define STOP_LIMIT_MS 10000

static sigset_t handled_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	return set;
}

void loop_block_signals(void)
{
	sigset_t set = handled_signals();
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int watch(struct loop *loop, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, descriptor, &event) < 0 ? -errno : 0;
}

/* The shard whose store's events the descriptor reports; NULL: it is not a store's. */
static struct shard *find_shard(const struct loop *loop, int descriptor)
{
	const struct shards *shards = loop->filesystem->shards;
	for (size_t i = 0; i < shards->count; i++) {
		struct store *store = shards->list[i].store;
		if (store->ops->descriptor(store) == descriptor)
			return &shards->list[i];
	}
	return NULL;
}

static int watch_stores(struct loop *loop)
{
	const struct filesystem *filesystem = loop->filesystem;
	int error = 0;
	for (size_t i = 0; error == 0 && i < filesystem->shards->count; i++) {
		struct store *store = filesystem->shards->list[i].store;
		error = watch(loop, store->ops->descriptor(store));
	}
	return error;
}

int loop_init(struct loop *loop, struct filesystem *filesystem)
{
	sigset_t set = handled_signals();
	int fuse = fuse_session_fd(filesystem->session);
	int error = 0;

	*loop = (struct loop){
		.filesystem = filesystem,
		.epoll = epoll_create1(EPOLL_CLOEXEC),
		.alarm = ALARM_NONE,
		.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
		.jump.timer = -1,
		.jump_told_ms = INT64_MIN,
		.stop_ms = INT64_MAX,
	};
	watchdog_begin(&loop->watchdog, supervisor_watchdog_ms());
	if (alarm_init(&loop->alarm) < 0 || loop->epoll < 0 || loop->signals < 0 ||
	    fcntl(fuse, F_SETFL, O_NONBLOCK) < 0)
		error = -errno;
	if (error == 0)
		error = clock_jump_init(&loop->jump);
	int descriptors[] = {fuse,
			     loop->alarm.descriptor,
			     loop->signals,
			     loop->jump.timer,
			     notifier_descriptor(filesystem->notifier),
			     filesystem->inodes->makers,
			     warden_socket(),
			     peers_descriptor(filesystem->shards->peers)};
	for (size_t i = 0; error == 0 && i < sizeof(descriptors) / sizeof(*descriptors); i++)
		error = descriptors[i] >= 0 ? watch(loop, descriptors[i]) : 0;
	if (error == 0)
		error = watch_stores(loop);
	warden_hurry(WARDEN_PATIENCE_MIN_MS);
	if (error != 0)
		loop_finish(loop);
	return error;
}

void loop_finish(struct loop *loop)
{
	int *descriptors[] = {&loop->epoll, &loop->signals};

	warden_hurry(0);
	for (size_t i = 0; i < 2; i++) {
		if (*descriptors[i] >= 0)
			close(*descriptors[i]);
		*descriptors[i] = -1;
	}
	alarm_finish(&loop->alarm);
	clock_jump_finish(&loop->jump);
}

static void end(struct loop *loop, int result)
{
	loop->ended = true;
	loop->result = result;
}

static void handle_request(struct loop *loop, const struct fuse_buf *buffer)
{
	struct filesystem *filesystem = loop->filesystem;
	struct fuse_in_header header = {0};

	if ((buffer->flags & FUSE_BUF_IS_FD) == 0)
		memcpy(&header, buffer->mem, sizeof(header));
	restart_note_request(loop->restart, buffer);
	if ((buffer->flags & FUSE_BUF_IS_FD) == 0)
		metrics_count_request(filesystem->metrics, buffer->mem, buffer->size);
	/* Leases are judged before each request: the process may have been stopped here. */
	shards_advance(filesystem->shards, clock_now_ms());
	request_handle(filesystem, buffer);
	serving_go_on(filesystem);
	takeover_commit(filesystem, header.unique);
}

/* Returns 0 if the mount was unmounted; -errno if it is still there, dead: the service manager is
 * to start a daemon that mounts anew. */
static int judge_end(const char *mountpoint)
{
	if (!mount_point_is_left(mountpoint)) {
		log_info("%s was unmounted, and is in use no more: ends", mountpoint);
		return 0;
	}
	log_error("%s: the mount was aborted", mountpoint);
	return -ECONNABORTED;
}

static void read_requests(struct loop *loop, struct fuse_buf *buffer)
{
	struct fuse_session *session = loop->filesystem->session;

	for (int i = 0; i < REQUESTS_AT_ONCE && !loop->ended; i++) {
		int got = fuse_session_receive_buf(session, buffer);
		if (got == -EINTR)
			continue;
		if (got == -EAGAIN)
			return;
		if (got <= 0) { /* 0: the connection has ended */
			if (got < 0)
				log_error("reading from the kernel: %s", strerror(-got));
			else
				got = judge_end(loop->filesystem->mountpoint);
			loop->left = false;
			end(loop, got);
			return;
		}
		handle_request(loop, buffer);
	}
}

static void stop(struct loop *loop)
{
	loop->stopping = true;
	loop->stop_ms = clock_now_ms() + STOP_LIMIT_MS;
	late_hurry(loop->filesystem);
	notifier_stop(loop->filesystem->notifier);
}

static void begin_restart(struct loop *loop, bool leave)
{
	int descriptor = restart_begin(loop->restart, leave, clock_now_ms());
	int error = descriptor >= 0 ? watch(loop, descriptor) : 0;

	if (error != 0)
		restart_give_up(loop->restart, strerror(-error));
}

/* The next process goes on if it understands the state that it will get. If it does not, this
 * daemon stops as on SIGTERM, while it can. */
static void begin_leaving(struct loop *loop)
{
	if (!keeping_is_possible(loop->keeping)) {
		log_info("stopping on SIGUSR1: nothing is kept for another process");
		stop(loop);
		return;
	}
	loop->leaving = true;
	begin_restart(loop, true);
}

/* Leaves everything to the next process, unless something else ends the loop before the notifier
 * has ended. */
static void leave(struct loop *loop)
{
	loop->left = true;
	lease_board_hand_over(loop->filesystem->board, true);
	stop(loop);
}

static bool is_due(const struct shard *shard)
{
	const struct store *store = shard->store;

	return store->ops->is_due != NULL && store->ops->is_due(store);
}

/* Stores that were asked something in this turn send it now: the kernel has its answers, and the
 * journal what they have drawn for it. */
static void dispatch_due(struct loop *loop)
{
	struct shards *shards = loop->filesystem->shards;

	for (size_t i = 0; i < shards->count; i++) {
		if (!is_due(&shards->list[i]))
			continue;
		takeover_commit(loop->filesystem, 0);
		shards_advance(shards, clock_now_ms());
		shard_dispatch(&shards->list[i]);
		serving_go_on(loop->filesystem);
		serving_ask(loop->filesystem);
		takeover_commit(loop->filesystem, 0);
	}
}

/* The rehearsal has ended. Does not return if the new program can take over. */
static void go_on_with_restart(struct loop *loop)
{
	if (!restart_is_understood(loop->restart) || loop->stopping)
		return;
	if (loop->leaving) {
		leave(loop);
		return;
	}
	/* A rehearsal and the start of a program take longer than a turn of the loop. */
	watchdog_relax(&loop->watchdog, clock_now_ms());
	dispatch_due(loop); /* what is to be given back is not in the state */
	restart_execute(loop->restart);
}

/* The rehearsal is over without success: the next process cannot go on. */
static bool has_to_stop(const struct loop *loop)
{
	return loop->leaving && !loop->ended && !loop->stopping &&
	       restart_descriptor(loop->restart) < 0;
}

static void read_signals(struct loop *loop)
{
	struct signalfd_siginfo info;
	while (read(loop->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
			loop->left = false;
		if (loop->stopping)
			continue;
		if (info.ssi_signo == SIGHUP) {
			loop->on_reload(loop->context);
			continue;
		}
		if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) {
			if (loop->leaving)
				continue;
			if (info.ssi_signo == SIGUSR1)
				begin_leaving(loop);
			else
				begin_restart(loop, false);
			continue;
		}
		log_info("stopping on SIG%s", sigabbrev_np((int)info.ssi_signo));
		stop(loop);
	}
}

/* Pings the watchdog, here and nowhere else: a loop that is stuck must not be reported as running.
 * What has been granted just now needs shorter limits; and the loop waits for the warden for less
 * time than the guard gives a daemon that is late to fence, an 80th of the session
 * (kernel/lease_watch.h). */
static void limit(struct loop *loop, int64_t now_ms)
{
	int64_t timeout_ms = loop->filesystem->shards->timeout_ms;
	int64_t patience_ms = timeout_ms / PATIENCES_IN_TIMEOUT;

	if (loop->timeout_ms == timeout_ms && now_ms < loop->watchdog.ping_ms)
		return;
	if (patience_ms > WARDEN_PATIENCE_MS)
		patience_ms = WARDEN_PATIENCE_MS;
	if (patience_ms < WARDEN_PATIENCE_MIN_MS)
		patience_ms = WARDEN_PATIENCE_MIN_MS;
	loop->timeout_ms = timeout_ms;
	warden_hurry((int)patience_ms);
	watchdog_advance(&loop->watchdog, timeout_ms, now_ms);
}

/* For what is due next, by the time at which this turn began. */
static void set_alarm(struct loop *loop, int64_t now_ms)
{
	const struct shards *shards = loop->filesystem->shards;
	const int64_t times_ms[] = {clock_look_ms(shards->lease_ms, now_ms),
				    serving_deadline(loop->filesystem),
				    loop->watchdog.ping_ms,
				    keeping_deadline(loop->keeping),
				    loop->stop_ms,
				    peers_deadline(shards->peers)};
	int64_t due_ms = shards->due_ms;

	for (size_t i = 0; i < sizeof(times_ms) / sizeof(*times_ms); i++)
		due_ms = times_ms[i] < due_ms ? times_ms[i] : due_ms;
	alarm_advance(&loop->alarm, loop->has_lines ? 0 : due_ms);
}

/* To be called first in a turn of the loop: no caller may be told anything that rests on a lease
 * from before the jump. */
static void doubt_after_jump(struct loop *loop, int64_t now_ms)
{
	struct filesystem *filesystem = loop->filesystem;
	int64_t by_ms;

	if (!clock_jump_seen(&loop->jump, &by_ms))
		return;
	filesystem->metrics->clock_jumps++;
	if (!shards_doubt(filesystem->shards, now_ms) ||
	    (loop->jump_told_ms != INT64_MIN && now_ms - loop->jump_told_ms < JUMPS_TOLD_MS))
		return;
	loop->jump_told_ms = now_ms;
	log_warning("the clock was set by %+.3f s: nothing is granted before the servers have "
		    "proved how long the session will live",
		    (double)by_ms / 1000);
}

static void hear_peers(struct shards *shards)
{
	int64_t now_ms = clock_now_ms();

	/* What they say may grant a lock, by a lease that has to be judged. */
	shards_advance(shards, now_ms);
	peers_dispatch(shards->peers, now_ms);
}

static void dispatch(struct loop *loop, int descriptor, struct fuse_buf *buffer)
{
	struct shard *shard;

	if (descriptor == fuse_session_fd(loop->filesystem->session)) {
		read_requests(loop, buffer);
	} else if ((shard = find_shard(loop, descriptor)) != NULL) {
		/* The lease counts from when answers are known to have come. */
		shards_advance(loop->filesystem->shards, clock_now_ms());
		shard_dispatch(shard);
	} else if (descriptor == loop->alarm.descriptor) {
		alarm_rang(&loop->alarm);
	} else if (descriptor == peers_descriptor(loop->filesystem->shards->peers)) {
		hear_peers(loop->filesystem->shards);
	} else if (descriptor == loop->signals) {
		read_signals(loop);
	} else if (descriptor == loop->filesystem->inodes->makers) {
		lockfile_abandon_all(loop->filesystem);
	} else if (descriptor == warden_socket()) {
		warden_dispatch();
	} else if (descriptor == notifier_descriptor(loop->filesystem->notifier)) {
		notifier_dispatch(loop->filesystem->notifier);
	} else if (descriptor == restart_descriptor(loop->restart)) {
		go_on_with_restart(loop);
	}
}

/* Until when something comes, for epoll_wait(2). */
static int patience(const struct loop *loop)
{
	const struct shards *shards = loop->filesystem->shards;

	for (size_t i = 0; i < shards->count; i++) {
		if (is_due(&shards->list[i]))
			return 0;
	}
	return -1;
}

int loop_run(struct loop *loop)
{
	struct filesystem *filesystem = loop->filesystem;
	bool kept = filesystem->journal != NULL;
	struct fuse_buf buffer = {0};

	if (kept)
		buffer.mem = state_journal_request_area(filesystem->journal);
	shards_conclude(filesystem->shards);
	/* What was taken over may be due before anything happens. */
	set_alarm(loop, clock_now_ms());
	while (!loop->ended) {
		struct epoll_event events[8];
		int count = epoll_wait(loop->epoll, events, 8, patience(loop));
		if (count < 0 && errno != EINTR) {
			end(loop, -errno);
			break;
		}
		int64_t begun_us = histogram_now_us();
		int64_t now_ms = begun_us / 1000;
		doubt_after_jump(loop, now_ms);
		shards_advance(filesystem->shards, now_ms);
		serving_advance(filesystem, now_ms);
		notifier_advance(filesystem->notifier, now_ms);
		peers_advance(filesystem->shards->peers, now_ms);
		if (keeping_deadline(loop->keeping) != INT64_MAX)
			keeping_advance(loop->keeping, now_ms);
		for (int i = 0; i < count && !loop->ended; i++) {
			dispatch(loop, events[i].data.fd, &buffer);
			serving_go_on(filesystem);
			takeover_commit(filesystem, 0);
		}
		serving_go_on(filesystem);
		serving_ask(filesystem);
		takeover_commit(filesystem, 0);
		dispatch_due(loop);
		shards_conclude(filesystem->shards);
		limit(loop, now_ms);
		loop->has_lines = log_go_on();
		if (has_to_stop(loop))
			stop(loop);
		if (loop->stopping && ((notifier_has_ended(filesystem->notifier) &&
					filesystem->calls->lates == NULL) ||
				       loop->stop_ms <= now_ms))
			end(loop, 0);
		set_alarm(loop, now_ms);
		histogram_observe(&filesystem->metrics->turns, histogram_now_us() - begun_us);
	}
	watchdog_relax(&loop->watchdog, clock_now_ms());
	if (!kept)
		free(buffer.mem);
	return loop->result;
}
