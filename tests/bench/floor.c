/* SPDX-License-Identifier: Apache-2.0
 *
 * floor HOST:PORT: the least that a lock costs on ZooKeeper, an ephemeral sequential znode created
 * and deleted, one after the other, through the synchronous calls of the C client.
 *
 * Reads a line from standard input, makes that many cycles and writes the microseconds of each, one
 * a line, then an empty line; again until the input ends. So that its rounds can alternate with
 * others'.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>

#define CONNECT_SECONDS 30

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void fail(const char *what, int code)
{
	fprintf(stderr, "floor: %s: %s\n", what, zerror(code));
	exit(1);
}

static zhandle_t *connect_to(const char *servers)
{
	zhandle_t *client = zookeeper_init(servers, NULL, 30000, NULL, NULL, 0);

	if (!client) {
		fprintf(stderr, "floor: zookeeper_init: %s\n", strerror(errno));
		exit(1);
	}
	for (int64_t end = now_us() + CONNECT_SECONDS * 1000000;
	     zoo_state(client) != ZOO_CONNECTED_STATE;) {
		if (now_us() > end)
			fail(servers, ZOPERATIONTIMEOUT);
		usleep(1000);
	}
	return client;
}

static void run_cycles(zhandle_t *client, const char *prefix, long cycles)
{
	char path[256];

	for (long cycle = 0; cycle < cycles; cycle++) {
		int64_t begin = now_us();
		int code = zoo_create(client, prefix, "", 0, &ZOO_OPEN_ACL_UNSAFE,
				      ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof(path));

		if (code == ZOK)
			code = zoo_delete(client, path, -1);
		if (code != ZOK)
			fail(prefix, code);
		printf("%" PRId64 "\n", now_us() - begin);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[32];
	zhandle_t *client;
	int code;

	if (argc != 2) {
		fprintf(stderr, "usage: floor HOST:PORT\n");
		return 2;
	}
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	client = connect_to(argv[1]);
	code = zoo_create(client, "/floor", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	if (code != ZOK && code != ZNODEEXISTS)
		fail("/floor", code);
	while (fgets(line, sizeof(line), stdin))
		run_cycles(client, "/floor/_c_00000000-0000-0000-0000-000000000000-__WRIT__",
			   strtol(line, NULL, 10));
	zookeeper_close(client);
	return 0;
}
