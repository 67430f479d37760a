/* SPDX-License-Identifier: Apache-2.0 */
#include "web/shared.h"

#include <stdlib.h>

#include "dlockctl/dlockctl.h"

struct shared *shared_make(char *text, size_t bytes)
{
	struct shared *shared = must(malloc(sizeof(*shared)));

	*shared = (struct shared){.users = 1, .bytes = bytes};
	shared->text = text;
	return shared;
}

struct shared *shared_use(struct shared *shared)
{
	if (shared != NULL)
		shared->users++;
	return shared;
}

void shared_drop(struct shared *shared)
{
	if (shared == NULL || --shared->users > 0)
		return;
	free(shared->text);
	free(shared);
}
