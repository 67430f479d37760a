/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the thread that tells the kernel to forget names and attributes. It touches nothing but its
 * own queue and the descriptor of the session. An order that is kept in the journal is there until
 * the loop's thread has heard that it was carried out: to give it again does no harm.
 */
#include "notifier.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "filesystem.h"
#include "log.h"
#include "state_text.h"

struct order {
	struct state_item item;	   /* first; the loop's thread's, which then frees the order */
	struct order *prev, *next; /* in notifier->kept, */
	struct order *done_next;   /* and in notifier->done */
	uint64_t serial;	   /* 0: it is not kept */
	UT_hash_handle hh;	   /* in notifier->orders, by the parent and the name */
	fuse_ino_t node;
	fuse_ino_t parent;
	char name[]; /* "": the attributes of the parent are meant */
};

_Static_assert(offsetof(struct order, name) == offsetof(struct order, parent) + sizeof(fuse_ino_t),
	       "the parent and the name are one key");

/* The same to look for. */
struct key {
	fuse_ino_t parent;
	char name[NAME_BYTES_MAX + 1];
};

static unsigned key_bytes(const char *name)
{
	return (unsigned)(sizeof(fuse_ino_t) + strlen(name));
}

struct notifier {
	struct fuse_session *session;
	struct state_journal *journal;
	struct order *kept; /* in the journal */
	uint64_t last_serial;
	pthread_t thread;
	bool runs;	       /* it is to be joined */
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t changed;
	struct order *orders;  /* in the order in which they were given */
	struct order *current; /* is being carried out */
	struct order *done;    /* those kept that were */
	bool stop;
	int ended; /* eventfd */
};

static struct order *next_order(struct notifier *notifier)
{
	struct order *order = NULL;
	pthread_mutex_lock(&notifier->mutex);
	while (notifier->orders == NULL && !notifier->stop)
		pthread_cond_wait(&notifier->changed, &notifier->mutex);
	if (!notifier->stop) {
		order = notifier->orders;
		HASH_DEL(notifier->orders, order);
	}
	notifier->current = order;
	pthread_mutex_unlock(&notifier->mutex);
	return order;
}

static void end_order(struct notifier *notifier, struct order *order)
{
	pthread_mutex_lock(&notifier->mutex);
	notifier->current = NULL;
	if (order->serial != 0)
		LL_PREPEND2(notifier->done, order, done_next);
	pthread_mutex_unlock(&notifier->mutex);
	if (order->serial == 0)
		free(order);
}

static void *run(void *argument)
{
	struct notifier *notifier = argument;
	struct order *order;

	while ((order = next_order(notifier)) != NULL) {
		/* -ENOENT: the kernel has forgotten it by itself. A negative offset: no content. */
		if (order->name[0] == '\0')
			fuse_lowlevel_notify_inval_inode(notifier->session, order->parent, -1, 0);
		else
			fuse_lowlevel_notify_delete(notifier->session, order->parent, order->node,
						    order->name, strlen(order->name));
		end_order(notifier, order);
	}
	eventfd_write(notifier->ended, 1);
	return NULL;
}

int notifier_create(struct fuse_session *session, struct state_journal *journal,
		    struct notifier **ret)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	if (notifier == NULL)
		return -ENOMEM;
	notifier->session = session;
	notifier->journal = journal;
	notifier->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (notifier->ended < 0) {
		int error = -errno;
		free(notifier);
		return error;
	}
	pthread_mutex_init(&notifier->mutex, NULL);
	pthread_cond_init(&notifier->changed, NULL);
	int error = pthread_create(&notifier->thread, NULL, run, notifier);
	if (error != 0) {
		close(notifier->ended);
		free(notifier);
		return -error;
	}
	notifier->runs = true;
	*ret = notifier;
	return 0;
}

static struct state_place place(const struct state_item *item)
{
	const struct order *order = (const struct order *)item;
	return (struct state_place){{STATE_PLACE_ORDER, order->serial}};
}

static void save(const struct state_item *item, FILE *out)
{
	const struct order *order = (const struct order *)item;

	state_begin(out, "forget");
	state_unsigned(out, "parent", order->parent);
	state_unsigned(out, "node", order->node);
	state_text(out, "name", order->name);
	state_end(out);
}

/* Attributes are forgotten by every next process. */
static void keep(struct notifier *notifier, struct order *order)
{
	static const struct state_kind kind = {place, save};

	if (notifier->journal == NULL || order->name[0] == '\0')
		return;
	order->serial = ++notifier->last_serial;
	DL_APPEND(notifier->kept, order);
	state_journal_mark(notifier->journal, &order->item, &kind);
}

static void free_order(struct notifier *notifier, struct order *order)
{
	if (order->serial != 0) {
		state_journal_remove(notifier->journal, &order->item);
		DL_DELETE(notifier->kept, order);
	}
	free(order);
}

void notifier_settle(struct notifier *notifier)
{
	struct order *done, *order, *next;

	if (notifier->kept == NULL)
		return;
	pthread_mutex_lock(&notifier->mutex);
	done = notifier->done;
	notifier->done = NULL;
	pthread_mutex_unlock(&notifier->mutex);
	LL_FOREACH_SAFE2(done, order, next, done_next)
	{
		free_order(notifier, order);
	}
}

void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name)
{
	struct order *order = calloc(1, sizeof(*order) + strlen(name) + 1);
	bool noted = false;
	if (order != NULL) {
		order->parent = parent;
		order->node = node;
		strcpy(order->name, name);
		keep(notifier, order);
		pthread_mutex_lock(&notifier->mutex);
		HASH_ADD_KEYPTR(hh, notifier->orders, &order->parent, key_bytes(name), order);
		noted = order->hh.tbl != NULL;
		pthread_cond_signal(&notifier->changed);
		pthread_mutex_unlock(&notifier->mutex);
	}
	if (!noted)
		log_warning("%s: stays in the kernel's cache: out of memory", name);
	if (order != NULL && !noted)
		free_order(notifier, order);
}

void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node)
{
	notifier_forget_name(notifier, node, node, "");
}

void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	struct key key = {.parent = parent};
	struct order *order, *current;
	strcpy(key.name, name);
	notifier_settle(notifier);
	pthread_mutex_lock(&notifier->mutex);
	HASH_FIND(hh, notifier->orders, &key, key_bytes(name), order);
	if (order != NULL)
		HASH_DEL(notifier->orders, order);
	current = notifier->current;
	/* Another process is not to do that again. */
	if (current != NULL && current->serial != 0 && current->parent == parent &&
	    strcmp(current->name, name) == 0)
		state_journal_remove(notifier->journal, &current->item);
	pthread_mutex_unlock(&notifier->mutex);
	if (order != NULL)
		free_order(notifier, order);
}

void notifier_save_orders(struct notifier *notifier, FILE *out)
{
	const struct order *order;
	pthread_mutex_lock(&notifier->mutex);
	for (order = notifier->orders; order != NULL; order = order->hh.next) {
		if (order->name[0] != '\0')
			save(&order->item, out);
	}
	pthread_mutex_unlock(&notifier->mutex);
}

void notifier_stop(struct notifier *notifier)
{
	pthread_mutex_lock(&notifier->mutex);
	notifier->stop = true;
	pthread_cond_signal(&notifier->changed);
	pthread_mutex_unlock(&notifier->mutex);
}

int notifier_resume(struct notifier *notifier)
{
	eventfd_t ended;
	int error;

	pthread_join(notifier->thread, NULL);
	eventfd_read(notifier->ended, &ended);
	notifier->stop = false;
	error = pthread_create(&notifier->thread, NULL, run, notifier);
	notifier->runs = error == 0;
	return -error;
}

int notifier_descriptor(const struct notifier *notifier)
{
	return notifier->ended;
}

void notifier_destroy(struct notifier *notifier)
{
	struct order *order, *next;
	if (notifier == NULL)
		return;
	if (notifier->runs)
		pthread_join(notifier->thread, NULL);
	notifier_settle(notifier);
	HASH_ITER (hh, notifier->orders, order, next) {
		HASH_DEL(notifier->orders, order);
		free_order(notifier, order);
	}
	pthread_mutex_destroy(&notifier->mutex);
	pthread_cond_destroy(&notifier->changed);
	close(notifier->ended);
	free(notifier);
}
