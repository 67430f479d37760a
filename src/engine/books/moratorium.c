/* SPDX-License-Identifier: Apache-2.0
 *
 * When nothing is granted, whatever the store shows; moratorium.h has the reason. Loop thread only.
 */
#include "engine/books/moratorium.h"

#include "base/log.h"
#include "engine/books/outbox.h"
#include "engine/books/save.h"
#include "engine/books/state.h"

void moratorium_begin(struct engine *engine, enum store_moratorium why, int64_t until_ms)
{
	long long left_ms = until_ms - engine->now_ms;

	if (why == STORE_SET_BACK) {
		engine->moratorium.setbacks++;
		log_error("the store has gone back to an earlier state, as if from a backup: "
			  "nothing is granted for %lld ms",
			  left_ms);
	} else {
		log_warning("the store's root is new, or was made anew or set back, and others may "
			    "hold locks that it does not show: nothing is granted for %lld ms",
			    left_ms);
	}
	/* The worse of two reasons. */
	if (!moratorium_lasts(engine) || why == STORE_SET_BACK)
		engine->moratorium.why = why;
	if (until_ms > engine->moratorium.until_ms)
		engine->moratorium.until_ms = until_ms;
	engine_mark(engine);
}

bool moratorium_lasts(const struct engine *engine)
{
	return engine->now_ms < engine->moratorium.until_ms;
}

void moratorium_end(struct engine *engine)
{
	if (engine->moratorium.until_ms == INT64_MIN || moratorium_lasts(engine))
		return;
	engine->moratorium.until_ms = INT64_MIN;
	engine_mark(engine);
	log_info("locks of the store are granted again");
	if (engine->session.state == STORE_CONNECTED)
		outbox_settle_root(engine);
}

int64_t moratorium_deadline(const struct engine *engine)
{
	return engine->moratorium.until_ms == INT64_MIN ? INT64_MAX : engine->moratorium.until_ms;
}
