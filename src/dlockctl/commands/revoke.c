/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl revoke: asks all holders of a lock to release it, and who made a lock file to take it
 * away.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/steer.h"
#include "dlockctl/tree.h"
#include "dlockfs.h"

/* Returns the status of the last claim that failed, or 0. */
static int revoke(const struct place *place, const struct queues *queues, void *data)
{
	const struct queue *queue = &queues->list[0];
	int status = 0;

	if (queue->holders + queue->kept == 0)
		return fail(EX_NOINPUT, "%s: nobody holds it; see: dlockctl show %s", place->name,
			    place->name);
	for (size_t i = 0; i < queue->count; i++) {
		const struct claim *claim = &queue->claims[i];
		if (!claim->held && !claim->kept)
			continue;
		int failed = steer(place, claim, DLOCKFS_IOC_REVOKE);
		status = failed != 0 ? failed : status;
		if (failed == 0) {
			char *holder = claim_holder(claim);
			printf("asked %s\n", holder);
			free(holder);
		}
	}
	return status;
}

int command_revoke(struct context *context, int argc, char **argv)
{
	int status = only_common_options(context, argc, argv, 1, 1);
	return status >= 0 ? status : tree_act(context, argv[optind], revoke, NULL);
}
