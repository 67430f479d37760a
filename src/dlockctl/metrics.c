/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/metrics.h"

#include <time.h>

#include "dlockctl/dlockctl.h"

bool metrics_is_down(const struct probe *probe)
{
	return !probe->file_answered || status_of_errno(probe->file_error) == EXIT_NO_MOUNT;
}

void metrics_down_write(FILE *out)
{
	fprintf(out,
		"# HELP dlockfs_up Whether the daemon answers.\n"
		"# TYPE dlockfs_up gauge\n"
		"dlockfs_up 0\n"
		"# HELP dlockfs_sample_time_seconds When these numbers were read, in seconds since "
		"1970.\n"
		"# TYPE dlockfs_sample_time_seconds gauge\n"
		"dlockfs_sample_time_seconds %lld.000\n",
		(long long)time(NULL));
}
