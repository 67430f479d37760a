/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the thread. The two threads share one word.
 */
#include "dlockctl/commands/lease_clock.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <time.h>

#include "base/clock.h"
#include "dlockfs.h"

#define ASKS_IN_LEASE 4
#define PAUSE_MIN_MS  50
#define MARGIN_MS     30 /* so that a daemon that runs reports the loss first */
#define LATE_MS	      200
#define GRACE_MS      1000

static const int *locks; /* their descriptors */
static size_t locks_count;
static _Atomic int64_t end_ms = INT64_MAX; /* by clock_now_ms() */
static int64_t grace_for_ms = INT64_MIN;   /* the end for which the program was late, */
static int64_t grace_ms;		   /* and the end of the grace for that */

/* Asks when the lease of the lock ends. Returns 0 or an errno. */
static int ask_one(int lock, int64_t *ret_end)
{
	int failed;

	do
		failed = ioctl(lock, DLOCKFS_IOC_LEASE, ret_end);
	while (failed < 0 && errno == EINTR);
	if (failed < 0 && errno != ENOTTY)
		return errno;
	if (failed < 0)
		*ret_end = INT64_MAX;
	return 0;
}

/* Returns whether there is a reason to ask again. */
static bool ask(void)
{
	int64_t first = INT64_MAX, end;

	for (size_t i = 0; i < locks_count; i++) {
		if (ask_one(locks[i], &end) != 0)
			return false; /* it is lost, which poll(2) of the descriptor reports */
		if (end < first)
			first = end;
	}
	atomic_store(&end_ms, first != INT64_MAX
				      ? clock_now_ms() + first - clock_boot_ms() + MARGIN_MS
				      : first);
	return first != INT64_MAX;
}

void lease_clock_ask(const int *descriptors, size_t count)
{
	locks = descriptors;
	locks_count = count;
	ask();
}

static void *run(void *context)
{
	(void)context;
	do {
		int64_t now = clock_now_ms();
		int64_t pause_ms = (atomic_load(&end_ms) - now) / ASKS_IN_LEASE;
		int64_t next_ms = now + (pause_ms > PAUSE_MIN_MS ? pause_ms : PAUSE_MIN_MS);
		const struct timespec next = clock_time_of(clock_boot_at_ns(next_ms));
		clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &next, NULL);
	} while (ask());
	return NULL;
}

void lease_clock_start(void)
{
	sigset_t all, former;
	pthread_t thread;

	if (atomic_load(&end_ms) == INT64_MAX)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &former);
	if (pthread_create(&thread, NULL, run, NULL) == 0)
		pthread_detach(thread);
	else
		atomic_store(&end_ms, INT64_MAX);
	pthread_sigmask(SIG_SETMASK, &former, NULL);
}

int lease_clock_left_ms(void)
{
	int64_t end = atomic_load(&end_ms), now = clock_now_ms();

	if (end == INT64_MAX)
		return -1;
	if (grace_for_ms == end)
		end = grace_ms;
	if (end <= now)
		return 0;
	end = clock_look_ms(end, now);
	return end - now < INT_MAX ? (int)(end - now) : INT_MAX;
}

bool lease_clock_is_over(void)
{
	int64_t end = atomic_load(&end_ms), now = clock_now_ms();

	if (end == INT64_MAX || now < end)
		return false;
	if (grace_for_ms == end)
		return now >= grace_ms;
	if (now - end < LATE_MS)
		return true;
	grace_for_ms = end;
	grace_ms = now + GRACE_MS;
	return false;
}
