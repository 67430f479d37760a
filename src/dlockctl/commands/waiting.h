/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of run -v and wait -v on stderr while they wait: on a terminal one line that is
 * overwritten, else a line whenever the queue has changed.
 */
#ifndef DLOCKCTL_COMMANDS_WAITING_H
#define DLOCKCTL_COMMANDS_WAITING_H

#include <pthread.h>
#include <sys/types.h>

#include "dlockctl/mount.h"
#include "dlockctl/queue.h"

struct waiting {
	const struct place *place;
	size_t width;  /* of the terminal; 0 if it is none */
	pid_t process; /* the process whose place in the queue is shown; 0: none */
	char *last;
	/* Of the thread: */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool over;
};

/* *waiting and *place have to stay until the program ends. */
void waiting_init(struct waiting *waiting, const struct place *place, pid_t process);
void waiting_show(struct waiting *waiting, const struct queues *queues);
/* Removes the line from the terminal. */
void waiting_clear(struct waiting *waiting);

/* A thread reads the queue and shows it each second, because flock(2) blocks. Returns 0 or -errno.
 */
int waiting_start(struct waiting *waiting);
/* After this nothing is shown. Does not wait for the thread, which may be waiting for the store. */
void waiting_stop(struct waiting *waiting);

#endif
