/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims of others: as a list shows them, what their data say, and watches. The watch of a claim of
 * ours, for what others write into its data, is an entry of the same kind. Loop thread only.
 */
#include "engine/rival.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim/data.h"
#include "engine/lock.h"
#include "engine/outbox.h"
#include "engine/precedence.h"

struct claim *rival_create(struct lock *lock, const char *name, const struct claim_name *parts)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	if (claim == NULL)
		return NULL;
	claim->place.name = strdup(name);
	if (claim->place.name == NULL) {
		free(claim);
		return NULL;
	}
	claim->lock = lock;
	claim->state = CLAIM_FOREIGN;
	claim->place.parts = *parts;
	return claim;
}

struct claim *rival_find(const struct place *list, const char *name)
{
	struct claim *claim;
	for (claim = claim_of(list); claim != NULL; claim = claim_next(claim)) {
		if (claim->state == CLAIM_FOREIGN && strcmp(claim->place.name, name) == 0)
			return claim;
	}
	return NULL;
}

void rival_free(struct claim *claim)
{
	if (claim_coverage(claim) != NULL) {
		range_set_finish(&claim_coverage(claim)->ranges);
		range_set_finish(&claim_coverage(claim)->next);
	}
	free(claim_coverage(claim));
	claim_free_precedence(claim);
	free(claim->text); /* or wanted_by */
	free(claim->place.name);
	free(claim);
}

void rival_watch(struct claim *claim)
{
	if (claim->sent || claim->orphan || claim->lock->engine->session != STORE_CONNECTED)
		return;
	claim->sent = true;
	engine_watch(claim);
}

/* What a foreign claim covers is known to be less than its name says. Returns 0 or -ENOMEM. */
static int note_ranges(struct claim *claim, const struct range_set *told)
{
	struct range_set name = {0}, ranges = {0};
	struct coverage *coverage = claim_coverage(claim);
	int error = range_set_lock(&name, claim->place.parts.span, claim->place.parts.mode);

	if (error == 0)
		error = range_set_intersect(&name, told, &ranges);
	if (error == 0 && coverage == NULL)
		coverage = calloc(1, sizeof(*coverage));
	range_set_finish(&name);
	if (error == 0 && ranges.count == 0) {
		/* No claim covers nothing: whoever wrote that does not keep to the rules. */
		if (coverage != claim_coverage(claim))
			free(coverage);
		return 0;
	}
	if (error != 0 || coverage == NULL) {
		range_set_finish(&ranges);
		return -ENOMEM;
	}
	range_set_finish(&coverage->ranges);
	coverage->ranges = ranges;
	claim->place.ranges = &coverage->ranges;
	return 0;
}

/* Its host is exact once it has said so: who does not wait need not. */
int rival_note_data(struct claim *claim, const char *text)
{
	struct claim_data data;
	int error = claim_data_parse(text, &data);
	if (error != 0)
		return error;
	claim->says_waits = data.waits;
	claim->says_keep = data.keeps;
	claim->waits_for = data.waits_for;
	claim->exact |= data.exact;
	claim->told = data.valid;
	if (data.has_ranges && claim->place.parts.record)
		error = note_ranges(claim, &data.ranges);
	claim->requeue = data.requeue;
	free(claim->text);
	claim->text = data.waits && data.valid ? strdup(text) : NULL;
	if (error == 0 && data.has_holds && claim->place.holds == NULL) {
		error = claim_set_precedence(claim, data.holds);
		data.holds = (struct range_set){0};
	}
	claim_data_finish(&data);
	return error;
}

bool rival_send_back(struct claim *claim, int32_t behind)
{
	char *text = claim_data_add_requeue(claim->text, behind);
	if (text == NULL)
		return false;
	claim->amending = true;
	engine_amend(claim, text);
	free(text);
	return true;
}

void claim_oversee(struct claim *claim)
{
	static const struct claim_name none = {.sequence = 0};
	struct lock *lock = claim->lock;
	char name[CLAIM_NAME_BYTES];

	if (claim->overseen || lock->engine->session != STORE_CONNECTED)
		return;
	struct claim *orders = rival_create(lock, place_name(&claim->place, name), &none);
	if (orders == NULL)
		return; /* at the next heartbeat */
	orders->orders = true;
	orders->sent = true;
	claim->overseen = true;
	DL_APPEND(lock->orders, &orders->place);
	engine_watch(orders);
}

void claim_read_orders(struct claim *claim)
{
	if (claim->stale)
		claim_oversee(claim);
}

static bool is_later(uint32_t version, uint32_t than)
{
	return (int32_t)(version - than) > 0;
}

/* Without memory, or connection, it is read when things are tried again. */
void claim_note_stale(struct claim *claim, uint32_t version)
{
	if (claim->version != version)
		return; /* it has been read meanwhile */
	claim->stale = true;
	claim_read_orders(claim);
	if (!claim->overseen)
		lock_retry_after(claim->lock, "reading of a claim", -ECONNRESET);
}

void claim_note_change(struct claim *claim, uint32_t version)
{
	if (is_later(version + 1, claim->version))
		claim->version = version + 1;
}

void claim_note_version(struct claim *claim, uint32_t version)
{
	if (!is_later(version, claim->version))
		return;
	claim->version = version;
	claim->stale = false;
}
