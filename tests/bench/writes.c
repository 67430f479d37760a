/* SPDX-License-Identifier: Apache-2.0
 *
 * writes HOST:PORT SECONDS WINDOW: how many writes a second ZooKeeper does for one client that does
 * not wait for each: WINDOW cycles are under way at any time, each of which creates an ephemeral
 * sequential znode and deletes it. Prints the writes of one second, the mean of so many.
 *
 * The completions run on the client's own thread and are all that touches the counts until it is
 * closed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zookeeper/zookeeper.h>

#define CONNECT_SECONDS 30
#define PREFIX		"/writes/_c_00000000-0000-0000-0000-000000000000-__WRIT__"

static zhandle_t *client;
static atomic_long writes, cycles;
static atomic_bool ending;

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void check(int code, const char *what)
{
	if (code == ZOK)
		return;
	fprintf(stderr, "writes: %s: %s\n", what, zerror(code));
	exit(1);
}

static void begin_cycle(void);

static void on_deleted(int code, const void *data)
{
	(void)data;
	check(code, "delete");
	writes++;
	if (ending)
		cycles--;
	else
		begin_cycle();
}

static void on_created(int code, const char *path, const void *data)
{
	(void)data;
	check(code, "create");
	writes++;
	check(zoo_adelete(client, path, -1, on_deleted, NULL), "delete");
}

static void begin_cycle(void)
{
	check(zoo_acreate(client, PREFIX, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
			  on_created, NULL),
	      "create");
}

static void connect_to(const char *servers)
{
	int code;

	client = zookeeper_init(servers, NULL, 30000, NULL, NULL, 0);
	if (!client) {
		fprintf(stderr, "writes: zookeeper_init: %s\n", strerror(errno));
		exit(1);
	}
	for (int64_t end = now_us() + CONNECT_SECONDS * 1000000;
	     zoo_state(client) != ZOO_CONNECTED_STATE;) {
		if (now_us() > end)
			check(ZOPERATIONTIMEOUT, servers);
		usleep(1000);
	}
	code = zoo_create(client, "/writes", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	check(code == ZNODEEXISTS ? ZOK : code, "/writes");
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: writes HOST:PORT SECONDS WINDOW\n");
		return 2;
	}
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	connect_to(argv[1]);
	cycles = strtol(argv[3], NULL, 10);
	for (long i = cycles; i > 0; i--)
		begin_cycle();
	int64_t begin_us = now_us();
	long before = writes;
	sleep((unsigned int)strtoul(argv[2], NULL, 10));
	printf("%.0f\n", (double)(writes - before) * 1e6 / (double)(now_us() - begin_us));
	ending = true;
	while (cycles > 0)
		usleep(1000);
	zookeeper_close(client);
	return 0;
}
