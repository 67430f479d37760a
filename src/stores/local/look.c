/* SPDX-License-Identifier: Apache-2.0
 *
 * look(), read(), write() and remove(): for views, and for steering from outside. Unlike the
 * engine's operations they are answered even if the session is lost. Loop thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "claim/marker.h"
#include "stores/local/service.h"

/* Copies the last components of the paths below. Returns 0 or -ENOMEM. */
static int copy_names(const struct queue *queue, struct answer *answer)
{
	const struct queue *below;

	answer->names = calloc(queue->below_count + 1, sizeof(*answer->names));
	if (answer->names == NULL)
		return -ENOMEM;
	DL_FOREACH (queue->below, below) {
		const char *rest = below->path + strlen(queue->path);
		char *name = strdup(*rest == '/' ? rest + 1 : rest);

		if (name == NULL)
			return -ENOMEM;
		answer->names[answer->names_count++] = name;
	}
	return 0;
}

static int look(struct answer *answer, const char *path)
{
	const struct queue *queue = queue_find(answer->store->service, path);
	int error;

	if (queue == NULL)
		return -ENOENT;
	error = copy_names(queue, answer);
	answer->snapshot = snapshot_create(queue);
	return !queue_is_empty(queue) && answer->snapshot == NULL ? -ENOMEM : error;
}

int local_look(struct store *base, struct store_look *asker, const char *path)
{
	struct answer *answer = answer_ask(base, ANSWER_LOOKED, asker);

	if (answer != NULL && answer->error == 0)
		answer->error = look(answer, path);
	return answer != NULL ? 0 : -ENOMEM;
}

static void read_claim(struct answer *answer, const char *path, const char *name)
{
	const struct local_service *service = answer->store->service;
	char claim[CLAIM_NAME_BYTES];
	const struct node *node = claim_marker_parse(name, claim)
					  ? node_find_orphan(service, path, claim)
					  : node_find(service, path, name);

	if (node == NULL) {
		answer->error = -ENOENT;
		return;
	}
	answer_show(answer, node_is_orphan(node) ? node->marker->text : node->text,
		    &(struct store_claim){
			    .since_ms = node->since_ms,
			    .session = node->store != NULL ? node->store->session : 0,
			    .version = node->version,
		    });
}

int local_read(struct store *base, struct store_read *asker, const char *path, const char *name)
{
	struct answer *answer = answer_ask(base, ANSWER_CLAIM, asker);

	if (answer != NULL && answer->error == 0 && name != NULL)
		read_claim(answer, path, name);
	else if (answer != NULL && answer->error == 0)
		files_read(answer, path);
	return answer != NULL ? 0 : -ENOMEM;
}

int local_write(struct store *base, struct store_change *change, const char *path, const char *name,
		const char *text, uint32_t version)
{
	struct answer *answer = answer_ask(base, ANSWER_CHANGED, change);
	struct node *node;

	if (answer == NULL || answer->error != 0)
		return answer != NULL ? 0 : -ENOMEM;
	node = node_find(answer->store->service, path, name);
	if (node == NULL)
		answer->error = -ENOENT;
	else if (node->version != version)
		answer->error = -ESTALE;
	else
		answer->error = node_amend(node, text);
	return 0;
}

int local_remove(struct store *base, struct store_change *change, const char *path,
		 const char *name, uint64_t session)
{
	struct answer *answer;
	struct node *node;

	if (session == ((const struct local_store *)base)->session)
		return -EPERM;
	answer = answer_ask(base, ANSWER_CHANGED, change);
	if (answer == NULL || answer->error != 0)
		return answer != NULL ? 0 : -ENOMEM;
	node = node_find(answer->store->service, path, name);
	if (node != NULL)
		node_remove(node, false);
	else
		answer->error = -ENOENT;
	return 0;
}

void local_deliver_outside(const struct answer *answer)
{
	const struct snapshot *snapshot = answer->snapshot;
	struct store_look *look = answer->tag;
	struct store_read *read = answer->tag;
	struct store_change *change = answer->tag;
	struct store_files *files = answer->tag;

	if (answer->kind == ANSWER_FILES)
		files->done(files, answer->error, (const char *const *)answer->names,
			    answer->error == 0 ? answer->names_count : 0);
	else if (answer->kind == ANSWER_CHANGED)
		change->done(change, answer->error);
	else if (answer->kind == ANSWER_CLAIM)
		read->done(read, answer->error, answer->error == 0 ? &answer->claim : NULL);
	else if (answer->error != 0)
		look->done(look, answer->error, NULL, 0, NULL, 0);
	else
		look->done(look, 0, (const char *const *)answer->names, answer->names_count,
			   snapshot != NULL ? snapshot->entries : NULL,
			   snapshot != NULL ? snapshot->count : 0);
}
