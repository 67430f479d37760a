/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the order of the timers, but not what they are for. Single-threaded.
 */
#include "base/timers.h"

/* Makes one heap of two, each of which has no timers beside its first; NULL: an empty one. */
static struct timer *meld(struct timer *one, struct timer *other)
{
	if (one == NULL || other == NULL)
		return one != NULL ? one : other;
	if (other->due_ms < one->due_ms)
		return meld(other, one);
	other->before = one;
	other->next = one->child;
	if (other->next != NULL)
		other->next->before = other;
	one->child = other;
	return one;
}

/* Makes one heap of those that stand beside each other: in pairs first, then of all pairs. */
static struct timer *meld_all(struct timer *timer)
{
	struct timer *pairs = NULL, *all = NULL;

	while (timer != NULL) {
		struct timer *other = timer->next;
		struct timer *rest = other != NULL ? other->next : NULL;
		struct timer *pair = meld(timer, other);
		pair->next = pairs;
		pairs = pair;
		timer = rest;
	}
	while (pairs != NULL) {
		struct timer *rest = pairs->next;
		all = meld(all, pairs);
		pairs = rest;
	}
	return all;
}

static void set_first(struct timers *timers, struct timer *timer)
{
	timers->first = timer;
	if (timer == NULL)
		return;
	timer->before = timer;
	timer->next = NULL;
}

void timers_clear(struct timers *timers, struct timer *timer)
{
	struct timer *below = meld_all(timer->child);

	if (!timer_is_set(timer))
		return;
	if (timers->first == timer) {
		set_first(timers, below);
	} else {
		if (timer->before->child == timer)
			timer->before->child = timer->next;
		else
			timer->before->next = timer->next;
		if (timer->next != NULL)
			timer->next->before = timer->before;
		set_first(timers, meld(timers->first, below));
	}
	timer->child = timer->next = timer->before = NULL;
}

void timers_set(struct timers *timers, struct timer *timer, int64_t due_ms)
{
	timers_clear(timers, timer);
	timer->due_ms = due_ms;
	set_first(timers, meld(timers->first, timer));
}

void timers_advance(struct timers *timers, struct timer *timer, int64_t due_ms)
{
	if (!timer_is_set(timer) || due_ms < timer->due_ms)
		timers_set(timers, timer, due_ms);
}

void timers_run(struct timers *timers, int64_t now_ms)
{
	struct timer *timer;

	while ((timer = timers->first) != NULL && timer->due_ms <= now_ms) {
		timers_clear(timers, timer);
		timer->on_due(timer);
	}
}
