/* SPDX-License-Identifier: Apache-2.0 */
#include "stores/redis/waker.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { READY_MAX = 64 };

int waker_init(struct waker *waker)
{
	struct epoll_event alarm = {.events = EPOLLIN, .data.ptr = &waker->alarm};

	*waker = (struct waker){
		.epoll = epoll_create1(EPOLL_CLOEXEC), .alarm = ALARM_NONE, .is_due = true};
	if (waker->epoll < 0 || alarm_init(&waker->alarm) < 0 ||
	    epoll_ctl(waker->epoll, EPOLL_CTL_ADD, waker->alarm.descriptor, &alarm) < 0)
		return -errno;
	return 0;
}

void waker_finish(struct waker *waker)
{
	if (waker->epoll >= 0)
		close(waker->epoll);
	alarm_finish(&waker->alarm);
}

size_t waker_begin(struct waker *waker, void *ready[], size_t most)
{
	struct epoll_event events[READY_MAX];
	int count = epoll_wait(waker->epoll, events, READY_MAX, 0);
	size_t others = 0;

	waker->is_due = true;
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr == &waker->alarm)
			alarm_rang(&waker->alarm);
		else if (others < most)
			ready[others++] = events[i].data.ptr;
	}
	return others;
}

void waker_arm(struct waker *waker)
{
	alarm_advance(&waker->alarm, timers_due(&waker->timers));
}

void waker_end(struct waker *waker)
{
	waker_arm(waker);
	waker->is_due = false;
}
