/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/memory_lock.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

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

/* With `private` locks the mappings that this process writes to, or has written to, as to the
 * tables of a library that are read-only once it is relocated. Without, locks the rest, as far as
 * the limit allows: the text of libraries, which other processes use as well. Source: proc(5). */
static void lock_mapped(bool private)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	char line[512], *from, *to, *start = NULL, *end = NULL, right, write = '-';
	size_t written_kib;

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		/* A mapping's first line; the rest of a longer one matches neither format. */
		if (sscanf(line, "%p-%p %*c%c", (void **)&from, (void **)&to, &right) == 3) {
			start = from;
			end = to;
			write = right;
		} else if (sscanf(line, "Anonymous: %zu kB", &written_kib) == 1 &&
			   (write == 'w' || written_kib > 0) == private) {
			mlock(start, (size_t)(end - start));
		}
	}
	if (maps != NULL)
		fclose(maps);
}

bool memory_lock_all(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
		return true;
	lock_mapped(true);
	lock_mapped(false);
	return false;
}
