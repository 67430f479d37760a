/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/commands/waiting.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

#define FIRST_MS    300 /* a lock that is granted sooner needs no message */
#define INTERVAL_MS 1000

void waiting_init(struct waiting *waiting, const struct place *place, pid_t process)
{
	const struct context any = {0};
	pthread_condattr_t attributes;

	*waiting = (struct waiting){.place = place, .process = process};
	waiting->width = output_width(&any, STDERR_FILENO);
	pthread_mutex_init(&waiting->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&waiting->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static const struct claim *own_claim(const struct queue *queue, pid_t process)
{
	char host[HOST_NAME_MAX + 1] = "";
	gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; i < queue->count; i++) {
		const struct claim *claim = &queue->claims[i];
		if (claim->pid == process && claim_waits(claim) && claim->host != NULL &&
		    strcmp(claim->host, host) == 0)
			return claim;
	}
	return NULL;
}

static const char *describe_holder(const struct claim *holder)
{
	if (holder == NULL)
		return "nobody holds it";
	if (holder->kept)
		return "kept by ";
	if (holder->resting)
		return "resting, released by ";
	if (holder->lost)
		return "lost by ";
	return holder->maybe_kept ? "held or kept by " : "held by ";
}

/* "3 of 5 in the queue; held by web1:4711 backup for 3m12s" */
static char *describe(const struct waiting *waiting, const struct queues *queues, bool with_age)
{
	struct queue rest = {0};
	const struct queue *queue = &rest;

	if (queues->count > 0)
		rest = queues->list[0];
	/* A process that locks a lock file does not wait for the file itself. */
	if (waiting->process != 0 && queue_has_file(&rest)) {
		rest.claims++;
		rest.count--;
		rest.holders--;
	}
	if (rest.count == 0)
		return must(strdup("nobody holds it"));
	const struct claim *own = own_claim(queue, waiting->process);
	const struct claim *holder = queue_holder(queue);
	char *position = own != NULL ? must_format("%td of %zu in the queue",
						   own - queue->claims + 1, queue->count)
				     : must_format("%zu in the queue", queue->count);
	char *holders = queue_holders(queue);
	char *age = with_age && holder != NULL ? claim_age(holder) : must(strdup(""));
	char *text = must_format("%s; %s%s%s%s", position, describe_holder(holder), holders,
				 age[0] != '\0' ? " for " : "", age);
	free(position);
	free(holders);
	free(age);
	return text;
}

static void show_over(const struct waiting *waiting, const char *name, const char *text)
{
	char *line = must_format("dlockctl: %s: %s", name, text);
	text_cut(line, waiting->width - 1);
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	free(line);
}

void waiting_show(struct waiting *waiting, const struct queues *queues)
{
	char *name = text_printable(waiting->place->name);
	char *text = describe(waiting, queues, waiting->width > 0);

	if (waiting->width > 0)
		show_over(waiting, name, text);
	else if (waiting->last == NULL || strcmp(waiting->last, text) != 0)
		fail(0, "%s: %s", name, text);
	free(name);
	free(waiting->last);
	waiting->last = text;
}

void waiting_clear(struct waiting *waiting)
{
	if (waiting->width > 0 && waiting->last != NULL)
		fputs("\r\033[K", stderr);
	free(waiting->last);
	waiting->last = NULL;
}

/* Sleeps, with the mutex held. */
static void sleep_ms(struct waiting *waiting, long long ms)
{
	long long end_ms = now_ms() + ms;
	struct timespec end = {.tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000};
	while (!waiting->over &&
	       pthread_cond_timedwait(&waiting->changed, &waiting->mutex, &end) == 0)
		;
}

static void *run_thread(void *context)
{
	struct waiting *waiting = context;
	struct queues queues;

	pthread_mutex_lock(&waiting->mutex);
	for (long long ms = FIRST_MS;; ms = INTERVAL_MS) {
		sleep_ms(waiting, ms);
		if (waiting->over)
			break;
		pthread_mutex_unlock(&waiting->mutex);
		int error = tree_queue(waiting->place, &queues);
		pthread_mutex_lock(&waiting->mutex);
		if (error == 0 && !waiting->over)
			waiting_show(waiting, &queues);
		queues_finish(&queues);
	}
	pthread_mutex_unlock(&waiting->mutex);
	return NULL;
}

int waiting_start(struct waiting *waiting)
{
	pthread_t thread;
	sigset_t all, before;

	/* Signals are for the thread that waits in flock(2). */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread, NULL, run_thread, waiting);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0)
		return -error;
	pthread_detach(thread);
	return 0;
}

void waiting_stop(struct waiting *waiting)
{
	pthread_mutex_lock(&waiting->mutex);
	waiting->over = true;
	waiting_clear(waiting);
	pthread_cond_signal(&waiting->changed);
	pthread_mutex_unlock(&waiting->mutex);
}
