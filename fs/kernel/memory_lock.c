/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/memory_lock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define SMALL_BYTES (128 * 1024)

void memory_lock_used(void)
{
	struct rlimit limit, other;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0)
		return;
	/* With a limit of 0 mlockall(2) works only for processes with CAP_IPC_LOCK, for which no
	 * limit counts.
	 */
	other = limit;
	other.rlim_cur = limit.rlim_max == RLIM_INFINITY ? RLIM_INFINITY : 0;
	if (setrlimit(RLIMIT_MEMLOCK, &other) < 0)
		return;
	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	if (other.rlim_cur == 0)
		setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* With `first` locks the mappings that are writable, and those that are small, as formerly writable
 * ones are. Without, locks the rest, as far as the limit allows: the text of libraries, which other
 * processes use as well. */
static void lock_mapped(bool first)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], *start, *end, write;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		/* The rest of a longer line does not match this format. */
		if (sscanf(line, "%p-%p %*c%c", (void **)&start, (void **)&end, &write) == 3 &&
		    (write == 'w' || end - start <= SMALL_BYTES) == first)
			mlock(start, (size_t)(end - start));
	}
	if (maps != NULL)
		fclose(maps);
}

void memory_lock_all(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return;
	lock_mapped(true);
	lock_mapped(false);
}
