/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the order of the timers, but not what they are for. Single-threaded.
 */
#include "base/timers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int timers_reserve(struct timers *timers, size_t count)
{
	if (count <= timers->capacity)
		return 0;
	size_t capacity = count < 64 ? 64 : count * 2;
	struct timer **heap = realloc(timers->heap, capacity * sizeof(*heap));
	if (heap == NULL)
		return -ENOMEM;
	timers->heap = heap;
	timers->capacity = capacity;
	return 0;
}

void timers_finish(struct timers *timers)
{
	free(timers->heap);
	*timers = (struct timers){0};
}

static void put(struct timers *timers, size_t place, struct timer *timer)
{
	timers->heap[place - 1] = timer;
	timer->place = place;
}

static void move_up(struct timers *timers, struct timer *timer)
{
	size_t place = timer->place;
	while (place > 1 && timers->heap[place / 2 - 1]->due_ms > timer->due_ms) {
		put(timers, place, timers->heap[place / 2 - 1]);
		place /= 2;
	}
	put(timers, place, timer);
}

static void move_down(struct timers *timers, struct timer *timer)
{
	size_t place = timer->place;
	for (;;) {
		size_t child = place * 2;
		if (child > timers->count)
			break;
		if (child < timers->count &&
		    timers->heap[child]->due_ms < timers->heap[child - 1]->due_ms)
			child++;
		if (timers->heap[child - 1]->due_ms >= timer->due_ms)
			break;
		put(timers, place, timers->heap[child - 1]);
		place = child;
	}
	put(timers, place, timer);
}

void timers_set(struct timers *timers, struct timer *timer, int64_t due_ms)
{
	if (timer->place == 0) {
		assert(timers->count < timers->capacity);
		timers->count++;
		put(timers, timers->count, timer);
	}
	timer->due_ms = due_ms;
	move_up(timers, timer);
	move_down(timers, timer);
}

void timers_clear(struct timers *timers, struct timer *timer)
{
	size_t place = timer->place;
	if (place == 0)
		return;
	struct timer *last = timers->heap[timers->count - 1];
	timers->count--;
	timer->place = 0;
	if (last == timer)
		return;
	put(timers, place, last);
	move_up(timers, last);
	move_down(timers, last);
}

struct timer *timers_first(const struct timers *timers)
{
	return timers->count > 0 ? timers->heap[0] : NULL;
}
