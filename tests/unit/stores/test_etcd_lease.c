/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of etcd's leases; and, against servers as stores/etcd/lease.h describes them, that
 * no lease is believed in for longer than the leader keeps it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stores/etcd/lease.h"

enum { T = 4000, MARGIN = T / 40, BEAT = T / 8 };

static struct etcd_lease lease;

static int begin(void **state)
{
	etcd_lease_begin(&lease, T);
	return 0;
}

static void test_nothing_is_proven_at_first(void **state)
{
	assert_int_equal(etcd_lease_end(&lease), INT64_MIN);
	assert_false(etcd_lease_grants(&lease, 0));
	assert_int_equal(etcd_lease_next_beat(&lease), INT64_MIN);
}

static void test_a_grant_counts_from_its_sending(void **state)
{
	etcd_lease_note_grant(&lease, 1000);
	assert_int_equal(etcd_lease_end(&lease), 1000 + T - MARGIN);
	assert_true(etcd_lease_grants(&lease, 1000));
	assert_true(etcd_lease_grants(&lease, 1000 + T / 2));
	assert_false(etcd_lease_grants(&lease, 1000 + T - MARGIN - BEAT));
}

/* A keep-alive that is sent and answered by the member. Returns what the answer tells. */
static bool keep(int64_t answered_ms, uint64_t member)
{
	(void)etcd_lease_send_sign(&lease);
	return etcd_lease_note_sign(&lease, answered_ms, member);
}

static void test_a_keep_alive_alone_proves_nothing(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	for (int64_t ms = 0; ms < T - MARGIN; ms += BEAT)
		assert_true(keep(ms, 7));
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN);
}

static void test_an_answer_of_the_quorum_alone_proves_nothing(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	etcd_lease_note_proof(&lease, 2000, 7);
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN);
}

static void test_a_later_keep_alive_renews(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	(void)etcd_lease_send_sign(&lease);
	etcd_lease_note_proof(&lease, 1000, 7);
	/* It was under way. */
	assert_true(etcd_lease_note_sign(&lease, 1020, 7));
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN);
	(void)etcd_lease_send_sign(&lease);
	etcd_lease_note_proof(&lease, 1100, 7);
	assert_true(etcd_lease_note_sign(&lease, 1200, 7));
	assert_int_equal(etcd_lease_end(&lease), 1000 + T - MARGIN);
	/* One of before is late. */
	etcd_lease_note_proof(&lease, 900, 7);
	keep(1210, 7);
	assert_int_equal(etcd_lease_end(&lease), 1100 + T - MARGIN);
}

static void test_two_members_renew_nothing(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	etcd_lease_note_proof(&lease, 1000, 7);
	keep(1020, 8);
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN);
	etcd_lease_note_proof(&lease, 900, 8);
	keep(1040, 8);
	assert_int_equal(etcd_lease_end(&lease), 900 + T - MARGIN);
	/* Nor does one that has started anew. */
	etcd_lease_note_proof(&lease, 1100, 8);
	etcd_lease_disconnect(&lease);
	keep(1120, 8);
	assert_int_equal(etcd_lease_end(&lease), 900 + T - MARGIN);
}

static void test_a_keep_alive_that_lets_grant_is_sent_at_once(void **state)
{
	assert_false(etcd_lease_lacks_sign(&lease, 0));
	etcd_lease_note_proof(&lease, 1000, 7);
	assert_true(etcd_lease_lacks_sign(&lease, 1010));
	keep(1020, 7);
	assert_true(etcd_lease_grants(&lease, 1020));
	/* It has time. */
	etcd_lease_note_proof(&lease, 1030, 7);
	assert_false(etcd_lease_lacks_sign(&lease, 1040));
	etcd_lease_doubt(&lease, 1050);
	assert_true(etcd_lease_lacks_sign(&lease, 1060));
	keep(1070, 7);
	assert_false(etcd_lease_lacks_sign(&lease, 1080)); /* that was sent before the doubt */
	assert_true(etcd_lease_is_doubtful(&lease));
}

static void test_a_lease_that_may_have_been_over_is_given_up(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	etcd_lease_note_proof(&lease, 1000, 7);
	assert_true(keep(T - MARGIN - 1, 7));
	/* Signs alone do not put that off. */
	assert_true(keep(1000 + T - MARGIN - 1, 7));
	assert_false(keep(1000 + T - MARGIN, 7));
}

static void test_another_process_goes_on(void **state)
{
	etcd_lease_resume(&lease, T, 500, 3500, true);
	assert_int_equal(etcd_lease_end(&lease), 500 + T - MARGIN);
	assert_true(etcd_lease_is_doubtful(&lease));
	assert_true(keep(500 + T - MARGIN - 1, 7));
	etcd_lease_resume(&lease, T, 500, 3500, false);
	assert_false(etcd_lease_is_doubtful(&lease));
	assert_false(keep(500 + T - MARGIN, 7));
	/* Nothing is known of it. */
	etcd_lease_resume(&lease, T, INT64_MIN, 3500, false);
	assert_true(keep(9010, 7));
	assert_int_equal(etcd_lease_end(&lease), INT64_MIN);
}

static void test_heartbeats(void **state)
{
	etcd_lease_note_beat(&lease, 1000);
	assert_int_equal(etcd_lease_next_beat(&lease), 1000 + BEAT);
	assert_int_equal(etcd_lease_keep_alive_ms(&lease), BEAT);
}

static void test_each_keep_alive_has_a_proof(void **state)
{
	assert_false(etcd_lease_send_sign(&lease));
	etcd_lease_note_proof(&lease, 1000, 7);
	assert_true(etcd_lease_send_sign(&lease));
	assert_false(etcd_lease_send_sign(&lease));
	etcd_lease_disconnect(&lease);
	assert_false(etcd_lease_send_sign(&lease));
}

static void test_a_doubt_ends_with_a_later_proof(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	etcd_lease_note_beat(&lease, 90);
	etcd_lease_doubt(&lease, 100);
	assert_true(etcd_lease_is_doubtful(&lease));
	assert_false(etcd_lease_grants(&lease, 101));
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN); /* what is held stays held */
	assert_int_equal(etcd_lease_next_beat(&lease), 101);
	etcd_lease_note_beat(&lease, 101);
	assert_int_equal(etcd_lease_next_beat(&lease), 101 + BEAT);
	etcd_lease_note_proof(&lease, 100, 7);
	keep(120, 7);
	assert_true(etcd_lease_is_doubtful(&lease));
	etcd_lease_note_proof(&lease, 101, 7);
	keep(130, 7);
	assert_false(etcd_lease_is_doubtful(&lease));
	assert_true(etcd_lease_grants(&lease, 130));
}

/* The servers: the leader, and what two members know of it. */
enum { MEMBERS = 2 };

static struct {
	uint64_t term, known[MEMBERS];
	int64_t expiry_ms; /* by the leader */
} servers;

static uint64_t draws;

/* As in splitmix64 (Steele, Lea, Flood 2014). */
static int64_t draw(int64_t below)
{
	uint64_t z = draws += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}

/* lessor.Renew at `ms`, by the leader that the member knows: by one who is none any more it changes
 * nothing. */
static void serve_keep_alive(int64_t ms, int member)
{
	if (servers.known[member] == servers.term)
		servers.expiry_ms = ms + T;
}

/* lessor.Promote of another member. */
static void change_leader(int64_t ms)
{
	servers.term++;
	servers.expiry_ms = ms + T;
}

/* What is between a request and its answer: perhaps there is another leader by then. */
static void pass(int64_t *now_ms)
{
	*now_ms += draw(300);
	if (draw(8) == 0)
		change_leader(*now_ms);
}

static void ask_quorum(int64_t *now_ms, int member)
{
	int64_t sent_ms = *now_ms;

	pass(now_ms);
	servers.known[member] = servers.term;
	pass(now_ms);
	etcd_lease_note_proof(&lease, sent_ms, (uint64_t)member + 1);
}

/* Perhaps the quorum is asked while the keep-alive is under way, or its answer. Returns until when
 * who trusts keep-alives alone believes in the lease. */
static int64_t keep_alive(int64_t *now_ms, int member)
{
	int64_t sent_ms = *now_ms;

	(void)etcd_lease_send_sign(&lease);
	pass(now_ms);
	if (draw(4) == 0)
		ask_quorum(now_ms, member);
	serve_keep_alive(*now_ms, member);
	pass(now_ms);
	if (draw(4) == 0)
		ask_quorum(now_ms, member);
	etcd_lease_note_sign(&lease, *now_ms, (uint64_t)member + 1);
	return sent_ms + T - MARGIN;
}

/* Goes through one history, in steps of what happens next. Returns whether who trusts keep-alives
 * alone was ever wrong. */
static bool run_history(uint64_t seed)
{
	int64_t now_ms = 0, trusted_ms = 0;
	bool was_wrong = false;
	int member = 0;

	draws = seed;
	servers.term = servers.known[0] = servers.known[1] = 7;
	servers.expiry_ms = T;
	etcd_lease_begin(&lease, T);
	etcd_lease_note_grant(&lease, 0);
	for (int step = 0; step < 60; step++) {
		switch (draw(6)) {
		case 0:
			now_ms += draw(T / 2);
			change_leader(now_ms);
			break;
		case 1:
			member = (int)draw(MEMBERS);
			break;
		case 2:
			ask_quorum(&now_ms, member);
			break;
		case 3:
			now_ms += draw(T / 4);
			break;
		default:
			trusted_ms = keep_alive(&now_ms, member);
		}
		assert_true(etcd_lease_end(&lease) < servers.expiry_ms);
		was_wrong = was_wrong || trusted_ms >= servers.expiry_ms;
	}
	return was_wrong;
}

static void test_no_lease_is_believed_in_for_too_long(void **state)
{
	int wrong = 0;

	for (uint64_t seed = 1; seed <= 20000; seed++)
		wrong += run_history(seed);
	/* Else the histories would show nothing. */
	assert_true(wrong > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nothing_is_proven_at_first, begin),
		cmocka_unit_test_setup(test_a_grant_counts_from_its_sending, begin),
		cmocka_unit_test_setup(test_a_keep_alive_alone_proves_nothing, begin),
		cmocka_unit_test_setup(test_an_answer_of_the_quorum_alone_proves_nothing, begin),
		cmocka_unit_test_setup(test_a_later_keep_alive_renews, begin),
		cmocka_unit_test_setup(test_two_members_renew_nothing, begin),
		cmocka_unit_test_setup(test_a_keep_alive_that_lets_grant_is_sent_at_once, begin),
		cmocka_unit_test_setup(test_a_lease_that_may_have_been_over_is_given_up, begin),
		cmocka_unit_test_setup(test_another_process_goes_on, begin),
		cmocka_unit_test_setup(test_heartbeats, begin),
		cmocka_unit_test_setup(test_each_keep_alive_has_a_proof, begin),
		cmocka_unit_test_setup(test_a_doubt_ends_with_a_later_proof, begin),
		cmocka_unit_test_setup(test_no_lease_is_believed_in_for_too_long, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
