/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "order.h"

#define CONNECT_SECONDS 30

void client_check(int code, const char *what)
{
	if (code == ZOK)
		return;
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, zerror(code));
	exit(1);
}

zhandle_t *client_connect(const char *servers, const char *path)
{
	zhandle_t *client;
	int code;

	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	client = zookeeper_init(servers, NULL, 30000, NULL, NULL, 0);
	if (!client) {
		fprintf(stderr, "%s: zookeeper_init: %s\n", program_invocation_short_name,
			strerror(errno));
		exit(1);
	}
	for (int64_t end = now_us() + CONNECT_SECONDS * 1000000;
	     zoo_state(client) != ZOO_CONNECTED_STATE;) {
		if (now_us() > end)
			client_check(ZOPERATIONTIMEOUT, servers);
		usleep(1000);
	}
	code = zoo_create(client, path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	if (code != ZNODEEXISTS)
		client_check(code, path);
	return client;
}
