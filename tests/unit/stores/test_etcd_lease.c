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

static void test_a_keep_alive_alone_proves_nothing(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	for (int64_t ms = 0; ms < T; ms += BEAT)
		etcd_lease_note_sign(&lease, ms, ms + 1, 7);
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN);
}

static void test_an_answer_of_the_quorum_alone_proves_nothing(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	assert_false(etcd_lease_note_proof(&lease, 2000, 7));
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN);
}

static void test_a_later_answer_proves_a_keep_alive(void **state)
{
	etcd_lease_note_sign(&lease, 1000, 1010, 7);
	/* It may have been sent before the answer came. */
	assert_false(etcd_lease_note_proof(&lease, 1010, 7));
	assert_true(etcd_lease_note_proof(&lease, 1011, 7));
	assert_int_equal(etcd_lease_end(&lease), 1000 + T - MARGIN);
}

static void test_an_answer_of_another_term_proves_nothing(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	etcd_lease_note_sign(&lease, 1000, 1010, 7);
	etcd_lease_note_sign(&lease, 1500, 1510, 8);
	assert_true(etcd_lease_note_proof(&lease, 1600, 8));
	assert_int_equal(etcd_lease_end(&lease), 1500 + T - MARGIN);
	etcd_lease_note_sign(&lease, 2000, 2010, 8);
	assert_false(etcd_lease_note_proof(&lease, 2100, 9));
	/* Nor does one that comes later still. */
	assert_false(etcd_lease_note_proof(&lease, 2200, 8));
	assert_int_equal(etcd_lease_end(&lease), 1500 + T - MARGIN);
}

static void test_more_keep_alives_than_are_kept(void **state)
{
	for (int i = 0; i < 3 * ETCD_SIGNS_MAX; i++)
		etcd_lease_note_sign(&lease, i * 10, i * 10 + 5, 7);
	assert_true(etcd_lease_note_proof(&lease, 1000, 7));
	assert_int_equal(etcd_lease_end(&lease), (3 * ETCD_SIGNS_MAX - 1) * 10 + T - MARGIN);
}

static void test_a_lease_that_may_have_been_over_is_given_up(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	assert_true(etcd_lease_note_sign(&lease, 1000, 1010, 7));
	assert_true(etcd_lease_note_sign(&lease, 2000, 1000 + T - MARGIN - 1, 8));
	/* From when it was sent on, not from its answer. */
	assert_false(etcd_lease_note_sign(&lease, 4000, 2000 + T - MARGIN, 8));
	etcd_lease_begin(&lease, T);
	etcd_lease_note_grant(&lease, 0);
	assert_false(etcd_lease_note_sign(&lease, T, T, 7));
}

static void test_another_process_goes_on(void **state)
{
	lease.kept_ms = 3000;
	etcd_lease_resume(&lease, T, 500, 3500, true);
	assert_int_equal(etcd_lease_end(&lease), 500 + T - MARGIN);
	assert_true(etcd_lease_is_doubtful(&lease));
	assert_true(etcd_lease_note_sign(&lease, 3600, 3000 + T - MARGIN - 1, 7));
	etcd_lease_begin(&lease, T);
	lease.kept_ms = 100;
	etcd_lease_resume(&lease, T, 500, 3500, false);
	assert_false(etcd_lease_is_doubtful(&lease));
	assert_false(etcd_lease_note_sign(&lease, 3600, 500 + T - MARGIN, 7));
	/* Nothing is known of it. */
	etcd_lease_begin(&lease, T);
	etcd_lease_resume(&lease, T, INT64_MIN, 3500, false);
	assert_true(etcd_lease_note_sign(&lease, 9000, 9010, 7));
	assert_int_equal(etcd_lease_end(&lease), INT64_MIN);
}

static void test_heartbeats(void **state)
{
	etcd_lease_note_beat(&lease, 1000);
	assert_int_equal(etcd_lease_next_beat(&lease), 1000 + BEAT);
	assert_int_equal(etcd_lease_keep_alive_ms(&lease), BEAT);
}

static void test_a_doubt_ends_with_a_later_keep_alive(void **state)
{
	etcd_lease_note_grant(&lease, 0);
	etcd_lease_note_sign(&lease, 90, 95, 7);
	etcd_lease_note_beat(&lease, 98);
	etcd_lease_doubt(&lease, 100);
	assert_true(etcd_lease_is_doubtful(&lease));
	assert_false(etcd_lease_grants(&lease, 101));
	assert_int_equal(etcd_lease_end(&lease), T - MARGIN); /* what is held stays held */
	etcd_lease_note_proof(&lease, 110, 7);
	assert_true(etcd_lease_is_doubtful(&lease));
	etcd_lease_note_sign(&lease, 101, 120, 7);
	assert_int_equal(etcd_lease_next_beat(&lease), 121);
	assert_true(etcd_lease_note_proof(&lease, 121, 7));
	assert_false(etcd_lease_is_doubtful(&lease));
	assert_true(etcd_lease_grants(&lease, 130));
}

/* The servers: the leader, and one that has been leader and goes on as if it were. */
static struct {
	uint64_t term, stale_term;
	int64_t expiry_ms; /* by the leader */
	bool over;
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

/* lessor.Renew at `ms`, by the leader or by the former one, as a member passes it on which is of
 * the term in *ret_term when it has got the request (LeaseServer.leaseKeepAlive). */
static void serve_keep_alive(int64_t ms, bool stale, uint64_t *ret_term)
{
	if (stale && servers.stale_term != 0) {
		*ret_term = servers.stale_term;
		return;
	}
	*ret_term = servers.term;
	servers.expiry_ms = ms + T;
}

/* lessor.Promote of another member. */
static void change_leader(int64_t ms)
{
	servers.stale_term = servers.term++;
	servers.expiry_ms = ms + T;
}

/* Goes through one history, in steps of what happens next. Returns whether who trusts keep-alives
 * alone was ever wrong. */
static bool run_history(uint64_t seed)
{
	int64_t now_ms = 0, trusted_ms = 0;
	bool was_wrong = false;

	draws = seed;
	servers.term = 7;
	servers.stale_term = 0;
	servers.expiry_ms = T;
	etcd_lease_begin(&lease, T);
	etcd_lease_note_grant(&lease, 0);
	for (int step = 0; step < 60; step++) {
		int64_t sent_ms = now_ms, served_ms = now_ms + draw(300);
		bool stale = draw(3) == 0;
		uint64_t term;

		switch (draw(4)) {
		case 0:
			now_ms += draw(T / 2);
			change_leader(now_ms);
			break;
		case 1:
			serve_keep_alive(served_ms, stale, &term);
			/* An election while the answer is on its way. */
			if (draw(8) == 0)
				change_leader(served_ms + draw(200));
			now_ms = served_ms + draw(300);
			etcd_lease_note_sign(&lease, sent_ms, now_ms, term);
			trusted_ms = sent_ms + T - MARGIN;
			break;
		case 2:
			/* The member that answers may learn of a later term before it does. */
			term = servers.term;
			if (draw(8) == 0) {
				change_leader(served_ms);
				term = servers.term;
			}
			now_ms = served_ms + draw(300);
			etcd_lease_note_proof(&lease, sent_ms, term);
			break;
		default:
			now_ms += draw(T / 4);
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
		cmocka_unit_test_setup(test_a_later_answer_proves_a_keep_alive, begin),
		cmocka_unit_test_setup(test_an_answer_of_another_term_proves_nothing, begin),
		cmocka_unit_test_setup(test_more_keep_alives_than_are_kept, begin),
		cmocka_unit_test_setup(test_a_lease_that_may_have_been_over_is_given_up, begin),
		cmocka_unit_test_setup(test_another_process_goes_on, begin),
		cmocka_unit_test_setup(test_heartbeats, begin),
		cmocka_unit_test_setup(test_a_doubt_ends_with_a_later_keep_alive, begin),
		cmocka_unit_test_setup(test_no_lease_is_believed_in_for_too_long, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
