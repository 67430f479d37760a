/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of others, and watches. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_BOOKS_RIVAL_H
#define DLOCKFS_ENGINE_BOOKS_RIVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/books/place.h"

struct claim;
struct engine;

/* What is known of a rival's data. */
enum knowledge {
	KNOWN_NOT,
	KNOWN_ONCE, /* the data was read, or may not be read: rival_may_be_none() */
	KNOWN,	    /* the data was read, and will be read when it changes */
	KNOWN_OURS, /* as KNOWN, and the data is of dlockfs */
};

/* Who has called watch() of the store: the tag. */
struct watcher {
	bool of_tenant; /* it is the tenant's (outbox.h); else of a struct rival */
};

/* A claim of somebody else. */
struct rival {
	struct place place; /* first: see rival_of() */
	char *name;	    /* next: see struct named_place */
	struct watcher watcher;
	enum knowledge known : 2;
	bool sent : 1;	       /* watch() is under way; or age() or withdraw(), of an orphan */
	bool amending : 1;     /* amend() is: rival_send_back(); or outlast(): hold.h */
	bool orphan : 1;       /* it has gone, and was not released */
	bool aged : 1;	       /* of an orphan: held_ms is as good as can be known */
	bool unread : 1;       /* of an orphan: its marker may not be read */
	bool looked_ahead : 1; /* since the last list the next one in front is watched */
	bool overseer : 1;     /* no claim, but the watch of one of ours; in lock->overseers */
	bool told : 1;	       /* its data were read, and were of dlockfs */
	bool may_wait : 1;     /* as found out by */
	uint32_t judged;       /* by the search of that number (search.h) */
	uint32_t asked; /* the number of the claim of ours for which its host was asked last; and */
	uint32_t heir;	/* of that which it is bequeathed to (bequest.h); 0: of none */
	int64_t trip_ms; /* of its host, as its data say; 0: not known */
	int64_t lost_ms; /* of an orphan: since when it is known to be one, */
	int64_t held_ms; /* and since when at the latest its claim was held */
	int64_t for_ms;	 /* of a hold: its time, as its data say, 0: they say none; */
	int64_t read_ms; /* and when they were read to say that */
	char *peer;	 /* of its host, as its data say; NULL: none */
	char *text;	 /* its data, if they were read, and say that it waits; else NULL */
};

/* The rival that has the place; NULL for a claim of ours, and for NULL. */
static inline struct rival *rival_of(const struct place *place)
{
	_Static_assert(offsetof(struct rival, place) == offsetof(struct named_place, place) &&
			       offsetof(struct rival, name) == offsetof(struct named_place, name),
		       "a rival begins with its place, and has a name");
	return place != NULL && place->foreign ? (struct rival *)place : NULL;
}

/* The first rival from that place on, in its list; NULL: there is none. */
static inline struct rival *rival_from(const struct place *place)
{
	while (place != NULL && !place->foreign)
		place = place->next;
	return rival_of(place);
}

static inline struct rival *rival_next(const struct rival *rival)
{
	return rival_from(rival->place.next);
}

/* Visits the rivals in a list of places. */
#define RIVALS_FOREACH(list, rival)                                                                \
	for ((rival) = rival_from(list); (rival) != NULL; (rival) = rival_next(rival))

/* A rival in no list. NULL: out of memory. */
struct rival *rival_create(struct lock *lock, const char *name, const struct claim_name *parts);

/* The rival in the list that has the name; NULL: there is none. */
struct rival *rival_find(const struct place *list, const char *name);

/* Whether two rivals are record locks of one process. */
bool rivals_same_process(const struct rival *a, const struct rival *b);

/* Frees a rival that is in no list. */
void rival_free(struct rival *rival);

/* Whether a rival may turn out to be no claim when it is read: others than dlockfs may have put
 * something else there under such a name. */
bool rival_may_be_none(const struct rival *rival);

/* Asks the store for the data of a rival, and to be told of its end, unless both were asked for. */
void rival_watch(struct rival *rival);

/* Notes what the data of a rival say, in that version. Returns 0 or -ENOMEM: then they are not
 * known. */
int rival_note_data(struct rival *rival, const char *text, uint32_t version);

/* Notes the number (slots.h) that the marker of an orphan has. Returns 0 or -ENOMEM. */
int rival_note_slot(struct rival *orphan, const char *text);

/* The data may have changed since they were read. */
void rival_forget_data(struct rival *rival);

/* Writes into the data of a rival that waits and was read, `text`, that it is to be queued again
 * behind the claim of that number. Returns false when out of memory. */
bool rival_send_back(struct rival *rival, int64_t behind);

#endif
