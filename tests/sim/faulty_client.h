/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's end of a store_faulty: what it knows of its session, the events of watches that a
 * broken connection holds back (`fired`) and events that have not come (`news`). Operations that
 * have not arrived and watches that stand are the session's (faulty_session.h), those of sessions
 * that were given up too. An operation is one object that moves through these lists, and at last is
 * the event that answers it. For its own files, each of which calls those below it:
 *
 *   store_faulty.c       the store's operations, and what happens next
 *   faulty_deliver.c     events are delivered
 *   faulty_connection.c  the connection and the session, and the loss of them
 *   faulty_send.c        operations on their way to the service
 *   faulty_news.c        events on their way back
 */
#ifndef DLOCKFS_FAULTY_CLIENT_H
#define DLOCKFS_FAULTY_CLIENT_H

#include "faulty_files.h"
#include "faulty_lease.h"
#include "faulty_session.h"

struct faulty {
	struct store store;
	struct store_ops ops;
	struct local_service *service;
	struct session *session;
	struct session *given_up;
	struct faulty_settings settings;
	const struct store_events *events;
	void *context;
	struct faulty_lease lease;

	bool connected;		 /* the wire is, */
	int64_t connecting_ms;	 /* since then, by the client's clock */
	bool killed;		 /* the client is dead */
	bool paused;		 /* the client does not run */
	bool telling;		 /* CONNECTED or LOST is in the news since the last reconnect */
	enum store_session told; /* what the client knows */
	int64_t notice_ms;	 /* when the client sees that the connection is broken */
	int64_t arrival_ms;	 /* nothing arrives earlier than what was sent before it */
	int64_t delivery_ms;	 /* nothing is delivered earlier than what came before it */
	int64_t stream_ms;	 /* the same for events of watches, if they have a stream */
	uint64_t made;		 /* so many answers and events */

	struct item *fired, *news;
	struct file_question *questions; /* about lock files, not answered */
	struct item *unclaimed;		 /* watches: what is known to be no claim, */
	struct item *gone;		 /* or was told to be gone */
};

/* The client has lost the session by its own reckoning: it gives that up, and does not tell the
 * service. */
void faulty_give_up(struct faulty *faulty);

static inline struct faulty *faulty_of(const struct store *store)
{
	return (struct faulty *)store;
}

static inline int64_t faulty_now(const struct faulty *faulty)
{
	return *faulty->settings.now_ms;
}

/* What time it is by the client's clock. */
static inline int64_t faulty_client_clock(const struct faulty *faulty)
{
	const struct faulty_settings *settings = &faulty->settings;

	return settings->clock_ms != NULL ? settings->clock_ms(settings->context)
					  : faulty_now(faulty);
}

/* So long one way takes. */
static inline int64_t faulty_some_delay(struct faulty *faulty)
{
	return prng_below(faulty->settings.prng, faulty->settings.delay_ms + 1);
}

/* Whether only operations on one lock are in order (faulty_rules). */
static inline bool faulty_by_lock(const struct faulty *faulty)
{
	return faulty->settings.rules->by_lock;
}

/* faulty_news.c: puts an event on its way back; the item is taken. */
void faulty_tell(struct faulty *faulty, struct item *item, int64_t delay_ms);
void faulty_tell_session(struct faulty *faulty, enum store_session session, int64_t delay_ms);

/* The client learns that an operation failed, while its effect may be still to come. */
void faulty_answer_reset(struct faulty *faulty, struct item *item, int64_t delay_ms);

/* What is delivered next. */
struct item *faulty_first_news(const struct faulty *faulty);

/* faulty_send.c: an operation in the client's session, which is in no list. */
struct item *faulty_operation(struct store *store, enum item_kind kind, void *tag, const char *path,
			      const char *name);

/* Puts an operation on its way: to the service, or nowhere. Takes the item. */
void faulty_send(struct faulty *faulty, struct item *item);
void faulty_send_watch(struct faulty *faulty, void *tag, const char *path, const char *name);

/* Sends what waited for an answer, or for a connection. */
void faulty_send_waiting(struct faulty *faulty);

/* faulty_connection.c: nothing is known of the next session yet. */
void faulty_begin_lease(struct faulty *faulty, int64_t timeout_ms);
void faulty_begin_session(struct faulty *faulty);

/* The client pings only as long as nothing is wrong. */
void faulty_listen(struct faulty *faulty);

/* The client sees that the connection is broken. */
void faulty_notice(struct faulty *faulty);

/* The client forgets all events; or what was called in the session that is over, but for questions.
 */
void faulty_forget_all(struct faulty *faulty);
void faulty_forget(struct faulty *faulty);

/* faulty_deliver.c: delivers an event. The callback may call operations. */
void faulty_deliver(struct faulty *faulty, struct item *item);

#endif
