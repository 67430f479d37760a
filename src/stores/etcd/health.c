/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks members of etcd for their status, which each answers by itself, to everybody (space.c).
 */
#include "stores/etcd/health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "stores/etcd/message.h"
#include "stores/etcd/space.h"
#include "stores/etcd/table.h"
#include "stores/net/ask.h"

/* A name may have an address of IPv6 and one of IPv4. */
#define ATTEMPTS 2

struct member {
	struct ask_server server; /* first */
	struct grpc *grpc;
	int64_t sent_us;
	int failures;
	int64_t limit_ms;
};

static const char no_leader[] = "is not in the quorum: it knows no leader";

static void judge(struct member *member, const Etcd__StatusResponse *answer)
{
	const struct store_space space = etcd_space_read(answer);
	bool leads = answer->header != NULL && answer->header->member_id == answer->leader;
	char text[160];

	if (space.is_full || space.is_corrupt)
		snprintf(text, sizeof(text), "the alarm %s is on",
			 space.is_corrupt ? "CORRUPT" : "NOSPACE");
	else if (answer->leader == 0)
		snprintf(text, sizeof(text), "%s", no_leader);
	else if (answer->is_learner)
		snprintf(text, sizeof(text), "is a learner, which serves nobody");
	else
		snprintf(text, sizeof(text), "%s, etcd %.16s, with %lld of %lld MiB",
			 leads ? "leads" : "follows", answer->version, (long long)space.bytes >> 20,
			 (long long)space.quota_bytes >> 20);
	ask_answered(&member->server,
		     space.is_full || space.is_corrupt || answer->leader == 0 || answer->is_learner
			     ? STORE_SICK
			     : STORE_WELL,
		     text, member->sent_us);
}

static void on_status(void *context, int status, const char *text, const void *bytes, size_t count)
{
	struct member *member = context;
	Etcd__StatusResponse *answer =
		etcd_message_read(&etcd__status_response__descriptor, bytes, count);
	char why[ASK_TEXT_BYTES];

	if (answer != NULL) {
		judge(member, answer);
	} else if (strstr(text, "no leader") != NULL) { /* as our calls want one: hasleader */
		ask_answered(&member->server, STORE_SICK, no_leader, member->sent_us);
	} else if (status != GRPC_UNAVAILABLE) { /* on_disconnected() says why */
		snprintf(why, sizeof(why), "%s: no status: %s", member->server.name,
			 *text ? text : "no answer in time");
		ask_failed(&member->server, why);
		member->server.is_over = true;
	}
	etcd__status_response__free_unpacked(answer, NULL);
}

static void on_connected(void *context, const char *server)
{
	struct member *member = context;

	member->sent_us = histogram_now_us();
	grpc_call(member->grpc, ETCD_STATUS_METHOD, "", 0, member->limit_ms, on_status, member);
}

static void on_disconnected(void *context, const char *why)
{
	struct member *member = context;

	ask_failed(&member->server, why);
	member->server.is_over = ++member->failures == ATTEMPTS;
}

static void advance(struct ask_server *server)
{
	struct member *member = (struct member *)server;

	grpc_dispatch(member->grpc);
	grpc_flush(member->grpc);
}

static const struct grpc_events events = {
	.on_connected = on_connected,
	.on_disconnected = on_disconnected,
};

int etcd_health(const struct store_url *url, const struct store_access *access,
		const struct store_asker *asker)
{
	size_t count = 0, begun = 0;
	char **names = ask_split_names(url->servers, &count);
	struct member *members = calloc(count + 1, sizeof(*members));
	struct ask_server **list = calloc(count + 1, sizeof(*list));
	int error = names != NULL && members != NULL && list != NULL ? 0 : -ENOMEM;

	for (; error == 0 && begun < count; begun++) {
		struct member *member = &members[begun];
		const struct grpc_options options = {
			.servers = names[begun], .access = access, .idle_ms = asker->limit_ms};

		member->server = (struct ask_server){
			.name = names[begun], .advance = advance, .health = STORE_SICK};
		member->limit_ms = asker->limit_ms;
		list[begun] = &member->server;
		error = grpc_create(&options, &events, member, &member->grpc);
		if (error == 0)
			member->server.descriptor = grpc_descriptor(member->grpc);
	}
	if (error == 0) {
		ask_advance_all(list, count, asker->limit_ms);
		ask_tell_all(list, count, asker);
	}
	for (size_t i = 0; i < begun; i++)
		grpc_destroy(members[i].grpc);
	ask_free_names(names);
	free(members);
	free(list);
	return error;
}
