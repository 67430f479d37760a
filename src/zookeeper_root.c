/* SPDX-License-Identifier: Apache-2.0
 *
 * Sees to the znode above all locks when a session begins: creates it where it is missing, and
 * looks whether locks can be created below it, so that a mistake is told at once and not when the
 * first lock is taken. Nothing waits for that.
 *
 * Unlike the locks' own znodes it is no container: while it stands, nobody else can take its place.
 *
 * Runs on the loop's thread, but for the callbacks, which run on ZooKeeper's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "zookeeper_operation.h"

/* Created and deleted in one transaction: nobody ever sees it. */
#define PROBE_NAME ".dlockfs-probe"

/* Must last until the transaction is answered. */
struct probe {
	zoo_op_result_t results[2];
	char path[];
};

static void on_created(int code, const char *path, const void *data)
{
	struct operation *operation = (struct operation *)data;

	/* The first one that could not be created matters: what is below fails with it. That it may
	 * not be created although it exists is no reason either; the probe tells. */
	if (code != ZOK && code != ZNODEEXISTS && operation->container_code == ZOK)
		operation->container_code = code;
	operation_answered(operation);
}

static void on_acl(int code, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
	struct operation *operation = (struct operation *)data;

	for (int32_t i = 0; code == ZOK && i < acl->count; i++)
		operation->exposed |= operation->store->is_guarded &&
				      strcmp(acl->data[i].id.scheme, "world") == 0 &&
				      (acl->data[i].perms & ~ZOO_PERM_READ) != 0;
	operation_answered(operation);
}

static void on_probed(int code, const void *data)
{
	struct operation *operation = (struct operation *)data;

	operation->code = code;
	operation_answered(operation);
}

/* Answers come in the order of the requests; what fails is told by what follows. */
static void send_prepare(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	struct probe *probe = operation->memory;
	unsigned levels = 0;
	zoo_op_t ops[2];

	for (const char *at = store->root; *at; at++)
		levels += *at == '/';
	operation->container_code = ZOK;
	operation->waited = (int)levels + 2;
	for (unsigned below = levels; below > 0; below--) {
		char *slash = operation_cut(probe->path, below);

		*slash = '\0';
		operation_made(operation,
			       zoo_acreate(store->handle, probe->path, "", 0, &store->acl,
					   ZOO_PERSISTENT, on_created, operation),
			       NULL);
		*slash = '/';
	}
	operation_made(operation, zoo_aget_acl(store->handle, operation->path, on_acl, operation),
		       NULL);
	zoo_create_op_init(&ops[0], probe->path, "", 0, &store->acl, ZOO_PERSISTENT, NULL, 0);
	zoo_delete_op_init(&ops[1], probe->path, -1);
	operation_made(operation,
		       zoo_amulti(store->handle, 2, ops, probe->results, on_probed, operation),
		       &operation->code);
}

static void conclude_prepare(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	bool missing = operation->code == ZNONODE;
	int error =
		operation_error(operation, missing ? operation->container_code : operation->code,
				missing ? "cannot create" : "cannot create locks below");

	if (error)
		store->prepares_root = false; /* looks again with the next connection */
	if (error != -ECONNRESET)
		store->trouble = error ? "no locks can be created there" : NULL;
	if (operation->exposed && !store->told_exposed)
		log_warning("ZooKeeper: others may do more than read in %s, expected an ACL that "
			    "lets them only read, see setAcl in zkCli.sh",
			    operation->path);
	store->told_exposed |= operation->exposed;
	operation_release(operation);
}

void zookeeper_prepare_root(struct store_zookeeper *store)
{
	struct operation *operation;
	struct probe *probe;

	if (store->prepares_root)
		return;
	operation = operation_new(store, STORE_LOOK, NULL, conclude_prepare, "", NULL);
	probe = calloc(1, sizeof(*probe) + strlen(store->root) + strlen("/" PROBE_NAME) + 1);
	if (!operation || !probe) {
		free(probe);
		if (operation)
			operation_free(operation);
		return; /* the next connection is another occasion */
	}
	operation->memory = probe;
	stpcpy(stpcpy(probe->path, store->root), "/" PROBE_NAME);
	store->prepares_root = true;
	operation_start(operation, send_prepare);
	operation->sent_us = 0; /* not what anybody asked for: it is not counted */
}
