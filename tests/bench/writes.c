/* SPDX-License-Identifier: Apache-2.0
 *
 * writes HOST:PORT SECONDS WINDOW: how many writes a second ZooKeeper does for one client that does
 * not wait for each: WINDOW cycles are under way at any time, each of which creates an ephemeral
 * sequential znode and deletes it. Prints the writes of one second, the mean of so many.
 *
 * The completions run on the client's own thread and are all that touches the counts until it is
 * closed.
 */
#include "client.h"
#include "order.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PREFIX "/writes/_c_00000000-0000-0000-0000-000000000000-__WRIT__"

static zhandle_t *client;
static atomic_long writes, cycles;
static atomic_bool ending;

static void begin_cycle(void);

static void on_deleted(int code, const void *data)
{
	(void)data;
	client_check(code, "delete");
	writes++;
	if (ending)
		cycles--;
	else
		begin_cycle();
}

static void on_created(int code, const char *path, const void *data)
{
	(void)data;
	client_check(code, "create");
	writes++;
	client_check(zoo_adelete(client, path, -1, on_deleted, NULL), "delete");
}

static void begin_cycle(void)
{
	client_check(zoo_acreate(client, PREFIX, "", 0, &ZOO_OPEN_ACL_UNSAFE,
				 ZOO_EPHEMERAL | ZOO_SEQUENCE, on_created, NULL),
		     "create");
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: writes HOST:PORT SECONDS WINDOW\n");
		return 2;
	}
	client = client_connect(argv[1], "/writes");
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
