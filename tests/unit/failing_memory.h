/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests: stands in for libc's reallocarray(3), through which range sets get all their memory.
 * For one source file of a program.
 */
#ifndef DLOCKFS_FAILING_MEMORY_H
#define DLOCKFS_FAILING_MEMORY_H

#include <errno.h>
#include <stdlib.h>

static unsigned allocations_to_failure; /* 0: none fails */

void *reallocarray(void *memory, size_t count, size_t bytes)
{
	if (allocations_to_failure > 0 && --allocations_to_failure == 0) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(memory, count * bytes);
}

#endif
