/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of what callers are to be told. Loop thread only.
 */
#include "engine/books/decisions.h"

#include <stdlib.h>

#include "engine/books/state.h"

struct store_told {
	char unused;
};

static const struct store_told proof;

struct decision {
	enum decision_kind kind;
	int result;
	void *cookie;
	bool conflicts; /* TESTED: there is a conflict */
	union {
		struct engine_conflict conflict;
		uint64_t token;
		struct {
			decision_tell *tell;
			bool lost;
		} news;
	};
};

static void tell(const struct engine *engine, const struct decision *decision)
{
	const struct engine_events *events = engine->events;
	void *context = engine->context, *cookie = decision->cookie;

	switch (decision->kind) {
	case DECIDED:
		events->on_decided(context, cookie, decision->result);
		break;
	case TESTED:
		events->on_tested(context, cookie, decision->result,
				  decision->conflicts ? &decision->conflict : NULL);
		break;
	case PROVED:
		events->on_proved(context, cookie, decision->result, decision->token);
		break;
	case LOST:
		events->on_lost(context, cookie);
		break;
	case REVOKED:
		events->on_revoked(context, cookie);
		break;
	case HOLD:
		events->on_hold(context, cookie, decision->result);
		break;
	case NEWS:
		decision->news.tell(engine->tenant.context, cookie, decision->result);
		break;
	}
}

static void tell_all(struct engine *engine)
{
	struct decisions *decisions = &engine->decisions;

	for (size_t i = 0; i < decisions->count; i++)
		tell(engine, &decisions->list[i]);
	decisions->count = 0;
}

void decisions_tell(struct engine *engine)
{
	bool lost;

	tell_all(engine);
	lost = engine->decisions.lost;
	engine->decisions.lost = false;
	if (lost && engine->events->on_told != NULL)
		engine->events->on_told(engine->context);
}

const struct store_told *decisions_told(const struct engine *engine)
{
	return engine->decisions.lost ? NULL : &proof;
}

const struct store_told *decisions_told_all(const struct engine *engine)
{
	return books_hold(engine) ? NULL : decisions_told(engine);
}

static void add(struct engine *engine, const struct decision *decision)
{
	struct decisions *decisions = &engine->decisions;

	decisions->lost |=
		decision->kind == LOST || (decision->kind == NEWS && decision->news.lost);
	if (decisions->count == decisions->capacity) {
		size_t capacity = decisions->capacity * 2 + 8;
		struct decision *list = reallocarray(decisions->list, capacity, sizeof(*list));
		if (list == NULL) {
			tell_all(engine);
			tell(engine, decision);
			return;
		}
		decisions->list = list;
		decisions->capacity = capacity;
	}
	decisions->list[decisions->count++] = *decision;
}

void decisions_add(struct engine *engine, enum decision_kind kind, void *cookie, int result)
{
	add(engine, &(struct decision){.kind = kind, .cookie = cookie, .result = result});
}

void decisions_add_test(struct engine *engine, void *cookie, int error,
			const struct engine_conflict *conflict)
{
	struct decision decision = {.kind = TESTED, .cookie = cookie, .result = error};

	decision.conflicts = conflict != NULL;
	if (conflict != NULL)
		decision.conflict = *conflict;
	add(engine, &decision);
}

void decisions_add_proof(struct engine *engine, void *cookie, int error, uint64_t token)
{
	add(engine,
	    &(struct decision){.kind = PROVED, .cookie = cookie, .result = error, .token = token});
}

void decisions_add_news(struct engine *engine, decision_tell *news, void *subject, int result,
			bool lost)
{
	add(engine,
	    &(struct decision){
		    .kind = NEWS, .cookie = subject, .result = result, .news = {news, lost}});
}
