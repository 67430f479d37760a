/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl token: the fencing token, for shell scripts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "descriptor.h"
#include "output.h"

int command_token(struct context *context, int argc, char **argv)
{
	uint64_t token;
	int fd;

	int status = only_common_options(context, argc, argv, 1, 1);
	if (status >= 0)
		return status;
	status = descriptor_parse(argv[optind], &fd);
	if (status != 0)
		return status;
	int error = descriptor_token(fd, &token);
	if (error != 0) {
		char *what = must_format("descriptor %d", fd);
		status = descriptor_fail(what, error);
		free(what);
		return status;
	}
	char *digits = must_format("%" PRIu64, token);
	/* A string: programs in JavaScript would round the number. */
	if (context->json)
		status = print_json(must(json_pack("{s:s}", "token", digits)));
	else
		puts(digits);
	free(digits);
	return status;
}
