/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the operations of a store (store.h) took and how they ended, for metrics. The store
 * counts on the loop's thread, where its opener reads the counts.
 */
#ifndef DLOCKFS_STORES_STATISTICS_H
#define DLOCKFS_STORES_STATISTICS_H

#include "base/histogram.h"

enum store_operation {
	STORE_PLACE,
	STORE_LIST,
	STORE_AMEND,
	STORE_WATCH, /* until the watch is set up */
	STORE_MARK,
	STORE_WITHDRAW,
	STORE_PROVE,
	STORE_LOOK,
	STORE_READ,
	STORE_WRITE,
	STORE_REMOVE,
	STORE_FILES,
	STORE_ALTER,
	STORE_TOUCH,
	STORE_TIDY,
	STORE_OPERATIONS
};

enum store_failure {
	STORE_FAILURE_CONNECTION, /* no answer came */
	STORE_FAILURE_REFUSED,	  /* the service does not allow it */
	STORE_FAILURE_OTHER,
	STORE_FAILURES
};

/* Zero at first. */
struct store_statistics {
	struct histogram durations[STORE_OPERATIONS]; /* of operations that were answered */
	uint64_t failures[STORE_OPERATIONS][STORE_FAILURES];
};

/* An operation has ended with the error of its event. That something does not exist, or
 * exists, or was changed, is an answer like any other. */
void store_statistics_count(struct store_statistics *statistics, enum store_operation operation,
			    int64_t duration_us, int error);

/* Write the samples of dlockfs_store_operation_seconds and dlockfs_store_errors_total in the text
 * format of Prometheus, without the head of the family. `label` is a further label of each sample:
 * name="value", or "". */
void store_statistics_write_durations(const struct store_statistics *statistics, const char *label,
				      FILE *file);
void store_statistics_write_failures(const struct store_statistics *statistics, const char *label,
				     FILE *file);

#endif
