/* SPDX-License-Identifier: Apache-2.0
 *
 * What the log is told while a service cannot be reached: each reason once in an outage, and at its
 * end how often it was tried. An outage lasts until the service does what it is for, not until a
 * connection is there: a server without its majority takes connections, and drops them. Does not
 * allocate. For one thread.
 */
#ifndef DLOCKFS_BASE_OUTAGE_H
#define DLOCKFS_BASE_OUTAGE_H

#include <stdint.h>

enum { OUTAGE_REASONS = 8, OUTAGE_REASON_BYTES = 256 };

/* Zero at first, and after each end. */
struct outage {
	char told[OUTAGE_REASONS][OUTAGE_REASON_BYTES];
	uint64_t failures;
	int64_t since_ms; /* the first of them */
};

/* An attempt has failed: writes "SERVICE: WHY; trying on" if that was not told yet, and is not one
 * reason too many. `now_ms` is by any clock that does not go back. */
void outage_failed(struct outage *outage, const char *service, const char *why, int64_t now_ms);

/* The service is there: writes how many attempts had failed, if any had. */
void outage_end(struct outage *outage, const char *service, int64_t now_ms);

#endif
