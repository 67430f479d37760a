/* SPDX-License-Identifier: Apache-2.0
 *
 * raw_redis HOST:PORT: a driver (driver.py) for what locks cost on Redis at least, through hiredis.
 *
 *     run       SET NX PX, and a script that deletes the key if it still has that value, one after
 *               the other; with own=1 and clients=N so many of them at once on one connection
 *     handover  the least that passes a lock on between hosts: one connection deletes a key and
 *               publishes that, another one is subscribed. GRANTED is when the message came
 *     read      one read (GET)
 *     write     one write (SET)
 */
#include <err.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"

#define LEASE_MS "30000"
#define VALUE	 "694d8a1c2f3b5d07"
#define CHANNEL	 "raw:handover"
#define RELEASE                                                                                    \
	"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "         \
	"else return 0 end"
#define PASS_ON "redis.call('del', KEYS[1]) return redis.call('publish', KEYS[2], '')"

enum { KEY_BYTES = 64, DIGEST_BYTES = 41 };

/* One of the cycles that are under way at once. */
struct slot {
	char key[KEY_BYTES];
	struct record *records;
	long count;
};

struct run {
	redisContext *redis;
	long cycles;
	int64_t end;
	struct slot **asking; /* who waits for an answer: they come in the order of the requests */
	int clients, first, under_way;
};

static redisContext *holder, *waiter; /* two hosts */
static char release_script[DIGEST_BYTES], pass_on_script[DIGEST_BYTES];

static redisContext *connect_to(const char *address)
{
	char host[KEY_BYTES];
	const char *colon = strrchr(address, ':');
	redisContext *redis;

	snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
	redis = redisConnect(host, atoi(colon + 1));
	if (!redis || redis->err)
		errx(1, "%s: %s", address, redis ? redis->errstr : "out of memory");
	return redis;
}

/* The next answer, which is not to be an error. To be freed. */
static redisReply *answer(redisContext *redis)
{
	void *found = NULL;
	redisReply *reply;

	if (redisGetReply(redis, &found) != REDIS_OK)
		errx(1, "%s", redis->errstr);
	reply = found;
	if (reply->type == REDIS_REPLY_ERROR)
		errx(1, "%s", reply->str);
	return reply;
}

static void answered(redisContext *redis)
{
	freeReplyObject(answer(redis));
}

static void load(const char *script, char digest[static DIGEST_BYTES])
{
	redisReply *reply;

	redisAppendCommand(holder, "SCRIPT LOAD %s", script);
	reply = answer(holder);
	snprintf(digest, DIGEST_BYTES, "%s", reply->str);
	freeReplyObject(reply);
}

/* run */

static void expect_answer(struct run *run, struct slot *slot)
{
	run->asking[(run->first + run->under_way++) % run->clients] = slot;
}

/* Begins the next cycle, if there is to be one. */
static void slot_take(struct run *run, struct slot *slot)
{
	int64_t now = now_us();

	if (slot->count >= run->cycles || now >= run->end)
		return;
	slot->records[slot->count].kind = 'x';
	slot->records[slot->count].asked = now;
	redisAppendCommand(run->redis, "SET %s " VALUE " NX PX " LEASE_MS, slot->key);
	expect_answer(run, slot);
}

static void slot_answered(struct run *run, struct slot *slot, const redisReply *reply)
{
	struct record *record = &slot->records[slot->count];

	if (!record->granted) {
		if (reply->type != REDIS_REPLY_STATUS)
			errx(1, "%s: somebody else has it", slot->key);
		record->granted = record->releasing = now_us();
		redisAppendCommand(run->redis, "EVALSHA %s 1 %s " VALUE, release_script, slot->key);
		expect_answer(run, slot);
		return;
	}
	if (reply->integer != 1)
		errx(1, "%s: lost", slot->key);
	record->released = now_us();
	slot->count++;
	slot_take(run, slot);
}

static void run_slots(int clients, long cycles, int64_t end)
{
	struct run run = {.redis = holder, .cycles = cycles, .end = end, .clients = clients};
	struct slot *slots = calloc((size_t)clients, sizeof(*slots));

	run.asking = calloc((size_t)clients, sizeof(*run.asking));
	for (int i = 0; i < clients; i++) {
		slots[i].records = calloc((size_t)cycles, sizeof(struct record));
		snprintf(slots[i].key, sizeof(slots[i].key), "raw/%d", i);
		slot_take(&run, &slots[i]);
	}
	while (run.under_way > 0) {
		redisReply *reply = answer(run.redis);
		struct slot *slot = run.asking[run.first];

		run.first = (run.first + 1) % clients;
		run.under_way--;
		slot_answered(&run, slot, reply);
		freeReplyObject(reply);
	}
	for (int i = 0; i < clients; i++) {
		for (long j = 0; j < slots[i].count; j++)
			record_print(i, &slots[i].records[j]);
		free(slots[i].records);
	}
	free(run.asking);
	free(slots);
}

/* handover, read and write */

/* The message is counted from when the script is sent, not from when it is answered. */
static void pass_on(struct record *record)
{
	redisAppendCommand(holder, "SET raw:key " VALUE " NX PX " LEASE_MS);
	answered(holder);
	record->asked = now_us();
	redisAppendCommand(holder, "EVALSHA %s 2 raw:key " CHANNEL, pass_on_script);
	redisBufferWrite(holder, NULL);
	answered(waiter);
	record->granted = record->releasing = record->released = now_us();
	answered(holder);
}

static void trip(bool write, struct record *record)
{
	record->asked = now_us();
	redisAppendCommand(holder, write ? "SET raw:trip " VALUE : "GET raw:trip");
	answered(holder);
	record->granted = record->releasing = record->released = now_us();
}

static void carry_out(const char *line)
{
	int clients = order_number(line, "own", 0) ? (int)order_number(line, "clients", 1) : 1;
	long cycles = order_number(line, "cycles", 1000);
	int64_t end = now_us() + order_number(line, "seconds_ms", 1000) * 1000;
	struct record record = {.kind = 'x'};

	if (order_is(line, "run")) {
		run_slots(clients, cycles, end);
	} else {
		while (cycles-- > 0 && now_us() < end) {
			if (order_is(line, "handover"))
				pass_on(&record);
			else
				trip(order_is(line, "write"), &record);
			record_print(0, &record);
		}
	}
	order_done();
}

int main(int argc, char **argv)
{
	char line[256];

	if (argc != 2 || !strchr(argv[1], ':')) {
		fprintf(stderr, "usage: raw_redis HOST:PORT\n");
		return 2;
	}
	holder = connect_to(argv[1]);
	waiter = connect_to(argv[1]);
	load(RELEASE, release_script);
	load(PASS_ON, pass_on_script);
	redisAppendCommand(waiter, "SUBSCRIBE " CHANNEL);
	answered(waiter);
	while (order_read(line, sizeof(line)))
		carry_out(line);
	redisFree(waiter);
	redisFree(holder);
	return 0;
}
