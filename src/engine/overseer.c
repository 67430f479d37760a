/* SPDX-License-Identifier: Apache-2.0
 *
 * An overseer is an entry of the kind of a rival, by the name of the claim, in lock->overseers.
 * Loop thread only.
 */
#include "engine/overseer.h"

#include <errno.h>

#include "engine/books/lock.h"
#include "engine/books/rival.h"
#include "engine/books/state.h"

void overseer_set(struct claim *claim)
{
	static const struct claim_name none = {.order = 0};
	struct lock *lock = claim->place.lock;
	char name[CLAIM_NAME_BYTES];

	if (claim->overseen || lock->engine->session.state != STORE_CONNECTED)
		return;
	struct rival *overseer = rival_create(lock, place_name(&claim->place, name), &none);
	if (overseer == NULL)
		return; /* at the next heartbeat */
	overseer->overseer = true;
	claim->overseen = true;
	DL_APPEND(lock->overseers, &overseer->place);
	rival_watch(overseer);
}

void overseer_read_stale(struct claim *claim)
{
	if (claim->data.stale)
		overseer_set(claim);
}

static bool is_later(uint32_t version, uint32_t than)
{
	return (int32_t)(version - than) > 0;
}

/* Without memory, or connection, it is read when things are tried again. */
void overseer_note_stale(struct claim *claim, uint32_t version)
{
	if (claim->place.version != version)
		return; /* it has been read meanwhile */
	claim->data.stale = true;
	overseer_read_stale(claim);
	if (!claim->overseen)
		lock_retry_after(claim->place.lock, "reading of a claim", -ECONNRESET);
}

void overseer_note_change(struct claim *claim, uint32_t version)
{
	if (!is_later(version + 1, claim->place.version))
		return;
	claim->place.version = version + 1;
	if (!claim->data.stale)
		return;
	/* It was this change that another operation met, whose answer came before. */
	claim->data.stale = false;
	lock_retry_in(claim->place.lock->engine, 1);
}

void overseer_note_version(struct claim *claim, uint32_t version)
{
	if (!is_later(version, claim->place.version))
		return;
	claim->place.version = version;
	claim->data.stale = false;
}
