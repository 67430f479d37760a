/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a queue's numbers anew. The numbers are the child version of the lock's container
 * (claim/name.h), and start at 0 when the container is removed and created again. It is removed
 * when a list shows no claim in it. If there are locks below, their containers go with it in one
 * transaction, so that either all of them were empty at one moment, or nothing happens.
 *
 * Locks below that are never all idle at once are asked to pause: the empty data of the upper
 * container is set to empty once more, which raises its version; hosts that place claims below see
 * that (above.c). A container with data is left as it is, until all locks below are idle by
 * themselves.
 *
 * A znode below that has data was made by another client, and stays. Containers cannot be told from
 * persistent znodes (DataNode.copyStat() shows both with the owner 0), so an empty persistent znode
 * may be removed, too: the host that places the next claim there creates it again, as a container.
 *
 * Everything runs on the loop's thread, except the callbacks, which run on ZooKeeper's.
 */
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/clock.h"
#include "stores/zookeeper/operation.h"

enum {
	CONTAINERS_MAX = 256, /* below; if there are more, it is unlikely that all are idle */
	ASK_AGAIN_MS = 30000, /* hosts that were asked to pause have gone on long before */
};

struct container {
	struct container *prev, *next;
	struct operation *operation;
	struct names *names;
	struct Stat stat;
	int code;
	char path[];
};

/* The walk through the containers below. Each round lists the containers that the round before has
 * found. */
struct renewal {
	void (*send)(struct operation *operation); /* makes the list again */
	void (*then)(struct operation *operation);
	struct container *containers; /* upper ones before lower ones */
	struct container *round;      /* the first container of the present round */
	size_t count;
	zoo_op_t *ops;
	zoo_op_result_t *results;
};

static void on_container_listed(int code, const struct String_vector *strings,
				const struct Stat *stat, const void *data)
{
	struct container *container = (struct container *)data;

	container->code = code;
	if (code == ZOK) {
		container->stat = *stat;
		container->code = operation_copy_names(strings, &container->names);
	}
	operation_answered(container->operation);
}

static struct renewal *renewal_of(const struct operation *operation)
{
	return operation->memory;
}

static void finish(struct operation *operation)
{
	struct renewal *renewal = renewal_of(operation);
	struct container *container, *next;

	DL_FOREACH_SAFE (renewal->containers, container, next) {
		free(container->names);
		free(container);
	}
	free(renewal->ops);
	free(renewal->results);
}

/* Returns false when out of memory, or if there are too many. */
static bool add_containers(struct operation *operation, const char *above,
			   const struct names *names)
{
	struct renewal *renewal = renewal_of(operation);
	const char *name = names->text;

	if (renewal->count + names->count > CONTAINERS_MAX)
		return false;
	for (size_t i = 0; i < names->count; i++, name += strlen(name) + 1) {
		size_t bytes = strlen(above) + 1 + strlen(name) + 1;
		struct container *container = calloc(1, sizeof(*container) + bytes);

		if (container == NULL)
			return false;
		stpcpy(stpcpy(stpcpy(container->path, above), "/"), name);
		container->operation = operation;
		DL_APPEND(renewal->containers, container);
		renewal->count++;
		if (renewal->round == NULL)
			renewal->round = container;
	}
	return true;
}

static void send_round(struct operation *operation)
{
	struct container *container;
	int count = 0;

	for (container = renewal_of(operation)->round; container != NULL;
	     container = container->next)
		count++;
	operation->waited = count;
	for (container = renewal_of(operation)->round; container != NULL;
	     container = container->next)
		operation_made(operation,
			       zoo_aget_children2(operation->store->handle, container->path, 0,
						  on_container_listed, container),
			       &container->code);
}

/* Makes the list anew, for the original operation: it shows the claims that came meanwhile. Not in
 * a session whose handle is closed. */
static void end_renewal(struct operation *operation)
{
	operation->conclude = renewal_of(operation)->then;
	free(operation->names);
	operation->names = NULL;
	if (!operation->session->over) {
		renewal_of(operation)->send(operation);
		return;
	}
	operation->code = operation->list_code = ZCONNECTIONLOSS;
	operation->conclude(operation);
}

/* A lock below is in use: asks the hosts that place claims there to pause. */
static void ask_to_pause(struct operation *operation)
{
	int64_t since_ms = clock_wall_ms() - operation->stat.mtime;

	if (operation->stat.dataLength != 0)
		return; /* it has data: another client's */
	if (operation->stat.version != 0 && since_ms >= 0 && since_ms < ASK_AGAIN_MS)
		return;
	zoo_aset(operation->store->handle, operation->path, "", 0, -1, operation_on_ignored_stat,
		 NULL);
}

/* Whether the znode is a container that may go: not a claim, without data, and not gone. */
static bool is_container(const struct container *container)
{
	return container->code == ZOK && container->stat.ephemeralOwner == 0 &&
	       container->stat.dataLength == 0;
}

/* Removes the containers, lower ones before upper ones. Returns false when out of memory. */
static bool remove_all(struct operation *operation)
{
	struct renewal *renewal = renewal_of(operation);
	const struct container *container;
	size_t i = renewal->count;

	renewal->ops = calloc(renewal->count + 1, sizeof(*renewal->ops));
	renewal->results = calloc(renewal->count + 1, sizeof(*renewal->results));
	if (renewal->ops == NULL || renewal->results == NULL)
		return false;
	DL_FOREACH (renewal->containers, container)
		zoo_delete_op_init(&renewal->ops[--i], container->path, -1);
	zoo_delete_op_init(&renewal->ops[renewal->count], operation->path, -1);
	operation->conclude = end_renewal;
	operation->waited = 1;
	operation_made(operation,
		       operation_multi(operation, (int)renewal->count + 1, renewal->ops,
				       renewal->results, operation_on_done),
		       NULL);
	return true;
}

static void conclude_round(struct operation *operation)
{
	struct renewal *renewal = renewal_of(operation);
	const struct container *container = renewal->round, *last = renewal->containers->prev;

	if (operation->session->over) {
		end_renewal(operation);
		return;
	}
	renewal->round = NULL;
	for (;; container = container->next) {
		if (!is_container(container)) {
			ask_to_pause(operation);
			end_renewal(operation);
			return;
		}
		if (!add_containers(operation, container->path, container->names)) {
			end_renewal(operation);
			return;
		}
		if (container == last)
			break;
	}
	if (renewal->round != NULL)
		send_round(operation);
	else if (!remove_all(operation))
		end_renewal(operation);
}

bool zookeeper_renew_queue(struct operation *operation, void (*send)(struct operation *))
{
	int64_t next = zookeeper_queue_next_order(&operation->stat);
	struct renewal *renewal;

	if (operation->memory != NULL || !zookeeper_queue_wears_out(next))
		return false;
	if (operation->names->count == 0) {
		zoo_adelete(operation->store->handle, operation->path, -1, operation_on_ignored,
			    NULL);
		return false;
	}
	if (operation->attend || next < ORDER_LATE)
		return false;
	renewal = operation->memory = calloc(1, sizeof(*renewal));
	if (renewal == NULL)
		return false;
	operation->finish = finish;
	renewal->send = send;
	renewal->then = operation->conclude;
	if (!add_containers(operation, operation->path, operation->names))
		return false;
	operation->conclude = conclude_round;
	send_round(operation);
	return true;
}
