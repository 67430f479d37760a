/* SPDX-License-Identifier: Apache-2.0
 *
 * Argued: once a sign, its echo and a proof are answered, the leader, and each one that comes after
 * it, counts the session from when the sign was sent, or later. So the lease ends before that.
 *
 * Where: src/stores/zookeeper/lease.h; lease_note_answer(), lease_connect() and prove() of lease.c.
 *
 * Abstracted: one sign stands for all. Whether a leader counts from the sign or later is one bit,
 * and so is what a follower has noted. A leader that serves the session itself is touched by each
 * request: that needs no model. One clock serves all: the T/40 is for their speeds.
 *
 * Messages keep their order on a link, and are not doubled. They may be late without bound, but for
 * one ping (below). What the follower sends to the leader may be lost from any moment on, while
 * what the leader has sent arrives. With a connection all that is under way on it is lost, and what
 * the follower has noted. The client comes back through a server of the leader or of a former one.
 *
 * Clocks: a unit stands for T/20. The leader may stand still at any time, for any time, and another
 * one may be elected at any time.
 *
 * Assumed of a leader that has answered while it owed a ping: it does not stand still again before
 * it pings (-DRESTLESS), and that ping is not late on the link (-DSLOW_LINK). Without one of
 * these the lease is believed for too long if besides the follower is cut off before it has told
 * what it noted.
 *
 * Mutants:
 *   -DECHO_AT_ONCE      proven  the echo does not wait for half a tick
 *   -DECHO_SINCE_SENT   proven  the half tick counts from when the sign was sent, not answered
 *   -DPROOF_AT_ONCE     proven  the proof does not wait for a ping that is late
 *   -DANY_SERVER        proven  the follower's own answer counts as an echo
 *   -DNO_QUORUM         proven  no write has to be acknowledged: a former leader may answer all
 *   -DOLD_WRITE         proven  a write counts that was sent before the sign
 *   -DSHORT_TERM        proven  a new leader does not give sessions their full timeout
 *   -DRESTLESS          proven  see above
 *   -DSLOW_LINK         proven  see above
 */
#define HALF_TICK 2
#ifdef ECHO_AT_ONCE
#define ECHO_WAIT 0
#else
#define ECHO_WAIT HALF_TICK
#endif
#ifdef PROOF_AT_ONCE
#define PROOF_WAIT 0
#else
#define PROOF_WAIT 1
#endif
#ifdef ECHO_SINCE_SENT
#define counts_since (is_sent)
#else
#define counts_since (sign == ANSWERED || sign == ECHOED)
#endif
#ifdef RESTLESS
#define may_stop true
#else
#define may_stop !owes
#endif
#ifdef SLOW_LINK
#define time_may_pass true
#else
#define time_may_pass !is_late
#endif

mtype = { READ, SYNC, WRITE };			  /* what the client asks for, */
mtype = { PING, TOLD };				  /* what leader and follower exchange, */
mtype = { OLD, SIGN, PLAIN, ECHO, PROOF };	  /* what a request is, when it is sent; */
mtype = { IN_TIME, LATE, NOTHING, NOTED };	  /* of a ping, and of what is told */
mtype = { NONE, SENT, ANSWERED, ECHOED, CONNECTED, PROVEN }; /* how far the sign is */

chan up = [1] of { mtype, mtype };   /* from the client to its server */
chan out = [2] of { mtype, mtype };  /* from that to its leader */
chan in = [2] of { mtype, mtype };   /* and back, to the client at once */

mtype sign = NONE;
byte since;		    /* the sign was answered, or its echo; in units */
bool quorum;		    /* a write is acknowledged that was sent with the sign or later */
bool counts[2];		    /* the leader counts from the sign, or later */
bit elected;		    /* who leads */
bit at;			    /* whom the server follows */
bool noted;		    /* by the server, since it told last */
bool deaf;		    /* the leader does not hear of the server any more */
bool is_connecting, is_touched;
bool is_stopped;	    /* the leader; */
byte since_ping;	    /* its ping, in units */
bool owes;		    /* it has answered since the ping was due */
bool is_late;		    /* such a ping is on its way */
hidden mtype what, role;    /* of one step */

#define is_sent (sign != NONE)
#define lacks_quorum (is_sent && !quorum)
#define may_echo (sign == ANSWERED && since >= ECHO_WAIT)
#define may_prove (sign == ECHOED && since >= PROOF_WAIT)

active proctype Client()
{
end:	do
	:: atomic { !is_connecting && nfull(up) && (!is_sent || lacks_quorum || may_echo || may_prove || sign == CONNECTED) ->
		if
		:: !is_sent -> what = WRITE; role = OLD
		:: !is_sent -> what = READ; role = SIGN; sign = SENT; since = 0
		:: lacks_quorum -> what = WRITE; role = PLAIN
		:: may_echo -> what = SYNC; role = ECHO
#ifdef ANY_SERVER
		:: may_echo -> what = READ; role = ECHO
#endif
		:: may_prove -> what = SYNC; role = PROOF
		:: sign == CONNECTED -> what = WRITE; role = PROOF
		fi;
		up ! what, role
	   }
	:: atomic { sign != PROVEN -> /* the connection is lost */
		do
		:: up ? what, role
		:: out ? what, role
		:: in ? what, role
		:: empty(up) && empty(out) && empty(in) -> break
		od;
		noted = false; deaf = false; quorum = false; is_connecting = true; is_touched = false;
		is_stopped = false; since_ping = 0; owes = false; is_late = false; since = 0;
		sign = (is_sent -> SENT : NONE);
		if
		:: at = elected
		:: at = 0
		fi
	   }
	:: atomic { is_connecting && !is_touched -> counts[at] = is_sent; is_touched = true }
	:: atomic { is_connecting && is_touched -> is_connecting = false; sign = (is_sent -> CONNECTED : NONE) }
	od
}

inline leader_answered()
{
#ifdef OLD_WRITE
	quorum = quorum || what == WRITE;
#elif defined(NO_QUORUM)
	quorum = true;
#else
	quorum = quorum || (what == WRITE && role != OLD);
#endif
	if
	:: role == ECHO && sign == ANSWERED -> sign = ECHOED; since = 0
	:: role == PROOF && quorum && sign != PROVEN ->
		sign = PROVEN;
		assert(counts[elected]) /* proven */
	:: else
	fi
}

active proctype Server()
{
end:	do
	:: atomic { nempty(up) && nfull(out) -> up ? what, role;
		noted = noted || is_sent;
		if
		:: what == READ && role == SIGN && sign == SENT ->
			sign = ANSWERED;
#ifndef ECHO_SINCE_SENT
			since = 0
#endif
#ifdef ANY_SERVER
		:: what == READ && role == ECHO -> sign = ECHOED; since = 0
#endif
		:: what != READ && !deaf -> out ! what, role
		:: what != READ && deaf
		fi
	   }
	:: atomic { nempty(in) && nfull(out) -> in ? what, role;
		if
		:: what == PING ->
			is_late = is_late && role != LATE;
			if
			:: !deaf -> out ! TOLD, (noted -> NOTED : NOTHING)
			:: deaf
			fi;
			noted = false
		:: what != PING -> leader_answered()
		fi
	   }
	:: atomic { !deaf && sign != PROVEN -> deaf = true;
		do
		:: out ? what, role
		:: empty(out) -> break
		od
	   }
	od
}

active proctype Leader()
{
end:	do
	:: atomic { !is_stopped && nempty(out) && nfull(in) -> out ? what, role;
		owes = owes || since_ping == HALF_TICK;
		if
		:: what == TOLD -> counts[at] = counts[at] || role == NOTED
		:: what == SYNC -> in ! what, role
		:: what == WRITE && at == elected -> in ! what, role
		:: what == WRITE && at != elected /* nobody acknowledges that any more */
		fi
	   }
	:: atomic { !is_stopped && !is_connecting && nfull(in) ->
		in ! PING, (owes -> LATE : IN_TIME);
		is_late = is_late || owes; owes = false; since_ping = 0
	   }
	:: atomic { !is_stopped && !is_connecting && may_stop -> is_stopped = true }
	:: atomic { is_stopped -> is_stopped = false; owes = (since_ping == HALF_TICK) }
	:: atomic { elected == 0 && sign != PROVEN -> elected = 1;
#ifndef SHORT_TERM
		counts[1] = is_sent
#endif
	   }
	od
}

active proctype Clock()
{
end:	do
	:: atomic { (is_stopped || since_ping < HALF_TICK) && time_may_pass ->
		since_ping = (since_ping < HALF_TICK -> since_ping + 1 : since_ping);
		since = (since < HALF_TICK && counts_since -> since + 1 : since)
	   }
	od
}
