/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Reasons that differ only behind OUTAGE_REASON_BYTES count as the same.
 */
#include "base/outage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* The place of the reason, or the first that is free; NULL: all are taken by others. */
static char *find(struct outage *outage, const char *why)
{
	for (size_t i = 0; i < OUTAGE_REASONS; i++) {
		if (outage->told[i][0] == '\0' ||
		    strncmp(outage->told[i], why, OUTAGE_REASON_BYTES - 1) == 0)
			return outage->told[i];
	}
	return NULL;
}

void outage_failed(struct outage *outage, const char *service, const char *why, int64_t now_ms)
{
	if (outage->failures++ == 0) {
		outage->since_ms = now_ms;
		outage->is_told = false;
		if (now_ms - outage->told_ms >= OUTAGE_QUIET_MS)
			memset(outage->told, 0, sizeof(outage->told));
	}
	char *told = find(outage, why);
	if (told == NULL || told[0] != '\0')
		return;
	snprintf(told, OUTAGE_REASON_BYTES, "%s", why);
	outage->told_ms = now_ms;
	outage->is_told = true;
	log_warning("%s: %s; trying on", service, why);
}

void outage_end(struct outage *outage, const char *service, int64_t now_ms)
{
	if (outage->failures > 0 && outage->is_told)
		log_info("%s: connected again after %" PRId64 " ms, and %" PRIu64
			 " failed attempt%s",
			 service, now_ms - outage->since_ms, outage->failures,
			 outage->failures == 1 ? "" : "s");
	outage->failures = 0;
}
