/* SPDX-License-Identifier: Apache-2.0
 *
 * look(), read() and write(): for views, and for steering from outside. Unlike the engine's
 * operations they, and remove(), are answered even if their session is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim/marker.h"
#include "stores/zookeeper/operation.h"

#include "claim/znode_path.h"

struct operation *zookeeper_look_ask(struct store *base, enum store_operation kind, void *asker,
				     void (*conclude)(struct operation *), const char *path,
				     const char *name)
{
	struct operation *operation =
		operation_new((struct store_zookeeper *)base, kind, asker, conclude, path, name);

	if (operation != NULL)
		operation->outside = true;
	return operation;
}

/* Starts the operation, unless it is NULL. Returns 0 or -ENOMEM. */
static int start(struct operation *operation, void (*send)(struct operation *))
{
	if (operation == NULL)
		return -ENOMEM;
	operation_start(operation, send);
	return 0;
}

static int outside_error(const struct operation *operation, int code, const char *doing)
{
	switch (code) {
	case ZNONODE:
		return -ENOENT;
	case ZBADVERSION:
		return -ESTALE;
	case ZMARSHALLINGERROR:
		return -ENOMEM;
	default:
		return operation_error(operation, code, doing);
	}
}

/* look() */

/* The queue of a file's lock, of those that stand directly below a directory of files: "/NAME/".
 * Returns 0, -EINVAL if the znode is none, or -ENOMEM. */
static int decode_queue_of_file(const struct operation *operation, const char *name, char **ret)
{
	char *file;
	int error = znode_path_decode_file(name, &file);

	if (error)
		return error;
	if (file[strlen(file) - 1] != '/')
		error = -EINVAL;
	else if (asprintf(ret, "/%s", file) < 0)
		error = -ENOMEM;
	free(file);
	return error;
}

/* The names below the znode that are neither claims nor markers, as components of lock paths. The
 * strings are the caller's to free. Returns NULL when out of memory. */
static char **decode_names(const struct operation *operation, size_t *ret_count)
{
	const struct names *names = operation->names;
	char **decoded = calloc(names->count + 1, sizeof(*decoded));
	const char *name = names->text;
	char marked[CLAIM_NAME_BYTES];
	struct claim_name claim;

	*ret_count = 0;
	for (size_t i = 0; decoded != NULL && i < names->count; i++, name += strlen(name) + 1) {
		if (operation_is_reserved(operation, name))
			continue;
		if (!operation_is_above_all(operation) &&
		    (claim_name_parse(name, &claim) || claim_marker_parse(name, marked)))
			continue;
		if (!znode_path_decode(name, &decoded[*ret_count]) ||
		    !decode_queue_of_file(operation, name, &decoded[*ret_count]))
			++*ret_count;
	}
	return decoded;
}

static void conclude_look(struct operation *operation)
{
	struct store_look *look = operation->tag;
	struct store_entry *entries = NULL;
	char **names = NULL;
	size_t entries_count = 0, names_count = 0;
	int error = outside_error(operation, operation->list_code, "cannot list");

	if (!error) {
		entries = zookeeper_queue_parse(operation->store, operation->path, operation->names,
						&entries_count);
		if (operation_is_above_all(operation))
			entries_count = 0;
		names = decode_names(operation, &names_count);
		if (entries == NULL || names == NULL)
			error = -ENOMEM;
	}
	operation_note_end(operation, error);
	if (error)
		look->done(look, error, NULL, 0, NULL, 0);
	else
		look->done(look, 0, (const char *const *)names, names_count, entries,
			   entries_count);
	for (size_t i = 0; i < names_count; i++)
		free(names[i]);
	free(names);
	free(entries);
	operation_release(operation);
}

int zookeeper_look(struct store *base, struct store_look *look, const char *path)
{
	return start(zookeeper_look_ask(base, STORE_LOOK, look, conclude_look, path, NULL),
		     operation_ask_children);
}

/* read() */

static void send_read(struct operation *operation)
{
	operation->waited = 1;
	operation_made(operation,
		       zoo_aget(operation->store->handle, operation->path, 0, operation_on_data,
				operation),
		       &operation->code);
}

static void conclude_read(struct operation *operation)
{
	struct store_read *read = operation->tag;
	int error = outside_error(operation, operation->code, "cannot read");
	struct store_claim claim = {
		.data = operation->text,
		.data_bytes = operation->text_bytes,
		.since_ms = operation->stat.ctime,
		.changed_ms = operation->stat.mtime,
		.session = operation_is_ephemeral(&operation->stat)
				   ? (uint64_t)operation->stat.ephemeralOwner
				   : 0,
		.version = (uint32_t)operation->stat.version,
	};

	operation_note_end(operation, error);
	read->done(read, error, error ? NULL : &claim);
	operation_release(operation);
}

int zookeeper_look_read(struct store *base, struct store_read *read, const char *path,
			const char *name)
{
	return start(zookeeper_look_ask(base, STORE_READ, read, conclude_read, path, name),
		     send_read);
}

/* write() */

void zookeeper_look_conclude(struct operation *operation)
{
	struct store_change *change = operation->tag;
	int error = outside_error(operation, operation->code, "cannot change");

	operation_note_end(operation, error);
	change->done(change, error);
	operation_release(operation);
}

int zookeeper_look_write(struct store *base, struct store_change *change, const char *path,
			 const char *name, const char *text, uint32_t version)
{
	struct operation *operation =
		zookeeper_look_ask(base, STORE_WRITE, change, zookeeper_look_conclude, path, name);

	if (operation == NULL)
		return -ENOMEM;
	operation->version = (int32_t)version;
	operation->text = strdup(text);
	if (operation->text == NULL) {
		operation_free(operation);
		return -ENOMEM;
	}
	operation_start(operation, operation_set);
	return 0;
}
