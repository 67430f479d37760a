/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the contacts. Loop thread.
 */
#include "peers/contacts.h"

#include <stdlib.h>

/* uthash: what cannot be added for want of memory is left out. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item)                                                                  \
	do {                                                                                       \
	} while (0)
#include <uthash.h>

#include "peers/seal.h"

#define NEVER INT64_MIN

struct contact {
	union address address;
	struct packet_nonce nonce; /* of the last question */
	bool is_open;		   /* it was not answered */
	bool is_silent;		   /* nor was the one before it */
	int64_t question_ms;	   /* when it was put */
	int64_t heard_ms;	   /* the last answer, or the first question */
	UT_hash_handle hh;
};

static struct contact *find(const struct contacts *contacts, const union address *address)
{
	struct contact *contact;

	HASH_FIND(hh, contacts->all, address, sizeof(*address), contact);
	return contact;
}

static void forget(struct contacts *contacts, struct contact *contact)
{
	HASH_DEL(contacts->all, contact);
	free(contact);
}

static struct contact *create(struct contacts *contacts, const union address *address,
			      int64_t now_ms)
{
	struct contact *contact = calloc(1, sizeof(*contact));

	if (contact == NULL)
		return NULL;
	if (HASH_COUNT(contacts->all) >= CONTACTS_MAX)
		forget(contacts, contacts->all);
	contact->address = *address;
	contact->heard_ms = now_ms;
	contact->question_ms = NEVER;
	return contact;
}

/* As the last one in the order. */
static void append(struct contacts *contacts, struct contact *contact)
{
	HASH_ADD(hh, contacts->all, address, sizeof(contact->address), contact);
	if (contact->hh.tbl == NULL)
		free(contact);
}

static enum contacts_way put_question(struct contact *contact, const struct packet_nonce *nonce,
				      int64_t now_ms)
{
	contact->is_silent = contact->is_open;
	contact->is_open = true;
	contact->nonce = *nonce;
	contact->question_ms = now_ms;
	return CONTACTS_ANSWER;
}

enum contacts_way contacts_ask(struct contacts *contacts, const union address *address,
			       const struct packet_nonce *nonce, int64_t now_ms)
{
	struct contact *contact = find(contacts, address);
	enum contacts_way way = CONTACTS_PLAIN;

	if (contact != NULL)
		HASH_DEL(contacts->all, contact);
	else if ((contact = create(contacts, address, now_ms)) == NULL)
		return way;
	if (contact->question_ms == NEVER ||
	    now_ms - contact->question_ms >=
		    (contact->is_open ? CONTACTS_AGAIN_MS : CONTACTS_HEARD_MS))
		way = put_question(contact, nonce, now_ms);
	else if (contact->is_silent)
		way = CONTACTS_NOT;
	append(contacts, contact);
	return way;
}

bool contacts_hear(struct contacts *contacts, const union address *address,
		   const struct packet_nonce *nonce, int64_t now_ms)
{
	struct contact *contact = find(contacts, address);

	if (contact == NULL || !seal_same_nonce(&contact->nonce, nonce))
		return false;
	contact->is_open = contact->is_silent = false;
	contact->heard_ms = now_ms;
	return true;
}

void contacts_each(const struct contacts *contacts, int64_t now_ms,
		   void (*on_contact)(void *context, const struct contact_state *state),
		   void *context)
{
	for (const struct contact *contact = contacts->all; contact != NULL;
	     contact = contact->hh.next) {
		struct contact_state state = {
			.is_silent = contact->is_silent ||
				     (contact->is_open &&
				      now_ms - contact->question_ms >= CONTACTS_AGAIN_MS),
			.for_ms = now_ms - contact->heard_ms,
		};
		address_format(&contact->address, state.address);
		on_contact(context, &state);
	}
}

void contacts_finish(struct contacts *contacts)
{
	while (contacts->all != NULL)
		forget(contacts, contacts->all);
}
