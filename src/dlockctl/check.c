/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl check: whether a lock is still held, by a round trip through the quorum.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "descriptor.h"
#include "dlockctl.h"

int command_check(struct context *context, int argc, char **argv)
{
	uint64_t token;
	int fd;

	int status = only_common_options(context, argc, argv, 1, 1);
	if (status >= 0)
		return status;
	status = descriptor_parse(argv[optind], &fd);
	if (status != 0)
		return status;
	/* The token proves as much as fsync(2) and, unlike that, fails where nothing is locked. */
	int error = descriptor_token(fd, &token);
	if (error == -EACCES) /* the servers let nobody write to the claim */
		error = fsync(fd) == 0 ? 0 : -errno;
	if (error == 0)
		return 0;
	char *what = must_format("descriptor %d", fd);
	status = descriptor_fail(what, error);
	free(what);
	return status;
}
