/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files: alter() and files() of the ZooKeeper store. Such a file is an
 * ephemeral znode without a number (claim/file_path.h), as kazoo's create(ephemeral=True) makes it.
 *
 * One that is kept is a persistent znode.
 *
 * An alteration is one transaction, and a failed one is logged by the quorum like any other
 * (prove.c). Three things need more than one:
 *
 * - A directory that is missing is made, as a container like those of locks, along with the next
 *   transaction. The server may remove an idle container at any time, also between the two.
 * - STEP_TAKE deletes what is there, but a delete of nothing fails. It is first tried with the
 *   delete, then without, then with it again, as somebody else makes and removes the file.
 * - ZooKeeper's check knows versions, not sessions. The owner is asked for right behind the
 *   transaction, on the same connection: if the file is of this session then, it was so in the
 *   transaction, since nobody else makes a file of this session. If other steps depend on the check
 *   the owner is asked for before, too, and of a file of another session an impossible version is
 *   checked. What is taken away between that look and the transaction is answered -ECONNRESET.
 *
 * Such further requests are made while the answer to the former ones is delivered. What was called
 * meanwhile can take effect before them.
 *
 * "Nothing that was asked for before a connection was lost is carried out after an answer to what
 * is asked in the next one" (stores/store.h). This holds in ZooKeeper (3.8; the same in 3.9), for
 * transactions, too:
 *
 * - The leader notes the server through which a session is connected (Leader.revalidateSession,
 *   ZooKeeperServer.setOwner) before the client hears that it is. Each operation, and likewise each
 *   operation of a multi (PrepRequestProcessor.pRequest2Txn for delete, setData and check,
 *   validateCreateRequest for create), calls SessionTrackerImpl.checkSession, which throws a
 *   SessionMovedException for requests through another server. As the first operation of a multi
 *   fails, so do all.
 * - Through the same server requests stay in order: ZooKeeperServer.processConnectRequest closes
 *   the former connection (ServerCnxnFactory.closeSession, CLIENT_RECONNECT), so nothing more is
 *   read from it, before it answers the next one; what was read is in the queue in front, also on
 *   the one way from a follower to the leader.
 * - The client library sends nothing again. What it has not sent when the connection is lost fails.
 *
 * The loop's thread, except for the callbacks, which run on ZooKeeper's.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "stores/zookeeper/operation.h"

#define ROUNDS_MAX	   100
#define IMPOSSIBLE_VERSION INT_MIN

struct step {
	enum store_step_kind kind;
	char *znode;
	char *text;	 /* NULL: the step has none */
	char *companion; /* STEP_STAND: the znode of the claim's companion, or NULL */
	int32_t version;
	bool absent; /* STEP_TAKE: there is nothing to delete */
	int op;	     /* the first of its operations */
	struct zookeeper_owner owner;
};

struct alteration {
	size_t count;
	size_t checks; /* how many of them are STEP_CHECK */
	bool looks;    /* the owners are asked for, and nothing else yet */
	unsigned rounds;
	struct step *deep;   /* whose directory is missing, or NULL */
	struct levels above; /* that directory, and all above it */
	int ops_count;
	zoo_op_t ops[2 * STORE_STEPS_MAX];
	zoo_op_result_t results[2 * STORE_STEPS_MAX];
	struct step steps[STORE_STEPS_MAX];
};

static struct alteration *alteration_of(const struct operation *operation)
{
	return operation->memory;
}

static void finish(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);

	for (size_t i = 0; i < alteration->count; i++) {
		free(alteration->steps[i].znode);
		free(alteration->steps[i].text);
		free(alteration->steps[i].companion);
	}
}

/* Whose a file is */

/* On ZooKeeper's thread. */
static void on_owner(int code, const struct Stat *stat, const void *data)
{
	struct zookeeper_owner *owner = (struct zookeeper_owner *)data;

	owner->code = code;
	if (code == ZOK)
		owner->session = stat->ephemeralOwner;
	operation_answered(owner->operation);
}

void zookeeper_files_ask_owner(struct operation *operation, const char *path,
			       struct zookeeper_owner *owner)
{
	*owner = (struct zookeeper_owner){.operation = operation, .code = ZCONNECTIONLOSS};
	operation_made(operation, zoo_aexists(operation->store->handle, path, 0, on_owner, owner),
		       &owner->code);
}

int zookeeper_files_judge_owner(const struct zookeeper_owner *owner)
{
	if (owner->code == ZOK && owner->session != owner->operation->store->id.client_id)
		return ZNONODE;
	return owner->code;
}

/* alter() */

static zoo_op_t *add_op(struct alteration *alteration)
{
	return &alteration->ops[alteration->ops_count++];
}

static void add_step(struct operation *operation, struct step *step)
{
	struct alteration *alteration = alteration_of(operation);
	int bytes = step->text != NULL ? (int)strlen(step->text) : 0;

	step->op = alteration->ops_count;
	if (step->kind == STEP_TAKE && !step->absent)
		zoo_delete_op_init(add_op(alteration), step->znode, -1);
	switch (step->kind) {
	case STEP_MAKE:
	case STEP_TAKE:
		zoo_create_op_init(add_op(alteration), step->znode, step->text, bytes,
				   &operation->store->rights.acl, ZOO_EPHEMERAL, NULL, 0);
		break;
	case STEP_KEEP:
		zoo_create_op_init(add_op(alteration), step->znode, step->text, bytes,
				   &operation->store->rights.acl, ZOO_PERSISTENT, NULL, 0);
		break;
	case STEP_REPLACE:
		zoo_set_op_init(add_op(alteration), step->znode, step->text, bytes, step->version,
				NULL);
		break;
	case STEP_REMOVE:
		zoo_delete_op_init(add_op(alteration), step->znode, step->version);
		break;
	case STEP_CHECK:
		zoo_check_op_init(add_op(alteration), step->znode, step->version);
		break;
	case STEP_STAND:
		if (step->companion != NULL)
			zoo_check_op_init(add_op(alteration), step->companion, -1);
		zoo_check_op_init(add_op(alteration), step->znode, step->version);
		break;
	}
}

static void ask_owners(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);

	for (size_t i = 0; i < alteration->count; i++) {
		struct step *step = &alteration->steps[i];

		if (step->kind == STEP_CHECK)
			zookeeper_files_ask_owner(operation, step->znode, &step->owner);
	}
}

/* All requests are sent at once: ZooKeeper carries them out in this order. Without steps the
 * transaction checks the server's root. */
static void send_alter(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);
	struct levels *above = &alteration->above;

	operation->code = ZOK;
	above->code = ZOK;
	if (alteration->looks) {
		operation->waited = (int)alteration->checks;
		ask_owners(operation);
		return;
	}
	above->count =
		alteration->deep != NULL ? zookeeper_place_levels(alteration->deep->znode) : 0;
	operation->waited = (int)above->count + 1 + (int)alteration->checks;
	if (alteration->deep != NULL)
		zookeeper_place_above(above, alteration->deep->znode);
	alteration->ops_count = 0;
	memset(alteration->results, 0, sizeof(alteration->results));
	for (size_t i = 0; i < alteration->count; i++)
		add_step(operation, &alteration->steps[i]);
	if (alteration->count == 0)
		zoo_check_op_init(add_op(alteration), operation->path, -1);
	operation_made(operation,
		       operation_multi(operation, alteration->ops_count, alteration->ops,
				       alteration->results, operation_on_done),
		       &operation->code);
	ask_owners(operation);
}

/* The step of the operation that failed with the code of the transaction; NULL: no server has said
 * that of a step. `ret_making`: its file could not be created. */
static struct step *find_failed(const struct operation *operation, bool *ret_making)
{
	struct alteration *alteration = alteration_of(operation);
	struct step *failed = NULL;
	int op = 0;

	switch (operation->code) {
	case ZNONODE:
	case ZNODEEXISTS:
	case ZBADVERSION:
	case ZNOTEMPTY:
	case ZNOAUTH:
	case ZINVALIDACL:
	case ZNOCHILDRENFOREPHEMERALS:
		break;
	default:
		return NULL;
	}
	while (op < alteration->ops_count && alteration->results[op].err != operation->code)
		op++;
	if (op == alteration->ops_count)
		return NULL;
	for (size_t i = 0; i < alteration->count && alteration->steps[i].op <= op; i++)
		failed = &alteration->steps[i];
	if (failed != NULL)
		*ret_making = failed->kind == STEP_MAKE || failed->kind == STEP_KEEP ||
			      (failed->kind == STEP_TAKE && (failed->absent || op > failed->op));
	return failed;
}

/* Before the transaction: whose the files are that are to be of this session. Returns false if that
 * could not be found out. */
static bool judge_looks(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);

	if (operation->code != ZOK)
		return false;
	for (size_t i = 0; i < alteration->count; i++) {
		struct step *step = &alteration->steps[i];
		int code =
			step->kind == STEP_CHECK ? zookeeper_files_judge_owner(&step->owner) : ZOK;

		if (code != ZOK && code != ZNONODE) {
			operation->code = code;
			return false;
		}
		if (code == ZNONODE)
			step->version = IMPOSSIBLE_VERSION;
	}
	alteration->looks = false;
	return true;
}

/* The directory of the step's file is still missing, as it could not be made. A level above that
 * exists can be refused, too: that counts only here. */
static bool is_without_directory(const struct operation *operation, const struct step *step)
{
	const struct alteration *alteration = alteration_of(operation);

	return operation->code == ZNONODE && alteration->above.code != ZOK &&
	       alteration->deep == step;
}

/* What the failed transaction shows to be different from what was thought. */
static bool adapt(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);
	bool making = false;
	struct step *step = find_failed(operation, &making);

	if (step == NULL || is_without_directory(operation, step))
		return false;
	alteration->deep = NULL;
	if (operation->code == ZNONODE && making)
		alteration->deep = step;
	else if (operation->code == ZNONODE && step->kind == STEP_TAKE)
		step->absent = true;
	else if (operation->code == ZNODEEXISTS && step->kind == STEP_TAKE && step->absent)
		step->absent = false;
	else
		return false;
	return true;
}

/* Returns false if there is nothing more to send. In another session, or by another handle, further
 * requests could overtake some, or come late. */
static bool send_again(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);

	if (operation->keep || (alteration->looks ? !judge_looks(operation) : !adapt(operation)) ||
	    alteration->rounds++ == ROUNDS_MAX)
		return false;
	if (operation->session != operation->store->session) {
		operation->code = ZCONNECTIONLOSS;
		return false;
	}
	operation->outside = true;
	send_alter(operation);
	return true;
}

/* The transaction is done: whether that holds which it could not check. ZCONNECTIONLOSS: its other
 * steps were done, though this host has just lost a file. */
static int judge_owners(const struct operation *operation)
{
	const struct alteration *alteration = alteration_of(operation);

	for (size_t i = 0; i < alteration->count; i++) {
		const struct step *step = &alteration->steps[i];
		int code =
			step->kind == STEP_CHECK ? zookeeper_files_judge_owner(&step->owner) : ZOK;

		if (code == ZNONODE && alteration->checks < alteration->count)
			return ZCONNECTIONLOSS;
		if (code != ZOK)
			return code;
	}
	return ZOK;
}

/* The error of a step that a server has refused. */
static int step_error(const struct operation *operation, const struct step *step)
{
	switch (operation->code) {
	case ZNONODE:
		return -ENOENT;
	case ZBADVERSION:
		return step->kind == STEP_CHECK ? -ENOENT : -ESTALE;
	case ZNODEEXISTS:
	case ZNOTEMPTY: /* a znode that is no file */
		return -EEXIST;
	case ZNOCHILDRENFOREPHEMERALS:
		return -ENOTDIR;
	default:
		return operation_error(operation, operation->code,
				       step->kind == STEP_MAKE || step->kind == STEP_TAKE ||
						       step->kind == STEP_KEEP
					       ? "cannot create"
					       : "cannot change");
	}
}

/* For the log, which names the operation's path. */
static void name_failed(struct operation *operation, struct step *failed)
{
	char *path = operation->path;

	operation->path = failed->znode;
	failed->znode = path;
}

static int alter_error(struct operation *operation)
{
	struct alteration *alteration = alteration_of(operation);
	bool making;
	struct step *failed = find_failed(operation, &making);

	if (operation->code == ZOOKEEPER_TOO_LONG)
		name_failed(operation, &alteration->steps[0]);
	if (alteration->count == 0 && alteration->ops_count > 0 && operation->code == ZNOAUTH)
		return 0;
	if (failed != NULL)
		name_failed(operation, failed);
	if (failed != NULL && is_without_directory(operation, failed))
		operation->code = alteration->above.code;
	if (failed != NULL)
		return step_error(operation, failed);
	if (operation->code == ZOK)
		operation->code = judge_owners(operation);
	if (operation->code == ZNONODE)
		return -ENOENT;
	if (operation->code == ZMARSHALLINGERROR)
		return -ENOMEM;
	int error = operation_error(operation, operation->code, "cannot change");
	return error == -EACCES ? -EIO : error; /* no step was refused: it proves nothing */
}

static void conclude_alter(struct operation *operation)
{
	struct store_change *change = operation->tag;
	int error;

	if (operation->generation != operation->store->generation)
		operation->code = ZCONNECTIONLOSS; /* what was made then is, or will be, gone */
	if (send_again(operation))
		return;
	error = alter_error(operation);
	operation_note_end(operation, error);
	change->done(change, error);
	operation_release(operation);
}

/* The claim of STEP_STAND is as much as its companion. Returns false when out of memory. */
static bool find_claim(const struct operation *operation, struct step *step,
		       const struct store_step *from)
{
	char companion[CLAIM_NAME_BYTES];

	step->znode = operation_znode(operation->store, from->path, from->text);
	if (step->znode == NULL || !operation_find_companion(from->text, companion))
		return step->znode != NULL;
	step->companion = operation_znode(operation->store, from->path, companion);
	return step->companion != NULL;
}

/* Returns false when out of memory. */
static bool copy_step(struct operation *operation, const struct store_step *from)
{
	struct alteration *alteration = alteration_of(operation);
	struct step *step = &alteration->steps[alteration->count++];
	bool has_text = from->kind != STEP_REMOVE && from->kind != STEP_CHECK;

	step->kind = from->kind;
	step->version = from->kind == STEP_CHECK ? -1 : (int32_t)from->version;
	if (from->kind == STEP_STAND)
		return find_claim(operation, step, from);
	step->znode = operation_znode(operation->store, from->path, NULL);
	step->text = has_text ? strdup(from->text) : NULL;
	alteration->checks += from->kind == STEP_CHECK;
	if (step->znode == NULL || (has_text && step->text == NULL))
		return false;
	operation->packet_bytes += strlen(step->znode) + (has_text ? strlen(step->text) : 0);
	return true;
}

int zookeeper_files_alter(struct store *base, struct store_change *change,
			  const struct store_step *steps, size_t count)
{
	struct operation *operation =
		zookeeper_look_ask(base, STORE_ALTER, change, conclude_alter, NULL, NULL);
	struct alteration *alteration;
	bool complete;

	if (operation == NULL)
		return -ENOMEM;
	alteration = operation->memory = calloc(1, sizeof(*alteration));
	complete = alteration != NULL;
	operation->finish = complete ? finish : NULL;
	for (size_t i = 0; i < count && complete; i++)
		complete = copy_step(operation, &steps[i]);
	if (!complete) {
		operation_free(operation);
		return -ENOMEM;
	}
	alteration->above.operation = operation;
	alteration->looks = alteration->checks > 0 && alteration->checks < alteration->count;
	operation_start(operation, send_alter);
	return 0;
}

/* files() */

/* The names of files, which are the caller's to free. Returns NULL when out of memory. */
static char **decode_files(const struct operation *operation, size_t *ret_count)
{
	const struct names *names = operation->names;
	char **decoded = calloc(names->count + 1, sizeof(*decoded));
	const char *name = names->text;

	*ret_count = 0;
	for (size_t i = 0; decoded != NULL && i < names->count; i++, name += strlen(name) + 1) {
		char **file = &decoded[*ret_count];

		if (operation_is_reserved(operation, name) ||
		    znode_path_decode_file(name, file) < 0)
			continue;
		if ((*file)[strlen(*file) - 1] == '/') { /* the queue of a file's lock */
			free(*file);
			*file = NULL;
		} else {
			++*ret_count;
		}
	}
	return decoded;
}

static void conclude_files(struct operation *operation)
{
	struct store_files *files = operation->tag;
	char **names = NULL;
	size_t count = 0;
	int error = operation->list_code == ZNONODE
			    ? -ENOENT
			    : operation_error(operation, operation->list_code, "cannot list");

	if (!error) {
		names = decode_files(operation, &count);
		error = names != NULL ? 0 : -ENOMEM;
	}
	operation_note_end(operation, error);
	files->done(files, error, (const char *const *)names, count);
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
	operation_release(operation);
}

int zookeeper_files(struct store *base, struct store_files *files, const char *directory)
{
	struct operation *operation =
		zookeeper_look_ask(base, STORE_FILES, files, conclude_files, directory, NULL);

	if (operation == NULL)
		return -ENOMEM;
	operation_start(operation, operation_ask_children);
	return 0;
}
