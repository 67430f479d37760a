/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the journal, and the descriptors that the service manager keeps. Loop thread only, or before
 * the loop begins.
 */
#include "restart/keeping.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "files/filesystem.h"
#include "files/request.h"
#include "handles/answers.h"
#include "kernel/mount_point.h"
#include "kernel/request.h"
#include "restart/supervisor.h"

#define NAME_FUSE  "fuse"
#define NAME_STATE "state"

/* After this many processes that went on and were not settled, the next one begins anew. */
#define ATTEMPTS_MAX 8

/* A process is settled when it has lived this long, or handled this many requests. */
#define SETTLED_MS	 1000
#define SETTLED_REQUESTS 16

/* How soon to publish again: the service manager may be gone for a moment (systemctl
 * daemon-reexec). */
#define PUBLISH_AGAIN_MS 1000

static void close_descriptor(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

/* The kernel has ended the connection: somebody has unmounted it. */
static bool is_gone(int fuse)
{
	struct pollfd connection = {.fd = fuse};
	return poll(&connection, 1, 0) < 0 || (connection.revents & (POLLERR | POLLNVAL)) != 0;
}

/* Whether the error may pass: then the journal stays as it is, and the next process, which may not
 * meet the error, tries again. */
static bool may_pass(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EAGAIN ||
	       error == -EINTR || error == -EIO;
}

/* Reads the journal that was kept. Returns 0; or -errno and one line in `why`. */
static int read_kept(struct keeping *keeping, struct takeover *takeover, char *why,
		     size_t why_bytes)
{
	if (keeping->fuse < 0 || keeping->state < 0) {
		snprintf(why, why_bytes,
			 "only one of two descriptors was kept: expected \"%s\" too",
			 keeping->fuse < 0 ? NAME_FUSE : NAME_STATE);
		return -EINVAL;
	}
	if (is_gone(keeping->fuse)) {
		snprintf(why, why_bytes, "the mount is gone");
		return -ENODEV;
	}
	int attempts = state_journal_count_attempt(keeping->state);
	if (attempts < 0) {
		snprintf(why, why_bytes, "what another process has kept cannot be read: %s",
			 strerror(-attempts));
		return attempts;
	}
	if (attempts > ATTEMPTS_MAX) {
		snprintf(why, why_bytes, "%d processes have failed to go on with the mount",
			 ATTEMPTS_MAX);
		return -ELOOP;
	}
	int error = state_journal_load(keeping->state, &keeping->content, why, why_bytes);
	if (error != 0)
		return error;
	FILE *text = keeping->content.text;
	keeping->content.text = NULL;
	return takeover_read_kept(takeover, text, keeping->fuse, why, why_bytes);
}

int keeping_begin(struct keeping *keeping, struct takeover *takeover, char *why, size_t why_bytes)
{
	struct supervisor_kept kept[] = {{.name = NAME_FUSE}, {.name = NAME_STATE}};

	*keeping = (struct keeping){
		.fuse = -1,
		.state = -1,
		.settle_ms = INT64_MAX,
		.publish_ms = INT64_MAX,
	};
	if (takeover->file != NULL)
		return 0;
	supervisor_take(kept, 2);
	keeping->fuse = kept[0].descriptor;
	keeping->state = kept[1].descriptor;
	if (keeping->fuse < 0 && keeping->state < 0)
		return 0;
	keeping->found = true;
	int error = read_kept(keeping, takeover, why, why_bytes);
	if (error != 0)
		keeping_refuse(keeping, takeover, error, why);
	keeping->gave_up = false;
	return may_pass(error) ? error : 0;
}

/* Whether the mount of a former process, with which no process goes on, is at this path. */
static bool is_abandoned(const struct keeping *keeping, const char *path)
{
	if (keeping->mountpoint != NULL)
		return strcmp(path, keeping->mountpoint) == 0;
	return !mount_point_is_alive(path);
}

static int check(const struct keeping *keeping, struct takeover *takeover, const char *path,
		 const struct config *config, char *why, size_t why_bytes)
{
	if (!keeping->found)
		return 0;
	if (strcmp(path, takeover->process.mountpoint) != 0) {
		snprintf(why, why_bytes, "%s: expected %s, where the process before has mounted",
			 path, takeover->process.mountpoint);
		return -EINVAL;
	}
	return takeover_check(takeover, config, why, why_bytes);
}

int keeping_check(struct keeping *keeping, struct takeover *takeover, const char *mountpoint,
		  const struct config *config, char *why, size_t why_bytes)
{
	char *path = NULL;

	if (!keeping->found && !keeping->abandoned)
		return 0;
	int error = mount_point_find(mountpoint, &path, why, why_bytes);
	if (error == 0)
		error = check(keeping, takeover, path, config, why, why_bytes);
	if (error != 0 && keeping->found)
		keeping_refuse(keeping, takeover, error, why);
	keeping->abandoned = keeping->abandoned && path != NULL && is_abandoned(keeping, path);
	keeping->gave_up = false;
	free(path);
	return may_pass(error) ? error : 0;
}

void keeping_refuse(struct keeping *keeping, struct takeover *takeover, int error, const char *why)
{
	if (may_pass(error))
		return;
	log_error("%s; beginning anew: what was locked on this host is lost", why);
	free(keeping->mountpoint);
	keeping->mountpoint =
		takeover->process.mountpoint != NULL ? strdup(takeover->process.mountpoint) : NULL;
	takeover_finish(takeover);
	state_journal_content_finish(&keeping->content);
	keeping->abandoned = keeping->fuse >= 0 && !is_gone(keeping->fuse);
	close_descriptor(&keeping->fuse);
	close_descriptor(&keeping->state);
	if (keeping->journal != NULL)
		state_journal_end(keeping->journal);
	supervisor_release(NAME_FUSE);
	supervisor_release(NAME_STATE);
	keeping->found = false;
	keeping->gave_up = true;
}

bool keeping_is_left(const struct keeping *keeping, const struct takeover *takeover)
{
	return keeping->found || (takeover->file != NULL && takeover->process.journal >= 0);
}

bool keeping_gave_up(struct keeping *keeping)
{
	bool result = keeping->gave_up;
	keeping->gave_up = false;
	return result;
}

/* Creates a journal in the file of `state`; -1: in a new file. */
static int create_journal(struct keeping *keeping)
{
	int state = keeping->state;

	if (state < 0)
		state = memfd_create("dlockfs journal", MFD_CLOEXEC);
	if (state < 0)
		return -errno;
	keeping->state = -1;
	/* The lock tells the guards that a process goes on with the mount
	 * (kernel/notifier_process.h). */
	int error = flock(state, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
	if (error == 0)
		error = state_journal_create(state, REQUEST_BYTES_MAX, keeping->content.handled,
					     &keeping->journal);
	if (error != 0)
		close(state);
	return error;
}

static void log_failure(int error)
{
	log_error("the state is not kept: %s; a kill of this daemon would lose what is locked",
		  strerror(-error));
}

/* The number of the latest request: before SIGUSR2 this process has handled all that it had read.
 */
static uint64_t latest_request(const struct state_journal *journal)
{
	struct fuse_in_header header;
	memcpy(&header, state_journal_request_area(journal), sizeof(header));
	return header.unique;
}

int keeping_open(struct keeping *keeping, struct filesystem *filesystem,
		 const struct takeover *takeover)
{
	bool same_process = takeover->file != NULL && !keeping->found;

	keeping->filesystem = filesystem;
	if (takeover->rehearsal)
		return 0;
	if (same_process)
		keeping->state = takeover->process.journal;
	if (keeping->state < 0 && !supervisor_keeps())
		return 0;
	bool is_left = keeping->state >= 0;
	int error = create_journal(keeping);
	if (error != 0 && !is_left)
		log_failure(error);
	if (error != 0)
		return is_left ? error : 0;
	filesystem->survives_kill = is_left;
	if (same_process)
		keeping->handled = latest_request(keeping->journal);
	takeover_keep(filesystem, keeping->journal, &keeping->marks);
	return 0;
}

int keeping_start(struct keeping *keeping)
{
	keeping->fuse = -1; /* if there was one, it is the session's */
	return answers_begin(keeping->filesystem);
}

void keeping_publish(struct keeping *keeping)
{
	if (keeping->journal == NULL)
		return;
	takeover_commit(keeping->filesystem, 0); /* so that the journal is not empty */
	int error = supervisor_keep(NAME_FUSE, fuse_session_fd(keeping->filesystem->session));
	if (error == 0)
		error = supervisor_keep(NAME_STATE, state_journal_descriptor(keeping->journal));
	bool again = keeping->publish_ms != INT64_MAX;
	keeping->publish_ms = error != 0 ? clock_now_ms() + PUBLISH_AGAIN_MS : INT64_MAX;
	keeping->filesystem->survives_kill = error == 0;
	if (error != 0 && !again)
		log_error("telling the service manager what to keep: %s; until it hears of it a "
			  "kill of this daemon would lose what is locked",
			  strerror(-error));
}

bool keeping_is_possible(const struct keeping *keeping)
{
	return keeping->journal != NULL && keeping->filesystem->survives_kill &&
	       !state_journal_has_failed(keeping->journal);
}

/* Handles the request that the process before had read, and may not have handled. */
static void handle_again(struct keeping *keeping)
{
	struct state_journal_content *content = &keeping->content;
	struct fuse_buf buffer = {.mem = content->request};
	struct fuse_in_header header;

	if (content->request_bytes < sizeof(header))
		return;
	memcpy(&header, content->request, sizeof(header));
	if (header.len < sizeof(header) || header.len > content->request_bytes ||
	    header.unique == content->handled)
		return;
	buffer.size = header.len;
	request_handle(keeping->filesystem, &buffer);
	takeover_commit(keeping->filesystem, header.unique);
}

void keeping_resume(struct keeping *keeping)
{
	struct filesystem *filesystem = keeping->filesystem;

	if (keeping->found) {
		/* As the loop does: the lease may be over by now. */
		shards_advance(filesystem->shards, clock_now_ms());
		/* Before the commit, from which on the journal does not have these answers. */
		answers_send_again(filesystem, keeping->content.answers,
				   keeping->content.answer_count);
	}
	takeover_commit(filesystem, keeping->handled);
	if (!keeping->found) {
		/* The process before may have tried without success. */
		keeping_publish(keeping);
		keeping_settle(keeping);
		return;
	}
	handle_again(keeping);
	state_journal_content_finish(&keeping->content);
	keeping->found = false;
	keeping->settle_ms = clock_now_ms() + SETTLED_MS;
}

void keeping_settle(struct keeping *keeping)
{
	keeping->settle_ms = INT64_MAX;
	if (keeping->journal != NULL)
		state_journal_settle(keeping->journal);
}

static uint64_t count_requests(const struct metrics *metrics)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < METRICS_REQUESTS; i++)
		sum += metrics->requests[i];
	return sum;
}

void keeping_advance(struct keeping *keeping, int64_t now_ms)
{
	if (keeping->publish_ms <= now_ms)
		keeping_publish(keeping);
	if (keeping->settle_ms == INT64_MAX ||
	    (now_ms < keeping->settle_ms &&
	     count_requests(keeping->filesystem->metrics) < SETTLED_REQUESTS))
		return;
	keeping_settle(keeping);
}

int64_t keeping_deadline(const struct keeping *keeping)
{
	return keeping->publish_ms < keeping->settle_ms ? keeping->publish_ms : keeping->settle_ms;
}

void keeping_end(struct keeping *keeping)
{
	if (keeping->journal == NULL && !keeping->found)
		return;
	supervisor_release(NAME_FUSE);
	supervisor_release(NAME_STATE);
	keeping->found = false;
	keeping->filesystem->survives_kill = false;
	if (keeping->journal != NULL)
		state_journal_end(keeping->journal);
}

void keeping_finish(struct keeping *keeping)
{
	state_journal_content_finish(&keeping->content);
	state_journal_destroy(keeping->journal);
	keeping->journal = NULL;
	if (!keeping->gave_up) {
		free(keeping->mountpoint);
		keeping->mountpoint = NULL;
	}
}
