/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of the lease; and, against servers as stores/zookeeper/lease.h describes
 * them, in their
 * worst phases, that no lease lasts longer than the session.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stores/zookeeper/lease.h"

/* A timeout of 4000 ms: a margin of 100; an echo after 1000, and the proof 200 after that. */
enum {
	T = 4000,
	MARGIN = T / 40,
	ECHO = T / 4,
	DELAY = T / 20,
	BEAT = T / 8,
	TOUCH = (T + 5) / 6,
	TOUCH_AMONG_BEATS = (T + 63) / 64,
};

static void test_nothing_is_proven_at_first(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	assert_int_equal(lease_end(&lease), INT64_MIN);
	assert_false(lease_holds(&lease, 0));
	assert_false(lease_holds(&lease, INT64_MIN));
	assert_int_equal(lease_next_beat(&lease, 0), INT64_MIN);
	assert_int_equal(lease_next_touch(&lease), INT64_MIN);
}

static void test_a_sign_alone_proves_nothing(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	for (int64_t ms = 0; ms < 10 * T; ms += T / 10)
		lease_note_answer(&lease, ms, ms);
	assert_int_equal(lease_end(&lease), INT64_MIN);
}

static void test_a_write_alone_proves_nothing(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_proof(&lease, 1000, 1000);
	assert_int_equal(lease_end(&lease), INT64_MIN);
}

static void test_a_write_after_the_echo_proves_a_sign(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_answer(&lease, 1000, 1300);
	lease_note_answer(&lease, 1300 + ECHO - 1, 2310);
	lease_note_proof(&lease, 2600, 2610);
	assert_int_equal(lease_end(&lease), INT64_MIN);
	lease_note_proof(&lease, 2610 + DELAY - 1, 2900);
	assert_int_equal(lease_end(&lease), INT64_MIN);
	lease_note_proof(&lease, 2610 + DELAY, 2900);
	assert_int_equal(lease_end(&lease), 1000 + T - MARGIN);
	assert_true(lease_holds(&lease, 1000 + T - MARGIN - 1));
	assert_false(lease_holds(&lease, 1000 + T - MARGIN));
	assert_false(lease_holds(&lease, 1000000));
}

/* The leader has stood still, and answers at once what was sent meanwhile: it need not have pinged
 * before that. */
static void test_what_is_answered_together_proves_nothing(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_answer(&lease, 1000, 1010);
	for (int64_t ms = 1100; ms < 1000 + T; ms += TOUCH)
		lease_note_answer(&lease, ms, 1000 + T);
	lease_note_proof(&lease, 1000 + T - 100, 1000 + T);
	assert_int_equal(lease_end(&lease), INT64_MIN);
}

/* A sign, its echo, and one more answer; before that the quorum acknowledged what was sent then. */
static int64_t end_with_write(int64_t write_ms, bool connects)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_proof(&lease, write_ms, 1010);
	if (connects)
		lease_connect(&lease, T, INT64_MIN);
	lease_note_answer(&lease, 1000, 1010);
	lease_note_answer(&lease, 1010 + ECHO, 1020 + ECHO);
	lease_note_answer(&lease, 1020 + ECHO + DELAY, 1030 + ECHO + DELAY);
	return lease_end(&lease);
}

/* Whoever answers without a quorum need not be the leader any more: but he was the one after the
 * sign, if the quorum has acknowledged on this connection what was sent later than the sign. */
static void test_a_write_and_then_an_answer_prove_a_sign(void **state)
{
	assert_int_equal(end_with_write(1000, false), 1000 + T - MARGIN);
	assert_int_equal(end_with_write(500, false), 500 + T - MARGIN);
	assert_int_equal(end_with_write(1000, true), INT64_MIN);
}

/* However late the answer of the write comes: it says nothing of what was after it was sent. */
static void test_a_write_proves_from_when_it_was_sent(void **state)
{
	struct lease lease;
	int64_t echoed_ms = 1020 + ECHO;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_answer(&lease, 1000, 1010);
	lease_note_answer(&lease, 1010 + ECHO, echoed_ms);
	assert_false(lease_note_operation(&lease, STORE_PROVE, 0, echoed_ms, echoed_ms + T / 2));
	assert_int_equal(lease_end(&lease), INT64_MIN);
	assert_true(
		lease_note_operation(&lease, STORE_PROVE, 0, echoed_ms + DELAY, echoed_ms + T / 2));
	assert_int_equal(lease_end(&lease), 1000 + T - MARGIN);
}

/* Answers may come in another order than the calls. */
static void test_earlier_writes_prove_nothing_new(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_answer(&lease, 1000, 1000);
	lease_note_answer(&lease, 1500, 1500);
	lease_note_answer(&lease, 1500 + ECHO, 1500 + ECHO);
	lease_note_proof(&lease, 1500 + ECHO + DELAY, 3000);
	assert_int_equal(lease_end(&lease), 1500 + T - MARGIN);
	lease_note_proof(&lease, 1000 + ECHO + DELAY, 3000);
	assert_int_equal(lease_end(&lease), 1500 + T - MARGIN);
}

/* The session's beginning is a sign, and needs no window: its creation reached the leader. */
static void test_a_new_session_has_a_lease_at_once(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, 1000);
	lease_connect(&lease, T, INT64_MIN);
	assert_false(lease_holds(&lease, 1000));
	lease_note_proof(&lease, 1010, 1020);
	assert_int_equal(lease_end(&lease), 1000 + T - MARGIN);
	assert_true(lease_can_be_renewed(&lease, 1020));
}

/* So does a connection made anew prove what was answered before it. */
static void test_a_connection_proves(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, INT64_MIN);
	lease_note_answer(&lease, 1000, 1000);
	lease_note_answer(&lease, 1500, 1500);
	lease_connect(&lease, T, INT64_MIN);
	assert_int_equal(lease_end(&lease), INT64_MIN);
	lease_note_proof(&lease, 1510, 1520);
	assert_int_equal(lease_end(&lease), 1500 + T - MARGIN);
	lease_connect(&lease, T, 2000);
	assert_int_equal(lease_end(&lease), 1500 + T - MARGIN);
	lease_note_proof(&lease, 2000, 2010);
	assert_int_equal(lease_end(&lease), 2000 + T - MARGIN);
	lease_connect(&lease, T, 1000); /* nothing new */
	lease_note_proof(&lease, 2020, 2030);
	assert_int_equal(lease_end(&lease), 2000 + T - MARGIN);
}

/* A lease that holds: signs are proven up to the latest window. */
static void begin_well(struct lease *lease, int64_t now_ms)
{
	lease_begin(lease, T, now_ms - T);
	lease_connect(lease, T, INT64_MIN);
	for (int64_t ms = now_ms - T; ms <= now_ms; ms += BEAT) {
		lease_beat(lease, ms);
		lease_note_proof(lease, ms, ms);
	}
	assert_true(lease_can_be_renewed(lease, now_ms));
	assert_false(lease_is_doubtful(lease));
}

/* What is held goes on as if nothing were; but it is doubtful until a sign from after the doubt is
 * proven, by a write that is sent as soon as it can be. */
static void test_a_doubt(void **state)
{
	struct lease lease;
	int64_t end_ms;

	begin_well(&lease, 10000);
	end_ms = lease_end(&lease);
	lease_doubt(&lease, 10100);
	assert_true(lease_is_doubtful(&lease));
	assert_int_equal(lease_end(&lease), end_ms);
	assert_int_equal(lease_next_beat(&lease, 10100), 10101);
	assert_int_equal(lease_next_touch(&lease), 10101);
	lease_note_proof(&lease, 10100, 10150); /* was sent before it, for all we know */
	lease_beat(&lease, 10151);
	lease_note_proof(&lease, 10151, 10161); /* close to the former one, and yet kept */
	assert_true(lease_is_doubtful(&lease));
	for (int64_t ms = 10151 + BEAT; ms < 10161 + ECHO; ms += BEAT) {
		assert_int_equal(lease_next_beat(&lease, ms - 1), ms);
		lease_beat(&lease, ms);
		lease_note_proof(&lease, ms, ms);
		assert_true(lease_is_doubtful(&lease));
		assert_true(lease_end(&lease) > end_ms); /* by signs from before it */
		end_ms = lease_end(&lease);
	}
	lease_note_answer(&lease, 10161 + ECHO, 10171 + ECHO);
	assert_int_equal(lease_next_beat(&lease, 10171 + ECHO), 10171 + ECHO + DELAY);
	lease_note_proof(&lease, 10171 + ECHO + DELAY, 10171 + ECHO + DELAY);
	assert_false(lease_is_doubtful(&lease));
	assert_int_equal(lease_end(&lease), 10151 + T - MARGIN);
}

/* Neither a session that begins after it, nor one that cannot end unnoticed. */
static void test_no_doubt(void **state)
{
	struct lease lease;

	begin_well(&lease, 10000);
	lease_doubt(&lease, 10100);
	lease_begin(&lease, T, 10100);
	lease_connect(&lease, T, INT64_MIN);
	lease_note_proof(&lease, 10110, 10120);
	assert_false(lease_is_doubtful(&lease));
	lease_begin(&lease, 0, INT64_MIN);
	lease_doubt(&lease, 10100);
	assert_false(lease_is_doubtful(&lease));
	assert_true(lease_holds(&lease, 10100));
}

static void test_another_process_goes_on(void **state)
{
	for (int64_t timeout_ms = 1; timeout_ms < 5000; timeout_ms++) {
		struct lease lease, next;

		lease_begin(&lease, timeout_ms, 10000);
		assert_int_equal(lease_tell(&lease), INT64_MIN);
		lease_note_proof(&lease, 10010, 10020);
		lease_begin(&next, 0, 10030);
		lease_resume(&next, timeout_ms, lease_tell(&lease), false);
		assert_int_equal(lease_end(&next), lease_end(&lease));
		/* Told by a program that counts so long from a heartbeat. */
		assert_true(lease_end(&next) <= lease_tell(&lease) + timeout_ms * 6 / 10 + 2);
		lease_begin(&next, 0, 10030);
		lease_resume(&next, timeout_ms, INT64_MIN, false);
		assert_int_equal(lease_end(&next), INT64_MIN);
	}
}

/* A doubt that is not dispelled is the next process's, too. */
static void test_doubt_goes_on(void **state)
{
	struct lease lease;

	lease_begin(&lease, 0, 20000);
	lease_resume(&lease, T, 19000, true);
	assert_true(lease_is_doubtful(&lease));
	lease_connect(&lease, T, INT64_MIN);
	lease_note_proof(&lease, 20100,
			 20110); /* proves the connection, which was at 20000 or later */
	assert_true(lease_is_doubtful(&lease));
	lease_note_answer(&lease, 20110 + ECHO, 20120 + ECHO);
	lease_note_proof(&lease, 20120 + ECHO + DELAY, 20120 + ECHO + DELAY);
	assert_false(lease_is_doubtful(&lease));
}

/* What each answer of the store says. */
static void test_operations(void **state)
{
	static const struct {
		enum store_operation operation;
		int error;
		bool proves;
	} answers[] = {
		{STORE_PLACE, 0, true},	      {STORE_PLACE, -EACCES, false},
		{STORE_PLACE, -EIO, false},   {STORE_PLACE, -ECONNRESET, false},
		{STORE_WITHDRAW, 0, true},    {STORE_WITHDRAW, -EACCES, false},
		{STORE_PROVE, 0, true},	      {STORE_PROVE, -ENOENT, true},
		{STORE_PROVE, -EACCES, true}, {STORE_PROVE, -ESTALE, true},
		{STORE_PROVE, -EIO, false},   {STORE_PROVE, -ECONNRESET, false},
		{STORE_ALTER, 0, true},	      {STORE_ALTER, -ENOENT, true},
		{STORE_ALTER, -EEXIST, true}, {STORE_ALTER, -ESTALE, true},
		{STORE_ALTER, -EACCES, true}, {STORE_ALTER, -ENOTDIR, true},
		{STORE_ALTER, -EIO, false},   {STORE_ALTER, -ECONNRESET, false},
		{STORE_FILES, 0, false},      {STORE_WRITE, 0, false},
		{STORE_LIST, 0, false},	      {STORE_WATCH, 0, false},
		{STORE_READ, 0, false},	      {STORE_LOOK, 0, false},
		{STORE_TOUCH, 0, false},      {STORE_TOUCH, -ECONNRESET, false},
	};

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct lease lease;

		lease_begin(&lease, T, 1000);
		assert_int_equal(lease_note_operation(&lease, answers[i].operation,
						      answers[i].error, 2000, 2010),
				 answers[i].proves);
		assert_int_equal(lease_end(&lease),
				 answers[i].proves ? 1000 + T - MARGIN : INT64_MIN);
	}
}

/* A touch is a sign, and an echo; but not one that was not answered. */
static void test_touch_is_a_sign_and_an_echo(void **state)
{
	enum { PROOF = 1020 + ECHO + DELAY };

	for (int which = 0; which < 4; which++) {
		int sign_error = which & 1 ? -ECONNRESET : 0;
		int echo_error = which & 2 ? -ECONNRESET : 0;
		struct lease lease;

		lease_begin(&lease, T, INT64_MIN);
		assert_false(lease_note_operation(&lease, STORE_TOUCH, sign_error, 1000, 1010));
		assert_false(lease_note_operation(&lease, STORE_TOUCH, echo_error, 1010 + ECHO,
						  1020 + ECHO));
		assert_int_equal(lease_note_operation(&lease, STORE_PROVE, 0, PROOF, PROOF + 10),
				 which == 0);
		assert_false(lease_note_operation(&lease, STORE_PROVE, 0, PROOF,
						  PROOF + 10)); /* nothing new */
	}
}

static void test_beats(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, 1000);
	lease_beat(&lease, 1000);
	lease_note_proof(&lease, 1000, 1010);
	assert_int_equal(lease_next_beat(&lease, 1010), 1000 + BEAT);
	assert_int_equal(lease_next_touch(&lease), 1000 + TOUCH_AMONG_BEATS);
	lease_beat(&lease, 1200);
	assert_int_equal(lease_next_beat(&lease, 1210), 1200 + BEAT);
	lease_touch(&lease, 1200 + T / 4 - 1);
	assert_int_equal(lease_next_touch(&lease), 1200 + T / 4 - 1 + TOUCH_AMONG_BEATS);
	lease_touch(&lease, 1200 + T / 4);
	assert_int_equal(lease_next_touch(&lease), 1200 + T / 4 + TOUCH);
}

/* Heartbeats and touches as they are sent: whenever the link goes, the lease lasts 0.61 of the
 * timeout from then on. */
static void test_beats_give_the_lease(void **state)
{
	enum { ROUND_TRIP = 20, MOST = 4 };
	struct {
		int64_t sent_ms;
		bool is_beat;
	} sent[MOST] = {{INT64_MIN, false}};
	struct lease lease;
	bool is_beating = false;
	int next = 0;

	for (int i = 0; i < MOST; i++)
		sent[i].sent_ms = INT64_MIN;
	lease_begin(&lease, T, 0);
	for (int64_t ms = 0; ms < 20 * T; ms++) {
		for (int i = 0; i < MOST; i++) {
			if (sent[i].sent_ms + ROUND_TRIP != ms)
				continue;
			if (sent[i].is_beat)
				lease_note_proof(&lease, sent[i].sent_ms, ms);
			else
				lease_note_answer(&lease, sent[i].sent_ms, ms);
			is_beating &= !sent[i].is_beat;
		}
		if (ms >= 2 * T)
			assert_true(lease_holds(&lease, ms + T * 61 / 100));
		sent[next].is_beat = !is_beating && lease_next_beat(&lease, ms) <= ms;
		if (sent[next].is_beat)
			lease_beat(&lease, ms);
		else if (lease_next_touch(&lease) <= ms)
			lease_touch(&lease, ms);
		else
			continue;
		is_beating |= sent[next].is_beat;
		sent[next].sent_ms = ms;
		next = (next + 1) % MOST;
	}
}

/* The link is away for 0.6 of the timeout, again and again, for as long as it is there between: a
 * connection and a heartbeat each time are enough, for ever. */
static void test_each_connection_renews(void **state)
{
	enum { AWAY = T * 6 / 10 };
	struct lease lease;
	int64_t ms = 0;

	lease_begin(&lease, T, ms);
	lease_connect(&lease, T, ms);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(lease_next_beat(&lease, ms + 5), INT64_MIN);
		lease_beat(&lease, ms + 5);
		lease_note_proof(&lease, ms + 5, ms + 10);
		assert_int_equal(lease_end(&lease), ms + T - MARGIN);
		ms += 10 + AWAY;
		assert_true(lease_holds(&lease, ms));
		lease_connect(&lease, T, ms);
		assert_true(lease_holds(&lease, ms));
	}
}

/* Signs are too old: the next heartbeat comes as soon as it proves a later one. */
static void test_waits_for_a_sign_that_is_young(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, 0);
	lease_note_answer(&lease, 10, 20);
	/* A while of silence. */
	lease_beat(&lease, 3500);
	lease_note_proof(&lease, 3500, 3510);
	assert_true(lease_holds(&lease, 3510));
	assert_false(lease_can_be_renewed(&lease, 3510));
	for (int64_t ms = 3500 + BEAT; ms < 3510 + ECHO; ms += BEAT) {
		assert_int_equal(lease_next_beat(&lease, ms - 1), ms);
		lease_beat(&lease, ms);
		lease_note_proof(&lease, ms, ms + 10);
		assert_false(lease_can_be_renewed(&lease, ms + 10));
	}
	lease_note_answer(&lease, 3510 + ECHO, 3520 + ECHO);
	assert_int_equal(lease_next_beat(&lease, 3520 + ECHO), 3520 + ECHO + DELAY);
	lease_beat(&lease, 3520 + ECHO + DELAY);
	lease_note_proof(&lease, 3520 + ECHO + DELAY, 3530 + ECHO + DELAY);
	assert_int_equal(lease_end(&lease), 3500 + T - MARGIN);
	assert_true(lease_can_be_renewed(&lease, 3530 + ECHO + DELAY));
}

/* However many answers come, the signs that are needed are kept. */
static void test_many_answers(void **state)
{
	for (int step = 1; step < 300; step += 7) {
		struct lease lease;
		int64_t end_ms = INT64_MIN;

		lease_begin(&lease, T, 0);
		for (int64_t ms = 0; ms < 5 * T; ms += step) {
			lease_note_proof(&lease, ms, ms + 300);
			assert_true(lease.signs_count <= LEASE_SIGNS_MAX);
			assert_true(lease_end(&lease) >= end_ms);
			end_ms = lease_end(&lease);
			if (ms >= T)
				assert_true(end_ms >= ms - 2 * 300 - ECHO - DELAY -
							      3 * (step + T / 32) + T - MARGIN);
		}
	}
	for (int step = 100; step < 5000; step += 300) {
		struct lease lease;
		int64_t ms;

		lease_begin(&lease, T, INT64_MIN);
		for (ms = 0; ms < 100 * T; ms += step)
			lease_note_answer(&lease, ms, ms + 5);
		lease_note_proof(&lease, ms, ms);
		assert_true(lease_end(&lease) >=
			    ms - 2 * 5 - ECHO - DELAY - 2 * step - T / 32 + T - MARGIN);
	}
}

/* Servers in all phases: signs at the times of an idle client, then heartbeats; the follower tells
 * the leader at each of its pings, half a tick apart; it is lost at the worst moment. */
static void test_no_lease_outlasts_the_session(void **state)
{
	enum { HALF_TICK = T / 4 };

	for (int ping = 0; ping < HALF_TICK; ping += 13) {
		for (int first = 3 * T; first < 3 * T + TOUCH; first += 17) {
			struct lease lease;
			int64_t heard_ms = 0, noted_ms = INT64_MIN, next_ms = 0;

			lease_begin(&lease, T, 0);
			lease_connect(&lease, T, INT64_MIN);
			for (int64_t ms = 0; ms < 6 * T; ms++) {
				if (ms % HALF_TICK == ping && noted_ms != INT64_MIN) {
					heard_ms = ms;
					noted_ms = INT64_MIN;
				}
				if (ms == next_ms || ms == first) {
					if (ms >= first)
						lease_note_proof(&lease, ms, ms);
					else
						lease_note_answer(&lease, ms, ms);
					noted_ms = ms;
					next_ms = ms + (ms >= first ? BEAT : TOUCH);
				}
				/* Also by a clock that is 1 % slow. */
				if (lease_end(&lease) != INT64_MIN)
					assert_true((lease_end(&lease) - ms) * 101 / 100 <
						    heard_ms + T - ms);
				/* And the first lease is worth having. */
				if (ms == first) {
					assert_true(lease_end(&lease) >= ms + T * 42 / 100);
					assert_true(lease_can_be_renewed(&lease, ms));
				}
				if (ms > first)
					assert_true(lease_holds(&lease, ms));
			}
		}
	}
}

static void test_a_new_session_begins_anew(void **state)
{
	struct lease lease;

	lease_begin(&lease, T, 0);
	lease_beat(&lease, 1000);
	lease_note_proof(&lease, 1000, 1000);
	lease_begin(&lease, T, 2000);
	assert_false(lease_holds(&lease, 1000));
	assert_int_equal(lease_next_beat(&lease, 2000), INT64_MIN);
}

static void test_a_session_that_cannot_end_unnoticed(void **state)
{
	struct lease lease;

	lease_begin(&lease, 0, INT64_MIN);
	assert_true(lease_holds(&lease, 0));
	assert_true(lease_holds(&lease, INT64_MAX - 1));
	assert_true(lease_can_be_renewed(&lease, 0));
	assert_int_equal(lease_end(&lease), INT64_MAX);
	assert_int_equal(lease_next_beat(&lease, 0), INT64_MAX);
	assert_int_equal(lease_next_touch(&lease), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_proven_at_first),
		cmocka_unit_test(test_a_sign_alone_proves_nothing),
		cmocka_unit_test(test_a_write_alone_proves_nothing),
		cmocka_unit_test(test_a_write_after_the_echo_proves_a_sign),
		cmocka_unit_test(test_what_is_answered_together_proves_nothing),
		cmocka_unit_test(test_a_write_and_then_an_answer_prove_a_sign),
		cmocka_unit_test(test_a_write_proves_from_when_it_was_sent),
		cmocka_unit_test(test_earlier_writes_prove_nothing_new),
		cmocka_unit_test(test_a_new_session_has_a_lease_at_once),
		cmocka_unit_test(test_a_connection_proves),
		cmocka_unit_test(test_each_connection_renews),
		cmocka_unit_test(test_a_doubt),
		cmocka_unit_test(test_no_doubt),
		cmocka_unit_test(test_another_process_goes_on),
		cmocka_unit_test(test_doubt_goes_on),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_touch_is_a_sign_and_an_echo),
		cmocka_unit_test(test_beats),
		cmocka_unit_test(test_beats_give_the_lease),
		cmocka_unit_test(test_waits_for_a_sign_that_is_young),
		cmocka_unit_test(test_many_answers),
		cmocka_unit_test(test_no_lease_outlasts_the_session),
		cmocka_unit_test(test_a_new_session_begins_anew),
		cmocka_unit_test(test_a_session_that_cannot_end_unnoticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
