/* SPDX-License-Identifier: Apache-2.0
 *
 * The service's end of one session of a store_faulty, and the operations on their way there.
 * For the files of faulty_client.h.
 *
 * The service ends a session when its servers' rules say so (faulty_servers.h). A server that is
 * cut off goes on answering, but only what it knows by itself: reads, up to the first write. It may
 * be stale: then it shows what was when it was cut off, and only a synced list finds it up to date
 * for a moment. So may one that the client has come to after a broken connection.
 */
#ifndef DLOCKFS_FAULTY_SESSION_H
#define DLOCKFS_FAULTY_SESSION_H

#include "faulty_item.h"
#include "faulty_servers.h"
#include "store_faulty.h"

struct session {
	struct local_service *service;
	struct store *inner; /* a store_local; dispatched behind each operation */
	struct faulty *faulty;
	const struct faulty_settings *settings;

	bool over;    /* the client has given it up: nobody is answered */
	bool expired; /* the service has ended it */
	bool cut_off; /* its server is */
	bool lags;    /* or it is behind since the last connection broke */
	bool stale;   /* it does not hear of anything */
	struct servers servers;

	struct item *sent;     /* what has not arrived, in the order of the calls */
	struct item *keep;     /* the keep-alive that has not; NULL: there is none */
	struct item *watching; /* watches and attentions that stand */
	struct item *known;    /* to a stale server: queues (LIST) and data (READ) */
	uint64_t attentions;   /* so far */
	struct session *prev, *next;
};

/* A session whose answers go to faulty_answered(). */
struct session *session_create(struct local_service *service, struct faulty *faulty,
			       const struct faulty_settings *settings);
void session_free(struct session *session);

/* Whether its client sends nothing, not even pings. */
void session_set_silent(struct session *session, bool silent);

/* Its connection is broken; perhaps because the server is lost. */
void session_lose_server(struct session *session);

/* When the service can end it at the earliest if its server is lost now; INT64_MIN: it has. */
int64_t session_soonest_end_ms(struct session *session);

/* The service ends it: its claims and watches are gone, nothing arrives any more. */
void session_expire(struct session *session);

/* The session goes on without the client: what is on the wire arrives, and at close_ms (INT64_MAX:
 * never) the word that it is over. The end shows in `expired`, and once more as something due if it
 * was there before. */
void session_give_up(struct session *session, int64_t close_ms);

/* Nobody hears of what was sent: of that only what is on the wire still arrives; nor of what was
 * watched. */
void session_orphan(struct session *session);

/* Its server is cut off, or is not any more: then it catches up. */
void session_cut_off(struct session *session, bool cut_off);

/* As store_faulty_glimpse(). */
bool session_glimpse(struct session *session);

/* The connection breaks: perhaps the next server lags behind. It knows what was before the last
 * operation that still arrived, until something arrives there that others have to hear of, or it
 * keeps up by itself. */
void session_lag(struct session *session);
void session_keep_up(struct session *session);

/* A keep-alive is on its way; it will not be answered. Takes the item. */
void session_keep(struct session *session, struct item *item);
void session_drop_keep(struct session *session);

/* An operation arrives, whether or not its time has come. */
void session_arrive(struct session *session, struct item *item);

/* The service has answered an operation, which is in no list. Takes the item. Returns whether
 * somebody waits for that; the caller may still add to the answer. */
bool session_answer(struct item *item, int error);

/* When the next thing happens to it; INT64_MAX: nothing will. */
int64_t session_due(struct session *session);

/* Lets that happen. */
void session_step(struct session *session);

/* faulty_news.c: the answer to an operation that is in no list. Takes the item. */
void faulty_answered(struct faulty *faulty, struct item *item);

#endif
