/* SPDX-License-Identifier: Apache-2.0 */
#include "stores/statistics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static const char *const operation_names[STORE_OPERATIONS] = {
	[STORE_PLACE] = "place",   [STORE_LIST] = "list",	  [STORE_AMEND] = "amend",
	[STORE_WATCH] = "watch",   [STORE_WITHDRAW] = "withdraw", [STORE_PROVE] = "prove",
	[STORE_LOOK] = "look",	   [STORE_READ] = "read",	  [STORE_WRITE] = "write",
	[STORE_REMOVE] = "remove", [STORE_TOUCH] = "touch",	  [STORE_MARK] = "mark",
	[STORE_FILES] = "files",   [STORE_ALTER] = "alter",	  [STORE_TIDY] = "tidy",
};

static const char *const failure_names[STORE_FAILURES] = {
	[STORE_FAILURE_CONNECTION] = "connection",
	[STORE_FAILURE_REFUSED] = "refused",
	[STORE_FAILURE_OTHER] = "other",
};

void store_statistics_count(struct store_statistics *statistics, enum store_operation operation,
			    int64_t duration_us, int error)
{
	uint64_t *failures = statistics->failures[operation];

	if (error != -ECONNRESET)
		histogram_observe(&statistics->durations[operation], duration_us);
	switch (error) {
	case 0:
	case -ENOENT:
	case -EEXIST:
	case -ENOTDIR:
	case -ESTALE:
		break;
	case -ECONNRESET:
		failures[STORE_FAILURE_CONNECTION]++;
		break;
	case -EACCES:
		failures[STORE_FAILURE_REFUSED]++;
		break;
	default:
		failures[STORE_FAILURE_OTHER]++;
	}
}

void store_statistics_write_durations(const struct store_statistics *statistics, const char *label,
				      FILE *file)
{
	for (int i = 0; i < STORE_OPERATIONS; i++) {
		char *labels;
		if (asprintf(&labels, "operation=\"%s\"%s%s", operation_names[i],
			     label[0] != '\0' ? "," : "", label) < 0)
			continue;
		histogram_write(&statistics->durations[i], "dlockfs_store_operation_seconds",
				labels, file);
		free(labels);
	}
}

void store_statistics_write_failures(const struct store_statistics *statistics, const char *label,
				     FILE *file)
{
	for (int i = 0; i < STORE_OPERATIONS; i++) {
		for (int j = 0; j < STORE_FAILURES; j++)
			fprintf(file,
				"dlockfs_store_errors_total{operation=\"%s\",error=\"%s\"%s%s} "
				"%" PRIu64 "\n",
				operation_names[i], failure_names[j], label[0] != '\0' ? "," : "",
				label, statistics->failures[i][j]);
	}
}
