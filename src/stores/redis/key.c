/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the steps of a lock's key; key.h has their table. Loop thread only.
 */
#include "stores/redis/key.h"

#include <errno.h>

#include "stores/redis/verb.h"

/* A server that refuses what is asked is asked again after so long. */
enum { REFUSED_MS = 1000 };

/* Who has only looked, and seen a gate, may read it so long. */
enum { LINGER_MS = 500 };

/* A key that was taken is of use if its answer came before that part of its time was over. */
enum { LATE_IN_TTL = 2 };

void key_init(struct key *key, struct key_rules *rules, const struct key_events *events)
{
	*key = (struct key){.due_ms = INT64_MAX, .rules = rules, .events = events};
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(struct key_rules *rules)
{
	uint64_t number = rules->random += 0x9e3779b97f4a7c15u;

	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
	return number ^ (number >> 31);
}

static int64_t delay_ms(const struct key *key)
{
	const struct store_contention *contention = &key->rules->contention;

	return contention->retry_delay_ms +
	       (int64_t)(next_random(key->rules) % (uint64_t)(contention->retry_jitter_ms + 1));
}

static bool is_wanted(const struct key *key)
{
	return key->places > 0 || key->waiting > 0;
}

/* The gate */

static void raise_gate(struct key *key, const char *holder)
{
	if (key->gate) {
		key->events->show(key, holder);
		return;
	}
	key->gate = true;
	key->events->raise(key, holder);
}

static void lower_gate(struct key *key)
{
	if (!key->gate)
		return;
	key->gate = false;
	key->events->lower(key);
}

/* Steps */

static void go_on(struct key *key, int error)
{
	key->places = key->looks = 0;
	key->events->known(key, error);
}

static void become_idle(struct key *key)
{
	lower_gate(key);
	key->step = KEY_IDLE;
	key->lost = key->lingers = key->pausing = false;
	key->due_ms = INT64_MAX;
}

static void attempt(struct key *key, int64_t now_ms)
{
	if (key->under_way)
		return;
	if (!is_wanted(key) && key->looks == 0) {
		become_idle(key);
		return;
	}
	key->taking = is_wanted(key);
	key->under_way = true;
	key->lost = key->lingers = key->pausing = false;
	key->sent_ms = now_ms;
	key->due_ms = INT64_MAX;
	if (key->taking)
		key->takes++;
	int error = key->taking ? key->events->take(key) : key->events->read(key);
	if (error == 0)
		return;
	key->under_way = false;
	if (error != -ENOTCONN)
		key->due_ms = now_ms + REFUSED_MS;
}

static void retry_in(struct key *key, int64_t now_ms, int64_t ms)
{
	if (key->step == KEY_ELSEWHERE && !is_wanted(key))
		become_idle(key);
	else if (key->step != KEY_IDLE)
		key->due_ms = now_ms + ms;
}

static void become_elsewhere(struct key *key, const char *holder, int64_t now_ms)
{
	bool looked = key->looks > 0;

	raise_gate(key, holder);
	key->step = KEY_ELSEWHERE;
	go_on(key, 0);
	key->lingers = looked && !is_wanted(key);
	if (key->lingers)
		key->due_ms = now_ms + LINGER_MS;
	else
		retry_in(key, now_ms, delay_ms(key));
}

static bool is_full(const struct key *key)
{
	return key->had >= (size_t)key->rules->contention.turn_grants;
}

/* Others are next at the latest after this turn. */
static void close_turn(struct key *key)
{
	key->due_ms = INT64_MAX;
	if (!key->gate)
		raise_gate(key, NULL);
}

static void end_turn(struct key *key, int64_t now_ms)
{
	key->events->give(key);
	if (key->waiting == 0) {
		become_idle(key);
		return;
	}
	key->step = KEY_ELSEWHERE;
	key->pausing = true;
	key->due_ms = now_ms + key->rules->contention.turn_pause_ms;
	key->events->show(key, NULL);
}

static void become_ours(struct key *key, int64_t now_ms)
{
	key->step = KEY_OURS;
	key->heard_ms = key->sent_ms;
	key->turn = key->had = key->waiting;
	key->waiting = 0;
	key->due_ms = now_ms + key->rules->contention.turn_time_ms;
	lower_gate(key);
	go_on(key, 0);
	if (key->turn == 0)
		end_turn(key, now_ms);
	else if (is_full(key))
		close_turn(key);
}

static void lose(struct key *key, int64_t now_ms)
{
	key->events->lost(key);
	key->turn = 0;
	key->lost = true;
	key->step = KEY_ELSEWHERE;
	key->due_ms = now_ms + delay_ms(key);
	raise_gate(key, NULL);
}

/* Calls */

bool key_must_wait(const struct key *key, bool places)
{
	if (key->step == KEY_ELSEWHERE)
		return key->waiting == 0 && (places || !key->lost);
	return key->step != KEY_OURS;
}

/* A gate that lingers stays until the answer. */
void key_wait(struct key *key, bool places, int64_t now_ms)
{
	key->places += places;
	key->looks += !places;
	if (key->step == KEY_ASKED)
		return;
	key->step = KEY_ASKED;
	attempt(key, now_ms);
}

void key_placed(struct key *key, bool in_turn, int64_t now_ms)
{
	(void)now_ms;
	if (!in_turn) {
		key->waiting++;
		return;
	}
	key->turn++;
	key->had++;
	if (is_full(key))
		close_turn(key);
}

void key_left(struct key *key, bool in_turn, int64_t now_ms)
{
	if (in_turn)
		key->turn--;
	else
		key->waiting--;
	if (key->step == KEY_OURS && key->turn == 0)
		end_turn(key, now_ms);
	else if (key->step == KEY_ELSEWHERE && key->waiting == 0 && !key->under_way && !key->lost &&
		 !key->lingers)
		become_idle(key);
}

void key_requeue(struct key *key)
{
	if (key->step != KEY_OURS || !key->gate)
		return;
	lower_gate(key);
	key->turn += key->waiting;
	key->waiting = 0;
	raise_gate(key, NULL);
}

/* Answers */

static void refuse(struct key *key, int error, int64_t now_ms)
{
	if (verb_may_pass(error)) {
		retry_in(key, now_ms, delay_ms(key));
	} else if (key->step == KEY_ASKED) {
		become_idle(key);
		go_on(key, error);
	} else {
		retry_in(key, now_ms, REFUSED_MS);
	}
}

static void taken(struct key *key, int64_t now_ms)
{
	if (is_wanted(key) && now_ms - key->sent_ms < key->rules->ttl_ms / LATE_IN_TTL) {
		become_ours(key, now_ms);
		return;
	}
	key->events->give(key);
	retry_in(key, now_ms, delay_ms(key));
}

static void read_answered(struct key *key, int error, const char *holder, int64_t now_ms)
{
	if (key->step == KEY_ASKED && is_wanted(key)) {
		attempt(key, now_ms);
	} else if (key->step == KEY_ASKED && error == -ENOENT) {
		become_idle(key);
		go_on(key, 0);
	} else if (key->step == KEY_ASKED && (error == 0 || error == -EBADMSG)) {
		become_elsewhere(key, holder, now_ms);
	} else {
		refuse(key, error, now_ms);
	}
}

void key_answered(struct key *key, int error, const char *holder, int64_t now_ms)
{
	key->under_way = false;
	if (!key->taking)
		read_answered(key, error, holder, now_ms);
	else if (error == 0)
		taken(key, now_ms);
	else if (key->step != KEY_IDLE && (error == -EEXIST || error == -EBADMSG))
		become_elsewhere(key, holder, now_ms);
	else
		refuse(key, error, now_ms);
}

void key_renewed(struct key *key, uint64_t take, int64_t sent_ms, int error, int64_t now_ms)
{
	if (key->step != KEY_OURS || key->takes != take)
		return;
	if (error == 0 && sent_ms > key->heard_ms)
		key->heard_ms = sent_ms;
	if (error == -ENOENT || error == -EBADMSG)
		lose(key, now_ms);
}

/* Time */

void key_hint(struct key *key, int64_t now_ms)
{
	if (key->step == KEY_ELSEWHERE && !key->pausing && !key->under_way && key->waiting > 0)
		attempt(key, now_ms);
}

void key_connected(struct key *key, int64_t now_ms)
{
	bool asks = key->step == KEY_ASKED || key->step == KEY_ELSEWHERE;

	if (asks && !key->under_way && key->due_ms == INT64_MAX)
		attempt(key, now_ms);
}

void key_advance(struct key *key, int64_t now_ms)
{
	if (key->due_ms > now_ms)
		return;
	if (key->step == KEY_OURS)
		close_turn(key);
	else
		attempt(key, now_ms);
}

void key_abandon(struct key *key)
{
	if (key->step == KEY_OURS)
		key->events->give(key);
	key->turn = key->waiting = key->places = key->looks = 0;
	become_idle(key);
}

void key_restore(struct key *key, bool is_ours, bool gate, int64_t heard_ms, size_t had)
{
	key->step = is_ours ? KEY_OURS : KEY_ELSEWHERE;
	key->gate = gate;
	key->heard_ms = heard_ms;
	key->had = had;
	if (!is_ours)
		key->events->give(key);
}

/* A key that nobody here wants has no claims. */
void key_recount(struct key *key, size_t turn, size_t waiting, int64_t now_ms)
{
	key->turn = turn;
	key->waiting = waiting;
	if (key->step == KEY_OURS && turn == 0) {
		end_turn(key, now_ms);
	} else if (key->step == KEY_ELSEWHERE && waiting == 0) {
		become_idle(key);
	} else if (key->step == KEY_ELSEWHERE) {
		key->due_ms = now_ms;
	} else if (key->step == KEY_OURS && !key->gate) {
		key->due_ms = now_ms + key->rules->contention.turn_time_ms;
	}
}

bool key_is_sound(const struct key *key)
{
	bool asks = key->step == KEY_ASKED || key->step == KEY_ELSEWHERE;

	return (key->step == KEY_OURS ? key->turn > 0 : key->turn == 0) &&
	       (key->gate || key->waiting == 0) &&
	       (key->step == KEY_ASKED) == (key->places + key->looks > 0) &&
	       (key->step != KEY_ELSEWHERE || key->gate) &&
	       (key->step != KEY_ELSEWHERE || key->waiting > 0 || key->lost || key->lingers ||
		key->under_way) &&
	       (key->step != KEY_IDLE || (!key->gate && key->due_ms == INT64_MAX)) &&
	       (!asks || !key->under_way || key->due_ms == INT64_MAX);
}
