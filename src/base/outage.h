/* SPDX-License-Identifier: Apache-2.0
 *
 * What the log is told while a service cannot be reached: each reason once in an outage, and at its
 * end how often it was tried. An outage lasts until the service does what it is for, not until a
 * connection is there: a server without its majority takes connections, and drops them. Where
 * outages follow each other, a reason is told once in OUTAGE_QUIET_MS. Does not allocate. For one
 * thread.
 */
#ifndef DLOCKFS_BASE_OUTAGE_H
#define DLOCKFS_BASE_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

enum { OUTAGE_REASONS = 8, OUTAGE_REASON_BYTES = 256, OUTAGE_QUIET_MS = 10000 };

/* Zero at first. */
struct outage {
	char told[OUTAGE_REASONS][OUTAGE_REASON_BYTES];
	uint64_t failures;
	int64_t since_ms; /* the first of them */
	int64_t told_ms;  /* when something was told last, in this outage or before */
	bool is_told;	  /* in this one */
};

/* An attempt has failed: writes "SERVICE: WHY; trying on" if that was not told yet, and is not one
 * reason too many. `now_ms` is by any clock that does not go back. */
void outage_failed(struct outage *outage, const char *service, const char *why, int64_t now_ms);

/* The service is there: writes how many attempts had failed, if that was told of any. */
void outage_end(struct outage *outage, const char *service, int64_t now_ms);

#endif
