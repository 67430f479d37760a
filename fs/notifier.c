/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the thread that tells the kernel to forget names and attributes. It touches nothing but its
 * own queue and the descriptor of the session.
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

struct order {
	UT_hash_handle hh; /* in notifier->orders, by the parent and the name */
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
	pthread_t thread;
	bool runs;	       /* it is to be joined */
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t changed;
	struct order *orders; /* in the order in which they were given */
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
	pthread_mutex_unlock(&notifier->mutex);
	return order;
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
		free(order);
	}
	eventfd_write(notifier->ended, 1);
	return NULL;
}

int notifier_create(struct fuse_session *session, struct notifier **ret)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	if (notifier == NULL)
		return -ENOMEM;
	notifier->session = session;
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

void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name)
{
	struct order *order = calloc(1, sizeof(*order) + strlen(name) + 1);
	bool noted = false;
	if (order != NULL) {
		order->parent = parent;
		order->node = node;
		strcpy(order->name, name);
		pthread_mutex_lock(&notifier->mutex);
		HASH_ADD_KEYPTR(hh, notifier->orders, &order->parent, key_bytes(name), order);
		noted = order->hh.tbl != NULL;
		pthread_cond_signal(&notifier->changed);
		pthread_mutex_unlock(&notifier->mutex);
	}
	if (!noted) {
		log_warning("%s: stays in the kernel's cache: out of memory", name);
		free(order);
	}
}

void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node)
{
	notifier_forget_name(notifier, node, node, "");
}

void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	struct key key = {.parent = parent};
	struct order *order;
	strcpy(key.name, name);
	pthread_mutex_lock(&notifier->mutex);
	HASH_FIND(hh, notifier->orders, &key, key_bytes(name), order);
	if (order != NULL) {
		HASH_DEL(notifier->orders, order);
		free(order);
	}
	pthread_mutex_unlock(&notifier->mutex);
}

void notifier_each_order(struct notifier *notifier,
			 void (*visit)(void *context, fuse_ino_t parent, fuse_ino_t node,
				       const char *name),
			 void *context)
{
	const struct order *order;
	pthread_mutex_lock(&notifier->mutex);
	for (order = notifier->orders; order != NULL; order = order->hh.next) {
		if (order->name[0] != '\0')
			visit(context, order->parent, order->node, order->name);
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
	HASH_ITER (hh, notifier->orders, order, next) {
		HASH_DEL(notifier->orders, order);
		free(order);
	}
	pthread_mutex_destroy(&notifier->mutex);
	pthread_cond_destroy(&notifier->changed);
	close(notifier->ended);
	free(notifier);
}
