/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the arithmetic of the lease; lease.h has the reasons.
 */
#include "stores/zookeeper/lease.h"

#include <errno.h>
#include <stddef.h>

/* In parts of the session's timeout. */
enum {
	MARGINS_IN_TIMEOUT = 40,
	BEATS_IN_TIMEOUT = 8,
	TOUCHES_IN_TIMEOUT = 6,
	TOUCHES_AMONG_BEATS = 64, /* while there are heartbeats, which are among them */
	HALF_TICKS_IN_TIMEOUT = 4,
	PING_DELAYS_IN_TIMEOUT = 20,
	SIGNS_IN_TIMEOUT = 80, /* more are not kept apart */
};

/* Rounded up. */
static int64_t part(const struct lease *lease, int parts)
{
	return (lease->timeout_ms + parts - 1) / parts;
}

/* The leader has answered what was sent then: these signs have their echo. */
static void note_echo(struct lease *lease, int64_t sent_ms, int64_t now_ms)
{
	for (int i = 0; i < lease->signs_count; i++) {
		struct lease_sign *sign = &lease->signs[i];

		if (sign->proof_ms == INT64_MAX &&
		    sent_ms >= sign->answered_ms + part(lease, HALF_TICKS_IN_TIMEOUT))
			sign->proof_ms = now_ms + part(lease, PING_DELAYS_IN_TIMEOUT);
	}
}

/* From when on a proof of the sign can be sent, if its echo comes as soon as it can. */
static int64_t proof_time(const struct lease *lease, const struct lease_sign *sign, int64_t now_ms)
{
	int64_t echo_ms;

	if (sign->proof_ms != INT64_MAX)
		return sign->proof_ms;
	echo_ms = sign->answered_ms + part(lease, HALF_TICKS_IN_TIMEOUT);
	return (echo_ms > now_ms ? echo_ms : now_ms) + part(lease, PING_DELAYS_IN_TIMEOUT);
}

static void drop_first(struct lease *lease, int count)
{
	lease->signs_count -= count;
	for (int i = 0; i < lease->signs_count; i++)
		lease->signs[i] = lease->signs[i + count];
}

void lease_begin(struct lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	*lease = (struct lease){
		.timeout_ms = timeout_ms,
		.heard_ms = INT64_MIN,
		.quorum_ms = INT64_MIN,
		.beat_ms = INT64_MIN,
		.touch_ms = INT64_MIN,
		.doubt_ms = INT64_MIN,
	};
	if (since_ms != INT64_MIN)
		lease->signs[lease->signs_count++] =
			(struct lease_sign){.sent_ms = since_ms, .proof_ms = INT64_MIN};
}

/* How much older than a heartbeat among others the sign is that it proves. */
static int64_t sign_age_ms(const struct lease *lease)
{
	return part(lease, BEATS_IN_TIMEOUT) * 3;
}

int64_t lease_tell(const struct lease *lease)
{
	return lease->heard_ms == INT64_MIN ? INT64_MIN : lease->heard_ms + sign_age_ms(lease);
}

void lease_resume(struct lease *lease, int64_t timeout_ms, int64_t told_ms, bool doubtful)
{
	lease->timeout_ms = timeout_ms;
	lease->heard_ms = told_ms < 0 ? INT64_MIN : told_ms - sign_age_ms(lease);
	if (doubtful && lease->signs_count > 0)
		lease->doubt_ms = lease->signs[0].sent_ms;
}

/* All signs came before the connection: the latest says as much as all of them; and the connection
 * is one itself. A heartbeat is to prove it. */
void lease_connect(struct lease *lease, int64_t timeout_ms, int64_t since_ms)
{
	lease->timeout_ms = timeout_ms;
	lease->touch_ms = lease->beat_ms = INT64_MIN;
	lease->quorum_ms = INT64_MIN;
	if (lease->signs_count > 0) {
		drop_first(lease, lease->signs_count - 1);
		if (lease->signs[0].sent_ms > since_ms)
			since_ms = lease->signs[0].sent_ms;
	}
	lease->signs_count = since_ms > lease->heard_ms;
	lease->signs[0] = (struct lease_sign){.sent_ms = since_ms, .proof_ms = INT64_MIN};
}

/* Whether what was sent then says so little more than the latest sign that it is not kept. */
static bool is_much_the_same(const struct lease *lease, int64_t sent_ms)
{
	if (lease->signs_count == 0)
		return false;
	int64_t latest_ms = lease->signs[lease->signs_count - 1].sent_ms;
	if (latest_ms <= lease->doubt_ms && sent_ms > lease->doubt_ms)
		return false;
	return sent_ms < latest_ms + part(lease, SIGNS_IN_TIMEOUT);
}

/* What was sent then has been answered. */
static void prove(struct lease *lease, int64_t sent_ms)
{
	int proven = 0;

	while (proven < lease->signs_count && lease->signs[proven].proof_ms <= sent_ms &&
	       lease->signs[proven].sent_ms <= lease->quorum_ms)
		proven++;
	if (proven == 0)
		return;
	if (lease->signs[proven - 1].sent_ms > lease->heard_ms)
		lease->heard_ms = lease->signs[proven - 1].sent_ms;
	drop_first(lease, proven);
}

void lease_note_answer(struct lease *lease, int64_t sent_ms, int64_t now_ms)
{
	prove(lease, sent_ms);
	note_echo(lease, sent_ms, now_ms);
	if (sent_ms < lease->heard_ms || is_much_the_same(lease, sent_ms))
		return;
	/* The next write proves the second one, so the first is not needed. */
	if (lease->signs_count == LEASE_SIGNS_MAX && lease->signs[1].proof_ms <= now_ms)
		drop_first(lease, 1);
	if (lease->signs_count == LEASE_SIGNS_MAX)
		return;
	lease->signs[lease->signs_count++] = (struct lease_sign){
		.sent_ms = sent_ms, .answered_ms = now_ms, .proof_ms = INT64_MAX};
}

void lease_note_proof(struct lease *lease, int64_t sent_ms, int64_t now_ms)
{
	if (sent_ms > lease->quorum_ms)
		lease->quorum_ms = sent_ms;
	lease_note_answer(lease, sent_ms, now_ms);
}

/* Whether only the quorum can have given the answer, with that error. */
static bool is_proof(enum store_operation operation, int error)
{
	switch (operation) {
	case STORE_PLACE:
	case STORE_WITHDRAW:
		return error == 0;
	case STORE_PROVE:
	case STORE_ALTER:
		return error == 0 || error == -ENOENT || error == -EACCES || error == -ESTALE ||
		       error == -EEXIST || error == -ENOTDIR;
	default:
		return false;
	}
}

bool lease_note_operation(struct lease *lease, enum store_operation operation, int error,
			  int64_t sent_ms, int64_t now_ms)
{
	int64_t former_ms = lease->heard_ms;

	if (is_proof(operation, error))
		lease_note_proof(lease, sent_ms, now_ms);
	else if (operation == STORE_TOUCH && error == 0)
		lease_note_answer(lease, sent_ms, now_ms);
	return lease->heard_ms > former_ms;
}

void lease_doubt(struct lease *lease, int64_t now_ms)
{
	lease->doubt_ms = now_ms;
}

bool lease_is_doubtful(const struct lease *lease)
{
	return lease->timeout_ms != 0 && lease->doubt_ms != INT64_MIN &&
	       lease->heard_ms <= lease->doubt_ms;
}

/* The first sign that was sent after the last doubt; NULL: there is none yet. */
static const struct lease_sign *first_sound_sign(const struct lease *lease)
{
	for (int i = 0; i < lease->signs_count; i++) {
		if (lease->signs[i].sent_ms > lease->doubt_ms)
			return &lease->signs[i];
	}
	return NULL;
}

void lease_beat(struct lease *lease, int64_t now_ms)
{
	lease->beat_ms = now_ms;
	if (now_ms > lease->touch_ms)
		lease->touch_ms = now_ms;
}

void lease_touch(struct lease *lease, int64_t now_ms)
{
	lease->touch_ms = now_ms;
}

int64_t lease_end(const struct lease *lease)
{
	if (lease->timeout_ms == 0)
		return INT64_MAX;
	if (lease->heard_ms == INT64_MIN)
		return INT64_MIN;
	return lease->heard_ms + lease->timeout_ms - part(lease, MARGINS_IN_TIMEOUT);
}

bool lease_holds(const struct lease *lease, int64_t now_ms)
{
	return now_ms < lease_end(lease);
}

/* The first sign can be proven by a heartbeat that is sent, and answered, before the end. */
bool lease_can_be_renewed(const struct lease *lease, int64_t now_ms)
{
	int64_t proof_ms;

	if (!lease_holds(lease, now_ms))
		return false;
	if (lease->timeout_ms == 0)
		return true;
	if (lease->signs_count == 0)
		return false;
	proof_ms = proof_time(lease, &lease->signs[0], now_ms);
	if (proof_ms < now_ms)
		proof_ms = now_ms;
	return proof_ms + part(lease, BEATS_IN_TIMEOUT) + part(lease, PING_DELAYS_IN_TIMEOUT) <=
	       lease_end(lease);
}

/* What is sent in the millisecond of a doubt may have been sent before it. */
static int64_t at_once(const struct lease *lease)
{
	return lease->doubt_ms == INT64_MIN ? INT64_MIN : lease->doubt_ms + 1;
}

/* Without a lease to speak of, as soon as it proves something. */
int64_t lease_next_beat(const struct lease *lease, int64_t now_ms)
{
	const struct lease_sign *sign = first_sound_sign(lease);
	int64_t next_ms, proof_ms;

	if (lease->timeout_ms == 0)
		return INT64_MAX;
	if (lease->beat_ms <= lease->doubt_ms)
		return at_once(lease);
	next_ms = lease->beat_ms + lease->timeout_ms / BEATS_IN_TIMEOUT;
	if (sign == NULL || (lease_can_be_renewed(lease, now_ms) && !lease_is_doubtful(lease)))
		return next_ms;
	proof_ms = sign->proof_ms;
	return lease->beat_ms < proof_ms && proof_ms < next_ms ? proof_ms : next_ms;
}

int64_t lease_next_touch(const struct lease *lease)
{
	bool beats = lease->touch_ms < lease->beat_ms + lease->timeout_ms / 4;

	if (lease->timeout_ms == 0)
		return INT64_MAX;
	if (lease->touch_ms <= lease->doubt_ms)
		return at_once(lease);
	return lease->touch_ms + part(lease, beats ? TOUCHES_AMONG_BEATS : TOUCHES_IN_TIMEOUT);
}

struct store_lease lease_describe(const struct lease *lease, int64_t now_ms)
{
	bool doubtful = lease_is_doubtful(lease);

	return (struct store_lease){
		.end_ms = lease_end(lease),
		.proven_ms = lease->heard_ms,
		.saved_ms = lease_tell(lease),
		.grants = !doubtful && lease_can_be_renewed(lease, now_ms),
		.doubtful = doubtful,
		.beat_ms = lease_next_beat(lease, now_ms),
		.touch_ms = lease_next_touch(lease),
	};
}
