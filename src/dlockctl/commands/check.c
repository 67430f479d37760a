/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl check: whether a lock is still held, by a round trip through the quorum.
 */
#include <errno.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/descriptor.h"

/* To ask for the token proves as much as fsync(2), which, however, succeeds where nothing is
 * locked. */
static int prove(int fd, uint64_t *ret_token)
{
	int error = descriptor_token(fd, ret_token);
	if (error == -EACCES) /* the host may not write to the claim, as the token needs */
		error = fsync(fd) == 0 ? 0 : -errno;
	return error;
}

int command_check(struct context *context, int argc, char **argv)
{
	uint64_t token;
	int status = descriptor_ask(context, argc, argv, prove, &token);
	return status >= 0 ? status : 0;
}
