/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/deadline.h"

#include <fcntl.h>
#include <unistd.h>

int64_t deadline_read(int descriptor)
{
	int64_t time_ms;

	/* Only a file in memory has seals: reading it waits for nobody. */
	if (fcntl(descriptor, F_GET_SEALS) < 0 ||
	    pread(descriptor, &time_ms, sizeof(time_ms), (off_t)DEADLINE_OFFSET) !=
		    (ssize_t)sizeof(time_ms))
		return 0;
	return time_ms;
}
