/* SPDX-License-Identifier: Apache-2.0
 *
 * age() of the ZooKeeper store. Every write has the time of the leader that proposed it. The text
 * of the marker is read, and written again as it is: so the answer has two times, of the creation
 * and of that write. If both are of one leader, that is of one epoch (the upper half of a zxid),
 * their difference is the age by one clock; else the age is at least 0. Whoever steps the leader's
 * clock meanwhile, changes the age by that.
 *
 * Runs on the loop's thread, but for the callbacks, which run on ZooKeeper's.
 */
#include <errno.h>
#include <string.h>

#include "stores/zookeeper/operation.h"

static void on_written(int code, const struct Stat *stat, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->code = code;
	if (code == ZOK)
		operation->stat = *stat;
	operation_answered(operation);
}

static void send_write(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_aset(operation->store->handle, operation->marker, operation->text,
				(int)operation->text_bytes, -1, on_written, operation),
		       &operation->code);
}

/* Of the marker, by its stat after it was written. */
static int64_t age_of(const struct Stat *stat)
{
	bool one_leader = stat->czxid >> 32 == stat->mzxid >> 32;
	return one_leader && stat->mtime > stat->ctime ? stat->mtime - stat->ctime : 0;
}

static void tell(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	int error = operation->code == ZNONODE
			    ? -ENOENT
			    : operation_error(operation, operation->code, "cannot tell the age of");

	if (error == 0)
		operation_note_seen(operation, &operation->stat);
	operation_note_end(operation, error);
	store->events->on_aged(store->context, operation->tag, error,
			       error == 0 ? age_of(&operation->stat) : 0,
			       error == 0 ? operation->text : NULL);
	operation_release(operation);
}

static void conclude_read(struct operation *operation)
{
	if (operation->code != ZOK) {
		tell(operation);
		return;
	}
	operation->conclude = tell;
	send_write(operation);
}

static void send_read(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_aget(operation->store->handle, operation->marker, 0, operation_on_data,
				operation),
		       &operation->code);
}

void zookeeper_age(struct store *base, void *tag, const char *path, const char *name)
{
	struct operation *operation = operation_create((struct store_zookeeper *)base, STORE_READ,
						       tag, conclude_read, path, name);

	if (operation == NULL)
		return;
	if (operation_add_marker(operation, path, name) && operation->marker != NULL)
		operation_start(operation, send_read);
	else
		operation_starve(operation);
}
