/* SPDX-License-Identifier: Apache-2.0
 *
 * The file system as a whole: its parts in the order in which they begin, and in reverse. Loop
 * thread only.
 */
#include "ops/serving.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/kept_request.h"
#include "files/lockfile_view.h"
#include "files/looked.h"
#include "files/names.h"
#include "files/peering.h"
#include "files/user.h"
#include "handles/audit.h"
#include "handles/handle_end.h"
#include "handles/parked.h"
#include "handles/steer.h"
#include "handles/telling.h"
#include "kernel/lease_board.h"
#include "kernel/request.h"
#include "kernel/warden.h"
#include "ops/asking.h"
#include "ops/held.h"
#include "ops/late.h"
#include "ops/ops.h"
#include "ops/holding.h"
#include "ops/running.h"
#include "status/content.h"
#include "status/status.h"
#include "status/wait.h"

/* How many requests without a waiting caller, RELEASE above all, the kernel may have under way. A
 * low limit would hold releases back; this is the largest that the protocol allows. */
#define MAX_BACKGROUND 65535

/* How many bytes libfuse reserves for everything but the data of a write. */
#define REQUEST_HEADERS_BYTES 4096

static bool kernel_is_of_5(unsigned int least)
{
	struct utsname name;
	unsigned int major = 0, minor = 0;
	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 5 || (major == 5 && minor >= least);
}

static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	struct filesystem *filesystem = userdata;

	connection->max_background = MAX_BACKGROUND;
	connection->congestion_threshold = MAX_BACKGROUND;
	connection->want &= ~(unsigned int)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE |
					    FUSE_CAP_SPLICE_MOVE | FUSE_CAP_READDIRPLUS_AUTO);
	if ((connection->capable & FUSE_CAP_FLOCK_LOCKS) == 0 ||
	    (connection->capable & FUSE_CAP_POSIX_LOCKS) == 0)
		log_error(
			"the kernel does not pass file locks on: they would be local to this host");
	/* A request has to fit into the area where it is read, which libfuse, going by the page
	 * size, does not ensure. */
	if (connection->max_write > REQUEST_BYTES_MAX - REQUEST_HEADERS_BYTES)
		connection->max_write = REQUEST_BYTES_MAX - REQUEST_HEADERS_BYTES;
	/* A program that takes over keeps the former value: its version of libfuse might agree on
	 * another one. */
	if (filesystem->requests->max_write != 0)
		connection->max_write = filesystem->requests->max_write;
	filesystem->requests->max_write = connection->max_write;
	if (filesystem->calls->on_ready != NULL)
		filesystem->calls->on_ready(filesystem->calls->context);
}

/* Of the lines that users have caused. */
static void tell_left_out(struct filesystem *filesystem, bool all)
{
	user_lines_tell(filesystem, all);
	audit_tell_left_out(filesystem, all);
}

static void tell_lines(struct timer *timer)
{
	struct filesystem *filesystem = TIMER_WHOLE(timer, struct filesystem, due.lines);
	int64_t due_ms;

	tell_left_out(filesystem, false);
	due_ms = user_lines_deadline(filesystem->users->lines);
	if (due_ms != INT64_MAX)
		timers_set(&filesystem->due.timers, timer, due_ms);
}

int serving_init(struct serving *serving, const struct config *config, struct shards *shards)
{
	struct filesystem *filesystem = &serving->filesystem;

	*serving = (struct serving){
		.filesystem = {.config = config,
			       .shards = shards,
			       .inodes = &serving->inodes,
			       .handles = &serving->handles,
			       .users = &serving->users,
			       .requests = &serving->requests,
			       .calls = &serving->calls,
			       .metrics = &serving->metrics,
			       .briefs = &serving->briefs,
			       .telling = &serving->telling,
			       /* From there on the kernel checks attributes anew after CREATE;
				* before, open(2) returns at once. */
			       .exclusive_open_waits = kernel_is_of_5(7),
			       .due = {.idle.on_due = names_drop_idle,
				       .lines.on_due = tell_lines,
				       .held.on_due = held_end}},
		.inodes = {.last_node = FUSE_ROOT_ID - 1, .makers = epoll_create1(EPOLL_CLOEXEC)},
		.users = {.lines = &serving->user_lines, .writes = &serving->user_writes},
		/* From there on calling_makes_name() is safe. */
		.calls.calls_are_seen = kernel_is_of_5(11),
	};
	for (size_t i = 0; i < shards->count; i++)
		shards->list[i].filesystem = filesystem;
	metrics_init(filesystem->metrics);
	if (filesystem->inodes->makers < 0)
		return -errno;
	if (gethostname(filesystem->host, sizeof(filesystem->host) - 1) < 0)
		return -errno;
	if (!filesystem->exclusive_open_waits)
		log_warning("this kernel is older than 5.7: exclusive open does not wait here, it "
			    "fails with EEXIST");
	filesystem->now_ms = clock_now_ms();
	filesystem->status = status_create(filesystem);
	if (filesystem->status == NULL)
		return -ENOMEM;
	int error = inode_create(filesystem, NULL, "", S_IFDIR | config->mode, warden_uid(),
				 warden_gid(), &filesystem->inodes->root);
	if (error != 0)
		serving_finish(filesystem);
	return error;
}

void serving_prepare_handover(struct filesystem *filesystem)
{
	struct handle *handle;

	tell_left_out(filesystem, true);
	telling_finish(filesystem);
	waiting_refuse_all(filesystem->status->waits, &status_waiting, -ETIMEDOUT);
	waiting_refuse_all(filesystem->steers, &steer_kind, -EIO);
	HANDLES_FOREACH (filesystem->handles, handle) {
		handle_wake_poll(handle);
	}
}

void serving_stop(struct filesystem *filesystem)
{
	struct handle *handle;
	shards_end(filesystem->shards);
	telling_finish(filesystem);
	HANDLES_FOREACH (filesystem->handles, handle) {
		waiting_refuse_all(handle->parked, &parked_kind, -ENOLCK);
	}
	waiting_refuse_all(filesystem->status->waits, &status_waiting, -EIO);
	waiting_refuse_all(filesystem->steers, &steer_kind, -EIO);
	waiting_refuse_all(filesystem->calls->running, &running_kind, -EIO);
	waiting_refuse_all(filesystem->calls->holdings, &holding_kind, -EIO);
	waiting_refuse_all(filesystem->calls->askings, &asking_kind, -EIO);
	waiting_refuse_all(filesystem->calls->held, &held_kind, -EIO);
	waiting_refuse_all(filesystem->calls->held_until, &held_kind, -EIO);
	late_finish(filesystem);
	tell_left_out(filesystem, true);
}

void serving_finish(struct filesystem *filesystem)
{
	struct handle *handle;
	while ((handle = handle_table_next(&filesystem->handles->by_number, 0)) != NULL)
		handle_close(handle);
	handle_table_finish(&filesystem->handles->by_number);
	looked_finish(filesystem);
	op_dir_finish(filesystem);
	if (filesystem->inodes->root != NULL)
		inode_free_tree(filesystem, filesystem->inodes->root);
	/* Inodes without a name that the kernel has not forgotten. */
	while (filesystem->inodes->by_node != NULL)
		inode_free_tree(filesystem, filesystem->inodes->by_node);
	briefs_finish(filesystem->briefs);
	status_content_close_all(filesystem);
	status_destroy(filesystem->status);
	filesystem->status = NULL;
	while (filesystem->requests->kept != NULL)
		kept_request_free(filesystem, filesystem->requests->kept);
	close(filesystem->inodes->makers);
	user_writes_finish(filesystem->users->writes);
}

void serving_advance(struct filesystem *filesystem, int64_t now_ms)
{
	filesystem->now_ms = now_ms;
	if (telling_is_due(filesystem))
		telling_advance(filesystem);
	timers_run(&filesystem->due.timers, now_ms);
	if (filesystem->calls->lates != NULL)
		late_advance(filesystem);
	if (filesystem->status->waits != NULL)
		waiting_advance(filesystem->status->waits, &status_waiting, now_ms);
	if (filesystem->steers != NULL)
		waiting_advance(filesystem->steers, &steer_kind, now_ms);
	if (filesystem->calls->running != NULL)
		waiting_advance(filesystem->calls->running, &running_kind, now_ms);
}

void serving_go_on(struct filesystem *filesystem)
{
	while (filesystem->calls->askings_ready || filesystem->calls->held_ready) {
		asking_go_on(filesystem);
		held_go_on(filesystem);
	}
}

int64_t serving_deadline(const struct filesystem *filesystem)
{
	const struct waiting *waits = filesystem->status->waits, *steers = filesystem->steers,
			     *running = filesystem->calls->running;
	const int64_t times_ms[] = {
		telling_is_due(filesystem) ? filesystem->now_ms : INT64_MAX,
		filesystem->calls->lates != NULL ? late_deadline(filesystem) : INT64_MAX,
		waits != NULL ? waiting_deadline(waits, &status_waiting) : INT64_MAX,
		steers != NULL ? waiting_deadline(steers, &steer_kind) : INT64_MAX,
		running != NULL ? waiting_deadline(running, &running_kind) : INT64_MAX,
	};
	int64_t first_ms = timers_due(&filesystem->due.timers);

	for (size_t i = 0; i < sizeof(times_ms) / sizeof(*times_ms); i++)
		first_ms = times_ms[i] < first_ms ? times_ms[i] : first_ms;
	return first_ms;
}

static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	const struct shard *shard = context;
	claim_text_format(shard->filesystem->host, peering_address(shard), caller, kind, mode,
			  text);
}

static int64_t wall_ms(void *context)
{
	(void)context;
	return clock_wall_ms();
}

static void on_decided(void *context, void *cookie, int result)
{
	if (result == 0)
		shard_tell_guard(context);
	parked_decide(cookie, result);
}

static void on_tested(void *context, void *cookie, int error,
		      const struct engine_conflict *conflict)
{
	(void)context;
	parked_tell(cookie, error, conflict);
}

static void on_proved(void *context, void *cookie, int error, uint64_t token)
{
	(void)context;
	parked_prove(cookie, error, token);
}

static void on_hold(void *context, void *cookie, int error)
{
	(void)context;
	holding_answered(cookie, error);
}

static void on_lost(void *context, void *owner_cookie)
{
	(void)context;
	telling_lose(owner_cookie);
}

static void on_told(void *context)
{
	const struct shard *shard = context;
	telling_conclude(shard->filesystem);
	shard_tell_guard(shard);
}

static void on_revoked(void *context, void *owner_cookie)
{
	(void)context;
	handle_revoke(owner_cookie);
}

static bool may_log(void *context, uint32_t uid)
{
	const struct shard *shard = context;
	return user_lines_pass(shard->filesystem, uid, USER_LINES_EVENTS);
}

static int64_t on_held(void *context, enum lock_kind kind)
{
	(void)context;
	(void)kind;
	return histogram_now_us();
}

static void on_released(void *context, enum lock_kind kind, int64_t held_us)
{
	struct shard *shard = context;
	lease_board_move(shard->filesystem->board, clock_now_ms());
	histogram_observe(&shard->metrics.holds[kind], histogram_now_us() - held_us);
}

static bool may_hold(void *context, void *owner_cookie, size_t more, bool releases)
{
	const struct shard *shard = context;
	const struct handle *handle = owner_cookie;
	int (*check)(struct filesystem *, uid_t, enum user_share, size_t) =
		releases ? user_check_release : user_check;
	return check(shard->filesystem, handle->user->uid, USER_RANGES, more) == 0;
}

static void on_ranges(void *context, void *owner_cookie, ptrdiff_t more)
{
	const struct shard *shard = context;
	const struct handle *handle = owner_cookie;

	/* The user exists already: it has the open file. */
	if (more > 0)
		user_add(shard->filesystem->users, handle->user->uid, USER_RANGES, (size_t)more);
	else
		user_leave(shard->filesystem->users, handle->user, USER_RANGES, (size_t)-more);
}

static const struct engine_events engine_events = {
	.details_bytes = sizeof(struct claim_details),
	.describe = describe,
	.wall_ms = wall_ms,
	.on_decided = on_decided,
	.on_tested = on_tested,
	.on_proved = on_proved,
	.on_hold = on_hold,
	.on_lost = on_lost,
	.on_told = on_told,
	.on_revoked = on_revoked,
	.on_ask = peering_ask,
	.on_tell = peering_tell,
	.may_log = may_log,
	.on_held = on_held,
	.on_released = on_released,
	.may_hold = may_hold,
	.on_ranges = on_ranges,
};

const struct shard_events serving_events = {&engine_events, &asking_events, &lockfile_view_files};

const struct fuse_lowlevel_ops serving_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.symlink = op_symlink,
	.readlink = op_readlink,
	.rename = op_rename,
	.link = op_link,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.poll = op_poll,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.readdirplus = op_readdirplus,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	.create = op_create,
	.getlk = op_getlk,
	.setlk = op_setlk,
	.flock = op_flock,
	.ioctl = op_ioctl,
};
