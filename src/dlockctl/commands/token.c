/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl token: the fencing token, for shell scripts.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/descriptor.h"
#include "dlockctl/output.h"

int command_token(struct context *context, int argc, char **argv)
{
	uint64_t token;
	int status = descriptor_ask(context, argc, argv, descriptor_token, &token);
	if (status >= 0)
		return status;
	status = 0;
	char *digits = must_format("%" PRIu64, token);
	/* A string: programs in JavaScript would round the number. */
	if (context->json)
		status = print_json(must(json_pack("{s:s}", "token", digits)));
	else
		puts(digits);
	free(digits);
	return status;
}
