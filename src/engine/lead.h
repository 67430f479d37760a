/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims that serve several callers, one after the other. For the engine's own files.
 */
#ifndef DLOCKFS_ENGINE_LEAD_H
#define DLOCKFS_ENGINE_LEAD_H

#include "engine/state.h"

/* Makes sure that the lock has a keeper. Returns false when out of memory. */
bool lock_make_keeper(struct lock *lock);

/* Whether wishes of flock and open follow leads. */
bool lock_uses_leads(const struct lock *lock);

/* A wish, as engine_lock() says. */
int lead_wish(struct owner *owner, enum lock_kind kind, enum claim_mode mode, bool waits,
	      const struct engine_caller *caller, void *cookie, struct wish **ret_wish);

/* The claim of a lead has been granted, or refused. */
void lead_decided(struct claim *claim, int result);

/* The claim, of flock or open, is HELD from now on. */
void claim_hold_file(struct claim *claim);

/* The holder of a flock or an open releases it: a lead is given to the next one, or kept; another
 * claim goes, or is a process's whose record locks it covers. */
void claim_release(struct claim *claim);

/* Takes a claim away that may be a lead: as claim_withdraw(). */
void lead_withdraw(struct claim *claim);

/* A follower of the lead whose wish is still empty. NULL: out of memory. */
struct follower *lead_create_follower(struct lead *lead, struct owner *owner);

/* A follower gives up, or its wish is refused, if it still asks: it is freed. */
void lead_unfollow(struct follower *follower);
void lead_refuse(struct follower *follower, int result);

/* A follower asks, again, or only lingers. */
void lead_follower_changed(struct follower *follower);

/* If the claim is a lead, it is none any more: its followers get a new one. */
void lead_disband(struct claim *claim);

/* Looks at the lock's leads again: the queue is known better, or the session. */
void leads_settle(struct lock *lock);

/* As engine_each_user(), for one claim. */
void lead_each_user(const struct lead *lead,
		    void (*visit)(void *context, const char *claim, enum engine_use use,
				  const char *text),
		    void *context);

#endif
