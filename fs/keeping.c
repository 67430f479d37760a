/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the descriptors that the service manager keeps, and the journal. Loop thread only, or before
 * the loop begins.
 */
#include "keeping.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "answers.h"
#include "log.h"
#include "loop.h"
#include "mount.h"
#include "supervisor.h"

#define NAME_FUSE  "fuse"
#define NAME_STATE "state"

/* The next process begins anew after so many that went on and were not settled. */
#define ATTEMPTS_MAX 8

/* A process is settled when it has lived so long, or handled so many requests. */
#define SETTLED_MS	 1000
#define SETTLED_REQUESTS 16

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

/* Reads what was kept. Returns 0; or -errno and one line in `why`. */
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
	if (attempts < 0 || attempts > ATTEMPTS_MAX) {
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

void keeping_begin(struct keeping *keeping, struct takeover *takeover)
{
	struct supervisor_kept kept[] = {{.name = NAME_FUSE}, {.name = NAME_STATE}};
	char why[1024];

	*keeping = (struct keeping){.fuse = -1, .state = -1, .settle_ms = INT64_MAX};
	if (takeover->file != NULL)
		return;
	supervisor_take(kept, 2);
	keeping->fuse = kept[0].descriptor;
	keeping->state = kept[1].descriptor;
	if (keeping->fuse < 0 && keeping->state < 0)
		return;
	keeping->found = true;
	if (read_kept(keeping, takeover, why, sizeof(why)) != 0)
		keeping_give_up(keeping, takeover, why);
	keeping->gave_up = false;
}

void keeping_check(struct keeping *keeping, struct takeover *takeover, const char *mountpoint,
		   const struct config *config)
{
	char why[1024];
	char *path = NULL;

	if (!keeping->found)
		return;
	int error = mount_find(mountpoint, &path, why, sizeof(why));
	bool here = error == 0 && strcmp(path, takeover->process.mountpoint) == 0;
	if (error == 0 && !here) {
		snprintf(why, sizeof(why), "%s: expected %s, where the process before has mounted",
			 path, takeover->process.mountpoint);
		error = -EINVAL;
	}
	if (error == 0)
		error = takeover_check(takeover, config, why, sizeof(why));
	if (error != 0)
		keeping_give_up(keeping, takeover, why);
	keeping->abandoned = keeping->abandoned && here;
	keeping->gave_up = false;
	free(path);
}

void keeping_give_up(struct keeping *keeping, struct takeover *takeover, const char *why)
{
	log_error("%s; beginning anew: what was locked on this host is lost", why);
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

bool keeping_gave_up(struct keeping *keeping)
{
	bool result = keeping->gave_up;
	keeping->gave_up = false;
	return result;
}

/* A journal in the descriptor, which is -1 if there is none yet. */
static int create_journal(struct keeping *keeping)
{
	int state = keeping->state;

	if (state < 0)
		state = memfd_create("dlockfs journal", MFD_CLOEXEC);
	if (state < 0)
		return -errno;
	keeping->state = -1;
	int error = state_journal_create(state, ANSWERS_REQUEST_BYTES, keeping->content.handled,
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

/* The number of the latest request; all that this process has read before SIGUSR2 it has handled.
 */
static uint64_t latest_request(const struct state_journal *journal)
{
	struct fuse_in_header header;
	memcpy(&header, state_journal_request_area(journal), sizeof(header));
	return header.unique;
}

void keeping_open(struct keeping *keeping, struct filesystem *filesystem,
		  const struct takeover *takeover)
{
	bool same_process = takeover->file != NULL && !keeping->found;

	keeping->filesystem = filesystem;
	if (takeover->rehearsal)
		return;
	if (same_process)
		keeping->state = takeover->process.journal;
	if (keeping->state < 0 && !supervisor_keeps())
		return;
	keeping->is_published = keeping->state >= 0;
	int error = create_journal(keeping);
	if (error != 0) {
		log_failure(error);
		return;
	}
	if (same_process)
		keeping->handled = latest_request(keeping->journal);
	takeover_keep(filesystem, keeping->journal);
}

void keeping_start(struct keeping *keeping)
{
	keeping->fuse = -1; /* the session's, if there was one */
	int error = keeping->journal != NULL ? answers_begin(keeping->filesystem) : 0;
	if (error != 0) {
		log_failure(error);
		state_journal_end(keeping->journal);
	}
	if (keeping->found)
		answers_send_again(keeping->filesystem, keeping->content.answers,
				   keeping->content.answer_count);
}

void keeping_publish(struct keeping *keeping)
{
	if (keeping->journal == NULL)
		return;
	answers_send(keeping->filesystem, 0); /* so that there is something in it */
	int error = supervisor_keep(NAME_FUSE, fuse_session_fd(keeping->filesystem->session));
	if (error == 0)
		error = supervisor_keep(NAME_STATE, state_journal_descriptor(keeping->journal));
	keeping->is_published = error == 0;
	if (error != 0)
		log_warning("telling the service manager what to keep: %s", strerror(-error));
}

bool keeping_is_possible(const struct keeping *keeping)
{
	return keeping->journal != NULL && keeping->is_published &&
	       !state_journal_has_failed(keeping->journal);
}

/* The request that the process before has read and may not have handled. */
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
	/* As the loop does: the lease may be over by now. */
	shards_advance(keeping->filesystem->shards, keeping->filesystem->shards_count,
		       loop_now_ms());
	filesystem_handle(keeping->filesystem, &buffer);
	answers_send(keeping->filesystem, header.unique);
}

void keeping_resume(struct keeping *keeping)
{
	answers_send(keeping->filesystem, keeping->handled);
	if (!keeping->is_published)
		keeping_publish(keeping);
	if (!keeping->found) {
		keeping_settle(keeping);
		return;
	}
	handle_again(keeping);
	state_journal_content_finish(&keeping->content);
	keeping->found = false;
	keeping->settle_ms = loop_now_ms() + SETTLED_MS;
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
	if (keeping->settle_ms == INT64_MAX ||
	    (now_ms < keeping->settle_ms &&
	     count_requests(&keeping->filesystem->metrics) < SETTLED_REQUESTS))
		return;
	keeping_settle(keeping);
}

int64_t keeping_deadline(const struct keeping *keeping)
{
	return keeping->settle_ms;
}

void keeping_end(struct keeping *keeping)
{
	if (keeping->journal == NULL && !keeping->found)
		return;
	supervisor_release(NAME_FUSE);
	supervisor_release(NAME_STATE);
	keeping->found = false;
	if (keeping->journal != NULL)
		state_journal_end(keeping->journal);
}

void keeping_finish(struct keeping *keeping)
{
	state_journal_content_finish(&keeping->content);
	state_journal_destroy(keeping->journal);
	keeping->journal = NULL;
	keeping->is_published = false;
}
