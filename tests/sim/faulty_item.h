/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels between the two ends of a store_faulty: an operation on its way to the service,
 * which becomes the event that answers it on its way back. For the files of faulty_client.h.
 */
#ifndef DLOCKFS_FAULTY_ITEM_H
#define DLOCKFS_FAULTY_ITEM_H

#include <utlist.h>

#include "stores/store.h"

struct session;

enum item_kind {
	ITEM_SESSION,
	ITEM_PLACE,
	ITEM_LIST,
	ITEM_ATTEND, /* no operation: what a list has been asked for besides */
	ITEM_WATCH,
	ITEM_READ,    /* no operation: what a watch that stands has read */
	ITEM_CHANGED, /* no operation: the watched claim has new data, and is to be watched anew */
	ITEM_AMEND,
	ITEM_MARK,
	ITEM_AGE,
	ITEM_WITHDRAW,
	ITEM_HOLD,
	ITEM_OUTLAST,
	ITEM_PROVE,
	ITEM_TOUCH,
	ITEM_ALTER, /* lock files (faulty_files.h) */
	ITEM_FILE,
	ITEM_FILES,
	ITEM_KEEP,  /* a keep-alive */
	ITEM_CLOSE, /* the end of a session that was given up */
};

/* An operation on its way there, or an event on its way back. */
struct item {
	enum item_kind kind;
	void *tag;
	int64_t at_ms;	    /* when it arrives, or is delivered */
	int64_t sent_ms;    /* by the client's clock */
	int64_t sure_at_ms; /* WATCH, READ, CHANGED: when the client knows that the watch stands */
	uint64_t member;    /* who answers, where that is of interest */
	uint64_t made;	    /* the number of the answer or event, in the order of the service */
	bool behind;	    /* others of its lock: not sent yet */
	bool answered;	    /* by -ECONNRESET, before it arrived */
	struct session *session; /* that it is sent in; not used on the way back */
	struct item *prev, *next;

	char *path;
	char *name;	  /* to amend, withdraw or watch; or what was placed */
	uint32_t version; /* of the data that is to be replaced, or was read */
	/* To be the data; or what was read, also of a marker, and of a watch with the flag;
	 * WITHDRAW: the heir that is to stand. */
	char *text;
	struct claim_name claim;    /* to be placed; or the hold */
	struct store_proof *proofs; /* to stand */
	size_t proofs_count;
	/* list of place(), sync of list(), marker of withdraw(), a watch or an attention only a
	 * stale server knows of; CHANGED: the client knows that there is new data */
	bool flag;
	bool attend;	    /* list(), place(): with an attention, */
	void *attend_tag;   /* which has that tag */
	uint64_t attention; /* its number, also of what has asked for it; 0: no attention */

	/* ALTER, FILE, FILES: */
	struct store_step *steps;
	size_t steps_count;
	union {
		struct store_change change;
		struct store_read read;
		struct store_files files;
	} question;		 /* that the service is asked */
	struct store_claim read; /* its data are `text` */
	char **names;
	size_t names_count;

	enum store_session told;
	int error;
	int64_t order, after;
	int64_t stamp;
	int64_t age_ms;
	struct store_entry *entries;
	size_t count;
};

/* A test without memory has nothing to say: aborts if it is NULL. */
void *must_have(void *memory);

/* NULL stays NULL. */
char *copy_text(const char *text);

struct item *item_create(struct session *session, enum item_kind kind, void *tag);
void item_free(struct item *item);
void items_free(struct item **list);

/* Copies claims that are to stand into the item. */
void item_keep_proofs(struct item *item, const struct store_proof *proofs, size_t count);

/* Copies a queue into the item. */
void item_keep_entries(struct item *item, const struct store_entry *entries, size_t count);

#endif
