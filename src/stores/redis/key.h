/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose turn it is at a lock: this host's, which has the lock's key then, or that of others. A
 * state machine without I/O, a clock, or randomness of its own: time comes as an argument, what is
 * to be done goes out by struct key_events.
 *
 * This host's claims of the lock stand in a queue (stores/local/store.h). What others hold stands
 * there as one more claim, the *gate*, behind or in front of those of this host:
 *
 *     [claims of this host: a *turn*] [gate: others are next] [claims of this host that wait]
 *
 *   step       gate                      the key
 *   IDLE       none, nor claims          nobody here wants it
 *   ASKED      none, or it lingers       wanted; who has it is not known: calls wait for an answer
 *   ELSEWHERE  in front of all claims    others have it, or it is left to them for a while
 *   OURS       none, or behind the turn  this host has it
 *
 *   step       what happens              next       what is done
 *   IDLE       a call                    ASKED      TAKE, or READ if nothing is to be placed
 *   ASKED      taken                     OURS       the calls go on
 *   ASKED      others have it            ELSEWHERE  gate; the calls go on
 *   ASKED      refused for good          IDLE       the calls fail
 *   ELSEWHERE  its time has come         ELSEWHERE  TAKE, if a claim waits, else IDLE: no gate
 *   ELSEWHERE  taken                     OURS       no gate
 *   ELSEWHERE  a call, nobody waits      ASKED      as above; the gate lingers
 *   OURS       enough claims, or time    OURS       gate behind the turn
 *   OURS       the turn is empty         ELSEWHERE  GIVE; TAKE after a pause, if a claim waits
 *                                        IDLE       GIVE; no gate
 *   OURS       the key was lost          ELSEWHERE  the turn's claims go; gate
 *   any        the session is given up   IDLE       GIVE; no gate, no calls
 *
 * So others come next after each turn, whether they are seen or not: who tries again and again
 * cannot be seen. One TAKE is under way for each lock, however many claims wait. A TAKE that
 * succeeds when nobody wants the key any more, or so late that little of it is left, is given back.
 *
 * A claim that stands behind the gate belongs to the turn all the same if it has precedence over
 * the gate: its anchor stands in front (claim/name.h). The caller tells which is which.
 *
 * Single-threaded.
 */
#ifndef DLOCKFS_STORES_REDIS_KEY_H
#define DLOCKFS_STORES_REDIS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/contention.h"

enum key_step { KEY_IDLE, KEY_ASKED, KEY_ELSEWHERE, KEY_OURS };

struct key_rules {
	struct store_contention contention;
	int64_t ttl_ms;	 /* of the key */
	uint64_t random; /* the state of what spreads attempts; any number */
};

struct key {
	enum key_step step;
	bool under_way; /* a TAKE or READ */
	bool gate;
	bool taking;	      /* what is under way is a TAKE */
	bool lost;	      /* ELSEWHERE: the key was lost, and the gate stays until due_ms */
	bool lingers;	      /* ELSEWHERE: likewise, for who has seen it in the queue */
	bool pausing;	      /* ELSEWHERE: others are to have it until due_ms */
	size_t places, looks; /* calls that wait: to be placed, or to see the queue */
	size_t turn, waiting; /* claims of the turn, and those that wait behind the gate */
	size_t had;	      /* claims that the turn has had */
	int64_t sent_ms;      /* when the latest TAKE or READ was sent */
	int64_t heard_ms;     /* OURS: when that was sent which gave or renewed the key last */
	int64_t due_ms;	      /* when key_advance() is needed; INT64_MAX: not */
	uint64_t takes;	      /* attempts so far: the number of the one that took the key */
	struct key_rules *rules;
	const struct key_events *events;
};

/* What is to be done. None may call a function of this file, but known(). */
struct key_events {
	/* Ask the servers: key_answered() is called with the answer. `takes` has the number of the
	 * attempt. Returns 0; or -errno, and there is no answer. */
	int (*take)(struct key *key);
	int (*read)(struct key *key);

	/* The key that was taken goes back. */
	void (*give)(struct key *key);

	/* The gate is put at the end of the queue; or is another's by now: `holder` has the key, if
	 * that is known; or is taken away. */
	void (*raise)(struct key *key, const char *holder);
	void (*show)(struct key *key, const char *holder);
	void (*lower)(struct key *key);

	/* The calls that wait go on, which calls key_placed(); or fail with the error. */
	void (*known)(struct key *key, int error);

	/* All claims of the turn are to be taken out of the queue: this host lost the key. */
	void (*lost)(struct key *key);
};

void key_init(struct key *key, struct key_rules *rules, const struct key_events *events);

/* Whether a call on the lock has to wait for known(): one that places a claim, or one that only
 * looks at the queue. */
bool key_must_wait(const struct key *key, bool places);

/* Such a call waits from now on. */
void key_wait(struct key *key, bool places, int64_t now_ms);

/* A claim was placed, or has left the queue. It is of the turn, or waits behind the gate. */
void key_placed(struct key *key, bool in_turn, int64_t now_ms);
void key_left(struct key *key, bool in_turn, int64_t now_ms);

/* The answer to take() or read(), as struct redis_answer has it. */
void key_answered(struct key *key, int error, const char *holder, int64_t now_ms);

/* What was sent to renew the key of that attempt is answered. */
void key_renewed(struct key *key, uint64_t take, int64_t sent_ms, int error, int64_t now_ms);

/* The gate is in somebody's way in a cycle: it goes behind all claims. */
void key_requeue(struct key *key);

/* The key may be free. */
void key_hint(struct key *key, int64_t now_ms);

/* The servers can be asked again. */
void key_connected(struct key *key, int64_t now_ms);

/* Does what is due. */
void key_advance(struct key *key, int64_t now_ms);

/* The session is given up, with all its claims and calls. */
void key_abandon(struct key *key);

/* Goes on with what another process has saved: whether this host had the key, and of the turn,
 * since when the key counts and how many claims it had. What was under way is not known to have
 * happened. key_recount() has to follow. */
void key_restore(struct key *key, bool is_ours, bool gate, int64_t heard_ms, size_t had);

/* So many claims of the turn, and behind the gate, stand in the queue. */
void key_recount(struct key *key, size_t turn, size_t waiting, int64_t now_ms);

/* Nothing is known of it that would have to be kept. */
static inline bool key_is_idle(const struct key *key)
{
	return key->step == KEY_IDLE && !key->under_way;
}

/* Whether the books are in order: for tests. */
bool key_is_sound(const struct key *key);

#endif
