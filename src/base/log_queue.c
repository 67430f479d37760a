/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the messages that wait, and the thread that writes them. The mutex guards both; it is not
 * held while a message is written.
 */
#include "base/log_queue.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

#define STACK_BYTES ((size_t)256 * 1024) /* a message takes a tenth of it */
#define FLUSH_NS    200000000L

struct message {
	struct message *next;
	size_t bytes;
	size_t count; /* of fields */
	char text[];  /* and the fields behind it, each with its NUL */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static struct message *first, *last;
static size_t messages, bytes; /* of those that wait, and the one that is being written */
static uint64_t left_out, told;
static bool started;

static struct message *create(const char *text, const char *const *fields, size_t count)
{
	size_t size = strlen(text) + 1;

	for (size_t i = 0; i < count; i++)
		size += strlen(fields[i]) + 1;
	struct message *message = malloc(sizeof(*message) + size);
	if (message == NULL)
		return NULL;
	*message = (struct message){.bytes = sizeof(*message) + size, .count = count};
	char *end = stpcpy(message->text, text) + 1;
	for (size_t i = 0; i < count; i++)
		end = stpcpy(end, fields[i]) + 1;
	return message;
}

static void write_message(const struct message *message)
{
	const char *fields[LOG_FIELDS_MAX], *at = message->text;
	size_t count = 0;

	for (; count < message->count && count < LOG_FIELDS_MAX; count++) {
		at += strlen(at) + 1;
		fields[count] = at;
	}
	log_write_fields(LOG_LEVEL_INFO, message->text, fields, count);
}

static void *run(void *context)
{
	(void)context;
	pthread_mutex_lock(&mutex);
	for (;;) {
		while (first == NULL)
			pthread_cond_wait(&filled, &mutex);
		struct message *message = first;
		uint64_t missing = left_out - told;
		first = message->next;
		told = left_out;
		pthread_mutex_unlock(&mutex);
		write_message(message);
		if (missing > 0)
			log_warning("%" PRIu64
				    " lines of the audit were left out: the log does not "
				    "keep up",
				    missing);
		pthread_mutex_lock(&mutex);
		messages--;
		bytes -= message->bytes;
		free(message);
		if (messages == 0)
			pthread_cond_broadcast(&emptied);
	}
	return NULL;
}

/* Called with the mutex held. */
static bool start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, former;

	if (started)
		return true;
	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* the thread's own: of a filter (seccomp(2)) */
	pthread_sigmask(SIG_SETMASK, &all, &former);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = pthread_create(&thread, &attributes, run, NULL) == 0;
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
	return started;
}

void log_queue_write(const char *text, const char *const *fields, size_t count)
{
	struct message *message = create(text, fields, count);

	pthread_mutex_lock(&mutex);
	if (message == NULL || messages >= LOG_QUEUE_MESSAGES ||
	    bytes + message->bytes > LOG_QUEUE_BYTES || !start()) {
		left_out++;
		pthread_mutex_unlock(&mutex);
		free(message);
		return;
	}
	if (first != NULL)
		last->next = message;
	else
		first = message;
	last = message;
	messages++;
	bytes += message->bytes;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&mutex);
}

void log_queue_flush(void)
{
	struct timespec end;

	while (log_go_on())
		continue;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += FLUSH_NS;
	if (end.tv_nsec >= 1000000000L) {
		end.tv_nsec -= 1000000000L;
		end.tv_sec++;
	}
	pthread_mutex_lock(&mutex);
	while (messages > 0 && pthread_cond_timedwait(&emptied, &mutex, &end) == 0)
		;
	pthread_mutex_unlock(&mutex);
}
