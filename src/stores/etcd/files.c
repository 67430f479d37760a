/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files: alter(), files() and read() of the etcd store. A file is a key
 * with the lease of the session that made it (keys.h), or with none if it is kept, so one
 * transaction does all steps or none.
 *
 * Asked from outside of the engine, but in its session: an alteration that waits when the
 * connection is lost is never sent, and one that is under way cannot be carried out after the next
 * connection has begun (operation.h: the epoch). etcd carries requests out in no order, so what
 * needs one waits here: what is about one file is carried out in the order of the calls, but reads
 * side by side, and a list after all alterations before it. Alterations of other files, and those
 * that are called after a list, do not wait.
 *
 * etcd has no clock: a file's value says when it was made or changed by the clock of the host that
 * did it. etcd counts how often a key was written, so a file that was taken over (STEP_TAKE) was
 * changed once more: whoever knows the one before cannot mean this one. A key without a lease,
 * which somebody else has put there, is treated as a file that ends with no session.
 *
 * Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "base/clock.h"
#include "claim/file_path.h"
#include "stores/etcd/keys.h"
#include "stores/etcd/names.h"
#include "stores/etcd/state.h"
#include "stores/etcd/table.h"
#include "stores/etcd/transaction.h"

/* How many keys are read at a time. */
enum { PAGE_KEYS = 1000 };

/* What begins so is not below the directory "", but the store's own. */
static const char private_names[] = ".dlockfs/";

/* One waits for another one. */
struct waiter {
	struct waiter *next; /* for the same one */
	struct operation *operation;
};

struct file_request {
	struct operation *operation;
	struct file_request *prev, *next; /* in the turn's readers, */
	bool is_listed;			  /* if it is there */
	size_t waits;			  /* for so many others, */
	struct waiter *waiting;		  /* each with one of these */
	struct waiter *waiters;		  /* those that wait for this one */
	size_t count;
	struct etcd_key keys[STORE_STEPS_MAX];
	/* alter(): what is to be done, and the session that it was called in */
	struct store_step steps[STORE_STEPS_MAX]; /* only kind and version */
	struct standing { /* STEP_STAND: of the claim, whose key is in `keys` */
		struct etcd_key data, end;
		int64_t order;
	} standing[STORE_STEPS_MAX];
	char *values[STORE_STEPS_MAX];
	int64_t lease;
	uint64_t epoch;
};

/* Of a file, while anything about it is under way. */
struct file_turn {
	struct operation *alteration; /* the last one; NULL: it has ended */
	struct file_request *readers; /* called after that */
	UT_hash_handle hh;
	char key[];
};

static struct file_turn *find_turn(const struct store_etcd *store, const struct etcd_key *key)
{
	struct file_turn *turn;

	HASH_FIND(hh, store->turns, key->bytes, key->count, turn);
	return turn;
}

/* NULL: out of memory. */
static struct file_turn *find_or_make_turn(struct store_etcd *store, const struct etcd_key *key)
{
	struct file_turn *turn = find_turn(store, key);

	if (turn != NULL)
		return turn;
	turn = calloc(1, sizeof(*turn) + key->count + 1);
	if (turn == NULL)
		return NULL;
	memcpy(turn->key, key->bytes, key->count);
	HASH_ADD_KEYPTR(hh, store->turns, turn->key, key->count, turn);
	if (turn->hh.tbl != NULL)
		return turn;
	free(turn);
	return NULL;
}

static void leave_turns(struct operation *operation)
{
	struct store_etcd *store = operation->store;
	struct file_request *file = operation->file;

	for (size_t i = 0; i < file->count; i++) {
		struct file_turn *turn = find_turn(store, &file->keys[i]);

		if (turn == NULL)
			continue;
		if (file->is_listed)
			DL_DELETE(turn->readers, file);
		file->is_listed = false;
		if (turn->alteration == operation)
			turn->alteration = NULL;
		if (turn->alteration == NULL && turn->readers == NULL) {
			HASH_DEL(store->turns, turn);
			free(turn);
		}
	}
}

static void finish(struct operation *operation)
{
	struct file_request *file = operation->file;

	if (file != NULL) {
		leave_turns(operation);
		for (size_t i = 0; i < file->count; i++) {
			free(file->keys[i].bytes);
			free(file->standing[i].data.bytes);
			free(file->standing[i].end.bytes);
			free(file->values[i]);
		}
		free(file->waiting);
		free(file);
	}
	etcd_names_free(operation);
}

/* NULL: out of memory. */
static struct operation *create(struct store *base, const struct operation_kind *kind, void *tag,
				const char *path)
{
	char *plain = file_path_plain(path);
	struct operation *operation =
		plain != NULL ? etcd_operation_create(store_etcd_from(base), kind, tag, plain, NULL)
			      : NULL;

	free(plain);
	if (operation == NULL)
		return NULL;
	operation->file = calloc(1, sizeof(*operation->file));
	if (operation->file != NULL) {
		operation->file->operation = operation;
		return operation;
	}
	etcd_operation_free(operation);
	return NULL;
}

/* Makes room for waiting. Returns false when out of memory. */
static bool may_wait(struct operation *operation, size_t most)
{
	operation->file->waiting = calloc(most + 1, sizeof(struct waiter));
	return operation->file->waiting != NULL;
}

static void wait_for(struct operation *operation, struct operation *other)
{
	struct waiter *waiter = &operation->file->waiting[operation->file->waits++];

	waiter->operation = operation;
	LL_PREPEND(other->file->waiters, waiter);
}

/* An alteration waits for the last one of each file, and for who reads that since. Returns false
 * when out of memory. */
static bool take_turns(struct operation *operation)
{
	struct store_etcd *store = operation->store;
	struct file_request *file = operation->file, *reader, *next;
	struct file_turn *turns[STORE_STEPS_MAX];
	size_t most = 0, readers;

	for (size_t i = 0; i < file->count; i++) {
		turns[i] = find_or_make_turn(store, &file->keys[i]);
		if (turns[i] == NULL)
			return false;
		DL_COUNT(turns[i]->readers, reader, readers);
		most += readers + 1;
	}
	if (!may_wait(operation, most))
		return false;
	for (size_t i = 0; i < file->count; i++) {
		if (turns[i]->alteration != NULL && turns[i]->readers == NULL)
			wait_for(operation, turns[i]->alteration);
		DL_FOREACH_SAFE (turns[i]->readers, reader, next) {
			wait_for(operation, reader->operation);
			DL_DELETE(turns[i]->readers, reader);
			reader->is_listed = false;
		}
		turns[i]->alteration = operation;
	}
	return true;
}

/* A read waits for the last alteration of the file. */
static bool take_reader_turn(struct operation *operation)
{
	struct file_request *file = operation->file;
	struct file_turn *turn = find_or_make_turn(operation->store, &file->keys[0]);

	file->count = 1;
	if (turn == NULL || !may_wait(operation, 1))
		return false;
	if (turn->alteration != NULL)
		wait_for(operation, turn->alteration);
	DL_APPEND(turn->readers, file);
	file->is_listed = true;
	return true;
}

static void start(struct operation *operation)
{
	if (operation->file->waits > 0)
		etcd_operation_hold(operation);
	else
		etcd_operation_start(operation, false);
}

/* It is answered: whoever waits for nothing else is sent. */
static void release_waiters(struct operation *operation)
{
	struct file_request *file = operation->file;
	struct waiter *waiter;

	leave_turns(operation);
	while ((waiter = file->waiters) != NULL) {
		LL_DELETE(file->waiters, waiter);
		if (--waiter->operation->file->waits == 0)
			etcd_operation_send(waiter->operation);
	}
}

/* alter() */

/* Returns false when out of memory. */
static bool copy_claim(struct file_request *file, size_t i, const char *root,
		       const struct store_step *step)
{
	struct etcd_named claim = etcd_key_of_claim(root, step->path, step->text);

	file->keys[i] = claim.key;
	file->standing[i].order = claim.order;
	return claim.key.bytes != NULL && etcd_key_of_data(&file->standing[i].data, &claim.key) &&
	       etcd_key_end_of_claim(&file->standing[i].end, &claim.key);
}

/* Returns false when out of memory. */
static bool copy_step(struct file_request *file, const char *root, const struct store_step *step)
{
	bool is_new = step->kind == STEP_MAKE || step->kind == STEP_TAKE || step->kind == STEP_KEEP;
	size_t i = file->count++;

	file->steps[i] = (struct store_step){.kind = step->kind, .version = step->version};
	if (step->kind == STEP_STAND)
		return copy_claim(file, i, root, step);
	if (!etcd_key_of_file(&file->keys[i], root, step->path))
		return false;
	if (!is_new && step->kind != STEP_REPLACE)
		return true;
	file->values[i] = etcd_key_file_value(step->text, clock_wall_ms(), is_new);
	return file->values[i] != NULL;
}

/* What has to be so for the step. */
static void require(struct transaction *transaction, const struct file_request *file, size_t i)
{
	const struct etcd_key *key = &file->keys[i];
	uint32_t version = file->steps[i].version;

	switch (file->steps[i].kind) {
	case STEP_MAKE:
	case STEP_KEEP:
		etcd_transaction_require_created(transaction, key, 0);
		break;
	case STEP_TAKE:
		break;
	case STEP_REPLACE:
	case STEP_REMOVE:
		if (version != STORE_ANY_VERSION)
			etcd_transaction_require_version(transaction, key, (int64_t)version + 1);
		else
			etcd_transaction_require_lease(transaction, key, file->lease);
		break;
	case STEP_CHECK:
		etcd_transaction_require_lease(transaction, key, file->lease);
		break;
	case STEP_STAND:
		etcd_transaction_require_created(transaction, key, file->standing[i].order);
		etcd_transaction_require_version(transaction, &file->standing[i].data, version);
		break;
	}
}

static void act(struct transaction_branch *then, const struct file_request *file, size_t i)
{
	const struct etcd_key *key = &file->keys[i];

	switch (file->steps[i].kind) {
	case STEP_MAKE:
	case STEP_TAKE:
		etcd_transaction_put(then, key, file->values[i], file->lease);
		break;
	case STEP_KEEP:
		etcd_transaction_put(then, key, file->values[i], 0);
		break;
	case STEP_REPLACE:
		/* It stays with the session that made it. */
		etcd_transaction_put(then, key, file->values[i], 0)->ignore_lease = true;
		break;
	case STEP_REMOVE:
		etcd_transaction_delete(then, key, NULL);
		break;
	case STEP_CHECK:
	case STEP_STAND:
		break;
	}
}

static int say_alter(struct operation *operation, struct transaction *transaction)
{
	const struct file_request *file = operation->file;
	const struct store_etcd *store = operation->store;

	if (file->lease != store->session.lease_id || file->epoch != store->epoch.number)
		return -ECONNRESET;
	if (store->epoch.is_keyless)
		return -EIO; /* as what takes space; a removal, too, might come late */
	etcd_transaction_require_session(transaction, store);
	for (size_t i = 0; i < file->count; i++) {
		require(transaction, file, i);
		act(&transaction->then, file, i);
		etcd_transaction_range(&transaction->otherwise, &file->keys[i],
				       file->steps[i].kind == STEP_STAND ? &file->standing[i].end
									 : NULL)
			->keys_only = true;
	}
	return 0;
}

/* As find_obstacle(), of STEP_STAND. */
static int find_fallen(const struct file_request *file, size_t i, const Etcd__RangeResponse *found)
{
	const Etcd__KeyValue *kv = found != NULL && found->n_kvs > 0 ? found->kvs[0] : NULL;

	if (kv == NULL || !etcd_message_is_key(kv, &file->keys[i]) ||
	    kv->create_revision != file->standing[i].order)
		return -ENOENT;
	kv = etcd_message_data(found, &file->keys[i]);
	return kv != NULL && kv->version == (int64_t)file->steps[i].version ? 0 : -ESTALE;
}

/* Why the step cannot be done, with that as the file's key; 0: it can. */
static int find_obstacle(const struct file_request *file, size_t i,
			 const Etcd__RangeResponse *found)
{
	const Etcd__KeyValue *kv = found != NULL && found->n_kvs > 0 ? found->kvs[0] : NULL;
	uint32_t version = file->steps[i].version;

	switch (file->steps[i].kind) {
	case STEP_MAKE:
	case STEP_KEEP:
		return kv != NULL ? -EEXIST : 0;
	case STEP_TAKE:
		return 0;
	case STEP_REPLACE:
	case STEP_REMOVE:
		if (kv == NULL || (version == STORE_ANY_VERSION && kv->lease != file->lease))
			return -ENOENT;
		return version != STORE_ANY_VERSION && kv->version != (int64_t)version + 1 ? -ESTALE
											   : 0;
	case STEP_CHECK:
		return kv != NULL && kv->lease == file->lease ? 0 : -ENOENT;
	case STEP_STAND:
		return find_fallen(file, i, found);
	}
	return 0;
}

static void conclude_alter(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	const struct file_request *file = operation->file;
	struct store_change *change = operation->tag;

	if (!error && !answer->succeeded) {
		if (!etcd_transaction_was_late(operation->store, answer)) {
			for (size_t i = 0; i < file->count && !error; i++)
				error = find_obstacle(file, i,
						      etcd_transaction_found(answer, i + 1));
		}
		error = error ? error : -ECONNRESET;
	}
	release_waiters(operation);
	change->done(change, error);
	etcd_operation_end(operation, error);
}

static const struct operation_kind alter = {STORE_ALTER,	"cannot change the file",
					    say_alter,		conclude_alter,
					    .is_outside = true, .finish = finish};

int etcd_alter(struct store *base, struct store_change *change, const struct store_step *steps,
	       size_t count)
{
	struct operation *operation = create(base, &alter, change, count > 0 ? steps[0].path : "");
	const struct store_etcd *store = store_etcd_from(base);
	bool done = operation != NULL;

	for (size_t i = 0; i < count && done; i++)
		done = copy_step(operation->file, store->root, &steps[i]);
	if (!done || !take_turns(operation)) {
		etcd_operation_free(operation);
		return -ENOMEM;
	}
	operation->file->lease = store->session.lease_id;
	operation->file->epoch = store->epoch.number;
	start(operation);
	return 0;
}

/* read() */

static int say_read(struct operation *operation, struct transaction *transaction)
{
	etcd_transaction_range(&transaction->then, &operation->file->keys[0], NULL);
	return 0;
}

static struct store_claim claim_of(const Etcd__KeyValue *kv)
{
	bool is_new = false;
	int64_t ms = 0;
	size_t bytes;
	const char *text = etcd_message_file(kv, &bytes, &ms, &is_new);

	return (struct store_claim){
		.data = text,
		.data_bytes = bytes,
		.since_ms = is_new ? ms : 0,
		.session = (uint64_t)kv->lease,
		.version = (uint32_t)kv->version - 1,
		.changed_ms = ms,
	};
}

static void conclude_read(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = error ? NULL : etcd_transaction_found(answer, 0);
	struct store_read *read = operation->tag;
	struct store_claim claim;

	if (!error && found == NULL)
		error = -EIO;
	if (!error && found->n_kvs == 0)
		error = -ENOENT;
	if (!error)
		claim = claim_of(found->kvs[0]);
	release_waiters(operation);
	read->done(read, error, error ? NULL : &claim);
	etcd_operation_end(operation, error);
}

static const struct operation_kind read_kind = {STORE_READ,	    "cannot read the file",
						say_read,	    conclude_read,
						.is_outside = true, .finish = finish};

int etcd_read_file(struct store *base, struct store_read *read, const char *path)
{
	struct operation *operation = create(base, &read_kind, read, path);

	if (operation == NULL ||
	    !etcd_key_of_file(&operation->file->keys[0], operation->store->root, path) ||
	    !take_reader_turn(operation)) {
		etcd_operation_free(operation);
		return -ENOMEM;
	}
	start(operation);
	return 0;
}

/* files() */

static int say_files(struct operation *operation, struct transaction *transaction)
{
	struct etcd_key *end = &operation->said[0];
	Etcd__RangeRequest *page;

	if (!etcd_key_end(end, &operation->queue))
		return -ENOMEM;
	page = etcd_transaction_range(&transaction->then, &operation->next_page, end);
	page->keys_only = true;
	page->limit = PAGE_KEYS;
	return 0;
}

/* Whether what follows the directory in the key can be the name of a file: no path has two slashes,
 * or one at its end. */
static bool is_file(const struct operation *operation, const char *rest, size_t bytes,
		    int64_t lease)
{
	if (bytes == 0 || memchr(rest, '\0', bytes) != NULL || rest[0] == '/' ||
	    rest[bytes - 1] == '/' || memmem(rest, bytes, "//", 2) != NULL)
		return false;
	if (*operation->path == '\0' && bytes >= strlen(private_names) &&
	    memcmp(rest, private_names, strlen(private_names)) == 0)
		return false;
	return !etcd_key_is_of_lock(rest, bytes, lease);
}

/* Returns false when out of memory. */
static bool add_files(const struct operation *operation, const Etcd__RangeResponse *found)
{
	for (size_t i = 0; i < found->n_kvs; i++) {
		const Etcd__KeyValue *kv = found->kvs[i];
		const char *rest;
		size_t bytes;

		if (etcd_message_rest(kv, &operation->queue, &rest, &bytes) &&
		    is_file(operation, rest, bytes, kv->lease) &&
		    !etcd_names_add(operation->names, rest, bytes))
			return false;
	}
	return true;
}

static void conclude_files(struct operation *operation, int error, const Etcd__TxnResponse *answer)
{
	const Etcd__RangeResponse *found = error ? NULL : etcd_transaction_found(answer, 0);
	const struct names *names = operation->names;
	struct store_files *files = operation->tag;

	if (!error && found == NULL)
		error = -EIO;
	if (!error && !add_files(operation, found))
		error = -ENOMEM;
	if (!error && found->more && found->n_kvs > 0) {
		const ProtobufCBinaryData *last = &found->kvs[found->n_kvs - 1]->key;

		/* It begins with the first key behind the last one of this page. */
		error = etcd_names_turn_page(operation, last->data, last->len, '\0');
		if (!error) {
			etcd_operation_send(operation);
			return;
		}
	}
	if (!error && found->n_kvs == 0 && names->count == 0)
		error = -ENOENT;
	files->done(files, error, error ? NULL : (const char *const *)names->list,
		    error ? 0 : names->count);
	etcd_operation_end(operation, error);
}

static const struct operation_kind files_kind = {STORE_FILES,	     "cannot list the files of",
						 say_files,	     conclude_files,
						 .is_outside = true, .finish = finish};

int etcd_files(struct store *base, struct store_files *files, const char *directory)
{
	struct store_etcd *store = store_etcd_from(base);
	struct operation *operation, *other;
	size_t alterations = 0;

	DL_FOREACH (store->operations.others, other)
		alterations += other->kind == &alter;
	operation = create(base, &files_kind, files, directory);
	if (operation == NULL || !etcd_names_begin(operation) ||
	    !may_wait(operation, alterations) ||
	    !etcd_key_of_queue(&operation->queue, store->root, directory)) {
		etcd_operation_free(operation);
		return -ENOMEM;
	}
	DL_FOREACH (store->operations.others, other) {
		if (other->kind == &alter)
			wait_for(operation, other);
	}
	start(operation);
	return 0;
}
