/* SPDX-License-Identifier: Apache-2.0
 *
 * Does not walk the queue: ten thousand may wait in it. Loop thread only.
 */
#include "engine/books/drain.h"

#include "engine/books/owner.h"
#include "engine/books/state.h"

static bool holds(const struct owner *owner)
{
	return owner_held_but(owner, NULL) != NULL;
}

static bool process_holds(const struct records *records)
{
	bool held = holds(&records->owner);

	for (size_t i = 0; !held && i < records->files_count; i++)
		held = holds(records->files[i]);
	return held;
}

/* The open file, or a process that has locked through it. */
static bool file_holds(const struct owner *file)
{
	const struct records *records = file->lock->records;
	bool held = holds(file);

	for (; !held && records != NULL; records = records->hh.next)
		held = owners_same_side(&records->owner, file) && holds(&records->owner);
	return held;
}

bool drain_refuses(const struct owner *owner)
{
	if (!owner->lock->engine->grants.draining)
		return false;
	return owner->is_process ? !process_holds(owner_records(owner)) : !file_holds(owner);
}

bool drain_holds_back(const struct claim *claim)
{
	const struct owner *owner = owner_side(claim);

	if (owner != NULL)
		return drain_refuses(owner);
	return claim->place.lock->engine->grants.draining;
}
