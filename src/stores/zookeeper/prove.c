/* SPDX-License-Identifier: Apache-2.0
 *
 * prove(): a transaction of checks. A leader that has lost its followers still answers a read, and
 * a sync (ZOOKEEPER-2136); a transaction is answered only when a quorum has logged it. That holds
 * for a failed check, too: the failure is logged. So any answer about one of the claims shows that
 * the session was alive. A file is asked for its owner right behind the transaction: see files.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stores/zookeeper/operation.h"

struct prove {
	size_t count;
	struct Stat stat;				  /* of the claim whose data is replaced */
	size_t files;					  /* how many of them are files, */
	struct zookeeper_owner *owners[STORE_PROOFS_MAX]; /* which have one; or NULL */
	zoo_op_result_t results[STORE_PROOFS_MAX];
	zoo_op_t ops[STORE_PROOFS_MAX];
	char *locks[STORE_PROOFS_MAX];	/* paths */
	char *znodes[STORE_PROOFS_MAX]; /* of the claims */
	char *text;
};

static struct prove *prove_of(const struct operation *operation)
{
	return operation->memory;
}

static void finish(struct operation *operation)
{
	struct prove *prove = prove_of(operation);

	for (size_t i = 0; i < prove->count; i++) {
		free(prove->locks[i]);
		free(prove->znodes[i]);
		free(prove->owners[i]);
	}
	free(prove->text);
}

/* Without claims the transaction checks the server's root: any answer proves the session. */
static void send_prove(struct operation *operation)
{
	struct prove *prove = prove_of(operation);
	size_t count = prove->count;

	if (count == 0)
		zoo_check_op_init(&prove->ops[count++], operation->path, -1);
	operation->waited = 1 + (int)prove->files;
	operation_made(operation,
		       operation_multi(operation, (int)count, prove->ops, prove->results,
				       operation_on_done),
		       &operation->code);
	for (size_t i = 0; i < prove->count; i++) {
		if (prove->owners[i] != NULL)
			zookeeper_files_ask_owner(operation, prove->znodes[i], prove->owners[i]);
	}
}

/* The checks have passed, but files may be another session's. */
static void judge_files(struct operation *operation)
{
	struct prove *prove = prove_of(operation);

	for (size_t i = 0; i < prove->count && operation->code == ZOK; i++) {
		if (prove->owners[i] != NULL)
			operation->code = zookeeper_files_judge_owner(prove->owners[i]);
		if (operation->code != ZOK)
			prove->results[i].err = operation->code;
	}
}

/* The lock of the claim whose check failed; NULL: none did. Checks in front of the failed one have
 * ZOK, those behind it ZRUNTIMEINCONSISTENCY. */
static const char *find_failed(const struct operation *operation)
{
	const struct prove *prove = prove_of(operation);

	if (operation->code != ZNONODE && operation->code != ZNOAUTH &&
	    operation->code != ZBADVERSION)
		return NULL;
	for (size_t i = 0; i < prove->count; i++) {
		if (prove->results[i].err == operation->code)
			return prove->locks[i];
	}
	return NULL;
}

static void conclude_prove(struct operation *operation)
{
	struct store_zookeeper *store = operation->store;
	const struct prove *prove = prove_of(operation);
	const char *lock;
	int64_t token = 0;
	int error;

	judge_files(operation);
	if (operation->code == ZOK && prove->text != NULL && prove->stat.mzxid <= 0)
		operation->code = ZRUNTIMEINCONSISTENCY; /* no server writes that early */
	lock = find_failed(operation);
	if (prove->count == 0 && operation->code == ZNOAUTH)
		error = 0;
	else if (lock == NULL)
		error = operation_error(operation, operation->code, "cannot check");
	else if (operation->code == ZBADVERSION)
		error = -ESTALE;
	else
		error = operation->code == ZNONODE ? -ENOENT : -EACCES;
	if (lock == NULL && error == -EACCES)
		error = -EIO;
	operation_note_end(operation, error);
	operation_note_seen(operation, &prove->stat);
	if (error == 0 && prove->text != NULL)
		error = zookeeper_tokens_make(store, prove->stat.mzxid, &token);
	store->events->on_proved(store->context, operation->tag, error,
				 error == -ENOENT ? lock : NULL, token);
	operation_release(operation);
}

/* Returns false when out of memory. */
static bool add_znode(struct operation *operation, const struct store_proof *proof,
		      const char *name, const char *text)
{
	struct prove *prove = prove_of(operation);
	size_t i = prove->count++;

	prove->locks[i] = strdup(proof->path);
	prove->znodes[i] = operation_znode(operation->store, proof->path, name);
	if (prove->locks[i] == NULL || prove->znodes[i] == NULL)
		return false;
	if (text == NULL) {
		zoo_check_op_init(&prove->ops[i], prove->znodes[i], -1);
		return true;
	}
	prove->text = strdup(text);
	if (prove->text == NULL)
		return false;
	zoo_set_op_init(&prove->ops[i], prove->znodes[i], prove->text, (int)strlen(prove->text),
			(int)proof->version, &prove->stat);
	return true;
}

/* Returns false when out of memory. */
static bool add_file(struct operation *operation, const struct store_proof *proof)
{
	struct prove *prove = prove_of(operation);
	struct zookeeper_owner *owner = calloc(1, sizeof(*owner));

	prove->files++;
	prove->owners[prove->count] = owner;
	return add_znode(operation, proof, NULL, proof->text) && owner != NULL;
}

/* Returns false when out of memory. */
static bool add_claim(struct operation *operation, const struct store_proof *proof)
{
	char companion[CLAIM_NAME_BYTES];

	if (proof->name == NULL)
		return add_file(operation, proof);
	return add_znode(operation, proof, proof->name, proof->text) &&
	       (!operation_find_companion(proof->name, companion) ||
		add_znode(operation, proof, companion, NULL));
}

void zookeeper_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct store_zookeeper *store = (struct store_zookeeper *)base;
	struct operation *operation =
		operation_create(store, STORE_PROVE, tag, conclude_prove, NULL, NULL);
	struct prove *prove;
	bool complete;

	if (tag == NULL)
		lease_beat(&store->lease, clock_now_ms());
	if (operation == NULL)
		return;
	prove = operation->memory = calloc(1, sizeof(*prove));
	complete = prove != NULL;
	operation->finish = complete ? finish : NULL;
	for (size_t i = 0; i < count && complete; i++)
		complete = add_claim(operation, &proofs[i]);
	if (complete && prove->text != NULL)
		operation->packet_bytes = strlen(prove->znodes[0]) + strlen(prove->text);
	if (complete)
		operation_start(operation, send_prove);
	else
		operation_starve(operation);
}
