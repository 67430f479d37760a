/* SPDX-License-Identifier: Apache-2.0
 *
 * raw HOST:PORT: a driver (driver.py) for what locks cost on ZooKeeper at least, through its C
 * client.
 *
 *     run       an ephemeral sequential znode created and deleted, one after the other; with own=1
 *               and clients=N so many of them at once, asynchronously on one connection
 *     handover  the least that passes a lock on between hosts: one client deletes a znode that
 *               another one watches. GRANTED is when the event came
 *     read      one read (exists)
 *     write     one write that takes place (set)
 */
#include "client.h"
#include "order.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIX	   "/raw/_c_00000000-0000-0000-0000-000000000000-__WRIT__"
#define PATH_BYTES 128

/* One of the cycles that are under way at once. */
struct slot {
	struct run *run;
	char path[PATH_BYTES];
	struct record *records;
	long count;
};

struct run {
	zhandle_t *client;
	long cycles;
	int64_t end;
	int active;
	pthread_mutex_t mutex; /* guards active */
	pthread_cond_t idle;
};

/* What the watcher of the waiting client says. */
struct event {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int64_t when;
};

static int place(zhandle_t *client, char *path)
{
	return zoo_create(client, PREFIX, "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
			  path, PATH_BYTES);
}

static void run_one(zhandle_t *client, long cycles, int64_t end)
{
	struct record *records = calloc((size_t)cycles, sizeof(*records));
	char path[PATH_BYTES];
	long count;

	for (count = 0; count < cycles && now_us() < end; count++) {
		struct record *record = &records[count];

		record->kind = 'x';
		record->asked = now_us();
		client_check(place(client, path), PREFIX);
		record->granted = record->releasing = now_us();
		client_check(zoo_delete(client, path, -1), path);
		record->released = now_us();
	}
	for (long i = 0; i < count; i++)
		record_print(0, &records[i]);
	free(records);
}

static void slot_ask(struct slot *slot);

static void on_deleted(int code, const void *data)
{
	struct slot *slot = (struct slot *)data;

	client_check(code, slot->path);
	slot->records[slot->count++].released = now_us();
	slot_ask(slot);
}

static void on_created(int code, const char *path, const void *data)
{
	struct slot *slot = (struct slot *)data;
	struct record *record = &slot->records[slot->count];

	client_check(code, PREFIX);
	snprintf(slot->path, sizeof(slot->path), "%s", path);
	record->granted = record->releasing = now_us();
	client_check(zoo_adelete(slot->run->client, slot->path, -1, on_deleted, slot), slot->path);
}

/* Begins the next cycle, if there is to be one. */
static void slot_ask(struct slot *slot)
{
	struct run *run = slot->run;
	int64_t now = now_us();

	if (slot->count < run->cycles && now < run->end) {
		slot->records[slot->count].kind = 'x';
		slot->records[slot->count].asked = now;
		client_check(zoo_acreate(run->client, PREFIX, "", 0, &ZOO_OPEN_ACL_UNSAFE,
					 ZOO_EPHEMERAL | ZOO_SEQUENCE, on_created, slot),
			     PREFIX);
		return;
	}
	pthread_mutex_lock(&run->mutex);
	if (--run->active == 0)
		pthread_cond_signal(&run->idle);
	pthread_mutex_unlock(&run->mutex);
}

static void run_many(zhandle_t *client, int clients, long cycles, int64_t end)
{
	struct run run = {.client = client, .cycles = cycles, .end = end, .active = clients};
	struct slot *slots = calloc((size_t)clients, sizeof(*slots));

	pthread_mutex_init(&run.mutex, NULL);
	pthread_cond_init(&run.idle, NULL);
	for (int i = 0; i < clients; i++) {
		slots[i].run = &run;
		slots[i].records = calloc((size_t)cycles, sizeof(struct record));
		slot_ask(&slots[i]);
	}
	pthread_mutex_lock(&run.mutex);
	while (run.active > 0)
		pthread_cond_wait(&run.idle, &run.mutex);
	pthread_mutex_unlock(&run.mutex);
	for (int i = 0; i < clients; i++) {
		for (long j = 0; j < slots[i].count; j++)
			record_print(i, &slots[i].records[j]);
		free(slots[i].records);
	}
	free(slots);
}

static void on_event(zhandle_t *client, int type, int state, const char *path, void *data)
{
	struct event *event = data;
	int64_t now = now_us();

	if (type != ZOO_DELETED_EVENT)
		return;
	pthread_mutex_lock(&event->mutex);
	event->when = now;
	pthread_cond_signal(&event->changed);
	pthread_mutex_unlock(&event->mutex);
}

static void on_done(int code, const void *data)
{
	client_check(code, "delete");
}

/* The event is counted from when the delete is sent, not from when it is answered. */
static void hand_over(zhandle_t *holder, zhandle_t *waiter, struct record *record)
{
	static struct event event = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
	char path[PATH_BYTES];

	event.when = 0;
	client_check(place(holder, path), PREFIX);
	client_check(zoo_wexists(waiter, path, on_event, &event, NULL), path);
	record->kind = 'x';
	record->asked = now_us();
	client_check(zoo_adelete(holder, path, -1, on_done, NULL), path);
	pthread_mutex_lock(&event.mutex);
	while (!event.when)
		pthread_cond_wait(&event.changed, &event.mutex);
	pthread_mutex_unlock(&event.mutex);
	record->granted = record->releasing = record->released = event.when;
}

static void trip(zhandle_t *client, bool write, struct record *record)
{
	record->kind = 'x';
	record->asked = now_us();
	if (write)
		client_check(zoo_set(client, "/raw", "", 0, -1), "/raw");
	else
		client_check(zoo_exists(client, "/raw", 0, NULL), "/raw");
	record->granted = record->releasing = record->released = now_us();
}

static void carry_out(const char *line, zhandle_t *client, zhandle_t *other)
{
	int clients = (int)order_number(line, "clients", 1);
	long cycles = order_number(line, "cycles", 1000);
	int64_t end = now_us() + order_number(line, "seconds_ms", 1000) * 1000;
	struct record record;

	if (order_is(line, "run") && !order_number(line, "own", 0)) {
		run_one(client, cycles, end);
	} else if (order_is(line, "run")) {
		run_many(client, clients, cycles, end);
	} else {
		while (cycles-- > 0 && now_us() < end) {
			if (order_is(line, "handover"))
				hand_over(client, other, &record);
			else
				trip(client, order_is(line, "write"), &record);
			record_print(0, &record);
		}
	}
	order_done();
}

int main(int argc, char **argv)
{
	char line[256];
	zhandle_t *client, *other;

	if (argc != 2) {
		fprintf(stderr, "usage: raw HOST:PORT\n");
		return 2;
	}
	client = client_connect(argv[1], "/raw");
	other = client_connect(argv[1], "/raw");
	while (order_read(line, sizeof(line)))
		carry_out(line, client, other);
	zookeeper_close(other);
	zookeeper_close(client);
	return 0;
}
