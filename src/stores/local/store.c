/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the sessions (stores) that share a service, and the answers that wait to be delivered. Reads
 * no clock and starts no thread; loop thread only.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "stores/local/service.h"

static struct local_store *local_store(struct store *store)
{
	return (struct local_store *)store;
}

/* Drops all answers and claims of the session. */
static void session_end(struct local_store *store)
{
	struct answer *answer, *next;

	while (store->watches != NULL) {
		answer = store->watches;
		answer_leave(answer);
		answer_free(answer);
	}
	while (store->nodes != NULL)
		node_remove(store->nodes, false);
	files_end(store);
	DL_FOREACH_SAFE (store->answers, answer, next) {
		if (answer_is_for_outside(answer)) {
			answer->error = -ECONNRESET;
			continue;
		}
		DL_DELETE(store->answers, answer);
		answer_free(answer);
	}
	store->session = ++store->service->sessions;
}

uint64_t store_local_session(const struct store *base)
{
	return ((const struct local_store *)base)->session;
}

void store_local_expire(struct store *base)
{
	struct local_store *store = local_store(base);

	session_end(store);
	store->lost = true;
	store_make_readable(store);
}

/* Returns NULL if no answer is to be given: an operation after the session's end and before
 * STORE_LOST is delivered has no effect. Without memory for an answer the session ends: that can
 * still be reported. */
static struct answer *answer_create(struct local_store *store, enum answer_kind kind, void *tag)
{
	struct answer *answer;

	if (store->lost)
		return NULL;
	answer = calloc(1, sizeof(*answer));
	if (answer == NULL) {
		store_local_expire(&store->store);
		return NULL;
	}
	answer->kind = kind;
	answer->tag = tag;
	answer->store = store;
	return answer;
}

static void attend_to(struct local_store *store, void *tag, struct queue *queue)
{
	struct answer *attention = answer_create(store, ANSWER_ATTENDED, tag);

	if (attention == NULL)
		return;
	if (queue != NULL && !queue_is_empty(queue))
		answer_wait(attention, &queue->attentions);
	else
		answer_queue(attention);
}

static void on_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		     const char *text, bool list, void *attention)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_PLACED, tag);
	struct queue *queue;
	struct node *node = NULL;

	if (answer == NULL)
		return;
	queue = queue_open(store->service, path);
	if (queue != NULL)
		node = node_create(store, queue, name, text, &answer->after);
	if (node != NULL) {
		strcpy(answer->name, node->name);
		answer->order = node->order;
		if (list)
			answer->snapshot = snapshot_create(queue);
	} else {
		answer->error = -ENOMEM;
		if (queue != NULL)
			queue_remove_if_empty(queue);
	}
	answer_queue(answer);
	if (attention != NULL && answer->snapshot != NULL)
		attend_to(store, attention, queue);
}

static void on_list(struct store *base, void *tag, const char *path, bool sync, bool attend)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_LISTED, tag);
	struct queue *queue;

	if (answer == NULL)
		return;
	queue = queue_find(store->service, path);
	answer->snapshot = snapshot_create(queue);
	if (queue != NULL && !queue_is_empty(queue) && answer->snapshot == NULL)
		answer->error = -EIO;
	answer_queue(answer);
	if (attend && answer->error == 0)
		attend_to(store, tag, queue);
}

static void on_watch(struct store *base, void *tag, const char *path, const char *name)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_WATCHED, tag);
	struct answer *read;
	struct node *node;

	if (answer == NULL)
		return;
	if (name == NULL) {
		files_watch(answer, path);
		return;
	}
	node = node_find(store->service, path, name);
	if (node == NULL) {
		answer_queue(answer);
		return;
	}
	read = answer_create_read(answer, node->text, node->version);
	if (read == NULL) {
		answer_free(answer);
		store_local_expire(base);
		return;
	}
	answer_queue(read);
	answer_wait(answer, &node->watches);
}

static bool is_of_version(const struct node *node, uint32_t version)
{
	return version == STORE_ANY_VERSION || node->version == version;
}

static void on_amend(struct store *base, void *tag, const char *path, const char *name,
		     const char *text, uint32_t version)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_AMENDED, tag);
	struct node *node;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	if (node != NULL)
		answer->error = is_of_version(node, version) ? node_amend(node, text) : -ESTALE;
	answer_queue(answer);
}

static void on_mark(struct store *base, void *tag, const char *path, const char *name,
		    const char *text, int64_t age_ms)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_MARKED, tag);
	struct node *node;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	answer->error = node != NULL ? node_mark_holder(node, text) : -ENOENT;
	answer_queue(answer);
}

static void on_age(struct store *base, void *tag, const char *path, const char *name)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_AGED, tag);
	const struct node *node;

	if (answer == NULL)
		return;
	node = node_find_orphan(store->service, path, name);
	if (node == NULL)
		node = node_find(store->service, path, name);
	if (node == NULL || node->marker == NULL) {
		answer->error = -ENOENT;
	} else {
		answer->age_ms = node_marker_age_ms(node);
		answer->text = strdup(node->marker->text);
		answer->error = answer->text != NULL ? 0 : -ENOMEM;
	}
	answer_queue(answer);
}

static void on_withdraw(struct store *base, const struct store_told *told, void *tag,
			const char *path, const char *name, int64_t order, bool marker)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_WITHDRAWN, tag);
	struct node *node;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	if (node != NULL && !node->is_hold) {
		if (marker) {
			free(node->marker);
			node->marker = NULL;
		}
		node_remove(node, node->store == store);
	}
	node = marker ? node_find_orphan(store->service, path, name) : NULL;
	if (node != NULL)
		node_remove_orphan(node);
	answer_queue(answer);
}

static void on_bequeath(struct store *base, const struct store_told *told, void *tag,
			const char *path, const char *name, int64_t order, const char *heir)
{
	struct local_store *store = local_store(base);
	struct node *node = node_find(store->service, path, name);
	struct answer *answer;

	if (node == NULL || node_find(store->service, path, heir) != NULL) {
		on_withdraw(base, told, tag, path, name, order, false);
		return;
	}
	answer = answer_create(store, ANSWER_WITHDRAWN, tag);
	if (answer == NULL)
		return;
	answer->error = -ESTALE;
	answer_queue(answer);
}

static void on_hold(struct store *base, void *tag, const char *path, const char *name,
		    const struct claim_name *hold, const char *text, bool marker)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_HOLD, tag);
	struct node *node;
	(void)marker;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	answer->error =
		node != NULL && node->store == store ? node_turn(node, hold, text) : -ENOENT;
	answer_queue(answer);
}

static void on_outlast(struct store *base, const struct store_told *told, void *tag,
		       const char *path, const char *name, uint32_t version)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_WITHDRAWN, tag);
	struct node *node;
	(void)told;

	if (answer == NULL)
		return;
	node = node_find(store->service, path, name);
	if (node != NULL && node->version != version)
		answer->error = -ESTALE;
	else if (node != NULL)
		node_remove(node, true);
	answer_queue(answer);
}

static void tell_session(const struct local_store *store, enum store_session session)
{
	if (store->on_session != NULL)
		store->on_session(store->owner, session);
	else
		store->events->on_session(store->context, session, 0);
}

static void deliver(const struct local_store *store, const struct answer *answer)
{
	const struct store_events *events = store->events;
	const struct store_entry *entries =
		answer->snapshot == NULL ? NULL : answer->snapshot->entries;
	size_t count = answer->snapshot == NULL ? 0 : answer->snapshot->count;

	switch (answer->kind) {
	case ANSWER_CONNECTED:
		answer->store->over = false;
		tell_session(store, STORE_CONNECTED);
		break;
	case ANSWER_PLACED:
		events->on_placed(store->context, answer->tag, answer->error,
				  answer->error == 0 ? answer->name : NULL, answer->order,
				  answer->after, entries, count);
		break;
	case ANSWER_LISTED:
		events->on_listed(store->context, answer->tag, answer->error, entries, count);
		break;
	case ANSWER_ATTENDED:
		events->on_changed(store->context, answer->tag);
		break;
	case ANSWER_READ:
		events->on_read(store->context, answer->tag, answer->text, answer->version);
		break;
	case ANSWER_WATCHED:
		events->on_watched(store->context, answer->tag, answer->error);
		break;
	case ANSWER_AMENDED:
		events->on_amended(store->context, answer->tag, answer->error);
		break;
	case ANSWER_MARKED:
		events->on_marked(store->context, answer->tag, answer->error);
		break;
	case ANSWER_HOLD:
		events->on_hold(store->context, answer->tag, answer->error);
		break;
	case ANSWER_AGED:
		events->on_aged(store->context, answer->tag, answer->error, answer->age_ms,
				answer->text);
		break;
	case ANSWER_WITHDRAWN:
		events->on_withdrawn(store->context, answer->tag, answer->error);
		break;
	case ANSWER_PROVED:
		events->on_proved(store->context, answer->tag, answer->error, answer->text,
				  answer->stamp);
		break;
	case ANSWER_LOOKED:
	case ANSWER_CLAIM:
	case ANSWER_CHANGED:
	case ANSWER_FILES:
		local_deliver_outside(answer);
		break;
	}
}

/* Operations that callbacks start are answered in the same run: afterwards the descriptor is not
 * readable. */
static void on_dispatch(struct store *base)
{
	struct local_store *store = local_store(base);

	while (store->lost || store->answers != NULL) {
		struct answer *answer = store->answers;

		if (store->lost) {
			store->lost = false;
			store->over = true;
			answer_queue(&store->connected);
			tell_session(store, STORE_LOST);
			continue;
		}
		DL_DELETE(store->answers, answer);
		deliver(store, answer);
		answer_free(answer);
	}
	store_make_unreadable(store);
}

static int on_descriptor(struct store *base)
{
	return local_store(base)->descriptor;
}

/* What a proof is about: a claim, or a file. */
struct target {
	struct node *node;
	struct file *file;
};

static struct target find_target(const struct local_store *store, const struct store_proof *proof)
{
	if (proof->name == NULL)
		return (struct target){.file = file_find_own(store, proof->path)};
	return (struct target){.node = node_find(store->service, proof->path, proof->name)};
}

/* Looks for what is to stand. Returns 0; or -ENOENT, with the first missing one; or -ESTALE. */
static int find_all(const struct local_store *store, const struct store_proof *proofs, size_t count,
		    const char **ret_missing)
{
	for (size_t i = 0; i < count; i++) {
		const struct target target = find_target(store, &proofs[i]);
		bool found = target.node != NULL || target.file != NULL;

		if (found && proofs[i].text != NULL && proofs[i].version != STORE_ANY_VERSION &&
		    proofs[i].version !=
			    (target.node != NULL ? target.node->version : target.file->version))
			return -ESTALE;
		if (found)
			continue;
		*ret_missing = proofs[i].path;
		return -ENOENT;
	}
	return 0;
}

int store_local_prove(struct store *base, const struct store_proof *proofs, size_t count,
		      const char **ret_missing)
{
	struct local_store *store = local_store(base);
	int error = find_all(store, proofs, count, ret_missing);

	for (size_t i = 0; i < count && error == 0; i++) {
		if (proofs[i].text == NULL)
			continue;
		const struct target target = find_target(store, &proofs[i]);
		error = target.node != NULL ? node_amend(target.node, proofs[i].text)
					    : file_replace(target.file, proofs[i].text);
		store->service->stamp++;
		service_mark(store->service);
	}
	return error;
}

static void on_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count)
{
	struct local_store *store = local_store(base);
	struct answer *answer = answer_create(store, ANSWER_PROVED, tag);
	int64_t stamp = store->service->stamp;
	const char *missing = NULL;

	if (answer == NULL)
		return;
	answer->error = store_local_prove(base, proofs, count, &missing);
	if (missing != NULL && (answer->text = strdup(missing)) == NULL)
		answer->error = -ENOMEM;
	answer->stamp = store->service->stamp > stamp ? store->service->stamp : 0;
	answer_queue(answer);
}

static void on_nudge(struct store *base)
{
}

static void on_renew(struct store *base, const struct store_told *told)
{
	struct local_store *store = local_store(base);

	assert(told != NULL);
	if (store->over)
		return;
	session_end(store);
	store->lost = false;
	store->over = true;
	answer_queue(&store->connected);
}

static void on_describe(struct store *base, char *text, size_t text_bytes)
{
	snprintf(text, text_bytes, "local: this host only (no server configured)");
}

static const char *on_trouble(struct store *base)
{
	(void)base;
	return NULL;
}

void local_service_destroy(struct local_service *service)
{
	if (service == NULL)
		return;
	orphans_free(service);
	files_free(service);
	service_unmark(service, &service->item);
	free(service);
}

/* There is nobody else to have what goes. */
static void on_close(struct store *base, const struct store_told *told)
{
	struct local_store *store = local_store(base);

	session_end(store);
	while (store->answers != NULL) {
		struct answer *answer = store->answers;

		DL_DELETE(store->answers, answer);
		answer_free(answer);
	}
	if (store->descriptor >= 0)
		close(store->descriptor);
	if (store->owns_service)
		local_service_destroy(store->service);
	free(store);
}

static const struct store_ops local_ops = {
	.descriptor = on_descriptor,
	.dispatch = on_dispatch,
	.place = on_place,
	.list = on_list,
	.amend = on_amend,
	.watch = on_watch,
	.mark = on_mark,
	.age = on_age,
	.withdraw = on_withdraw,
	.bequeath = on_bequeath,
	.hold = on_hold,
	.outlast = on_outlast,
	.prove = on_prove,
	.nudge = on_nudge,
	.look = local_look,
	.read = local_read,
	.write = local_write,
	.remove = local_remove,
	.files = local_files,
	.alter = local_alter,
	.renew = on_renew,
	.describe = on_describe,
	.trouble = on_trouble,
	.save_claims = local_save,
	.restore_claims = local_restore,
	.keep_claims = local_keep,
	.order_late = STORE_LOCAL_ORDER_LATE,
	.order_unsure = STORE_LOCAL_ORDER_UNSURE,
	.close = on_close,
};

int store_local_open(struct local_service *service, const struct store_events *events,
		     void *context, struct store **ret)
{
	struct local_store *store = calloc(1, sizeof(*store));

	if (store == NULL)
		return -ENOMEM;
	store->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (store->descriptor < 0) {
		int error = -errno;

		free(store);
		return error;
	}
	store->store.ops = &local_ops;
	store->service = service;
	store->session = ++service->sessions;
	store->events = events;
	store->context = context;
	store->connected.kind = ANSWER_CONNECTED;
	store->connected.store = store;
	answer_queue(&store->connected);
	*ret = &store->store;
	return 0;
}

static int open_alone(const struct store_options *options, const struct store_events *events,
		      void *context, struct store **ret)
{
	struct local_service *service = local_service_create();
	int error = service != NULL ? store_local_open(service, events, context, ret) : -ENOMEM;

	(void)options;
	if (error == 0)
		local_store(*ret)->owns_service = true;
	else
		local_service_destroy(service);
	return error;
}

const struct store_kind store_local_kind = {
	.scheme = STORE_SCHEME_LOCAL,
	.abilities = STORE_HAS_QUEUE | STORE_HAS_SHARED | STORE_HAS_RANGES | STORE_HAS_STAMPS |
		     STORE_HAS_FILES | STORE_HAS_KEPT | STORE_HAS_SLOTS,
	.open = open_alone,
};
