/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of messages, and the descriptor that is readable while there are any. Everything
 * but the descriptor is guarded by the mutex, which is held for a moment only.
 */
#include "stores/zookeeper/session/mailbox.h"

#include <errno.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

int zookeeper_mailbox_init(struct zookeeper_mailbox *mailbox)
{
	*mailbox = (struct zookeeper_mailbox){
		.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.starved.kind = MESSAGE_STARVED,
	};
	if (mailbox->descriptor < 0)
		return -errno;
	pthread_mutex_init(&mailbox->mutex, NULL);
	return 0;
}

void zookeeper_mailbox_finish(struct zookeeper_mailbox *mailbox)
{
	close(mailbox->descriptor);
	pthread_mutex_destroy(&mailbox->mutex);
}

static void post_locked(struct zookeeper_mailbox *mailbox, struct zookeeper_message *message)
{
	if (mailbox->messages == NULL)
		eventfd_write(mailbox->descriptor, 1);
	DL_APPEND(mailbox->messages, message);
}

void zookeeper_mailbox_post(struct zookeeper_mailbox *mailbox, struct zookeeper_message *message)
{
	pthread_mutex_lock(&mailbox->mutex);
	post_locked(mailbox, message);
	pthread_mutex_unlock(&mailbox->mutex);
}

void zookeeper_mailbox_starve(struct zookeeper_mailbox *mailbox)
{
	pthread_mutex_lock(&mailbox->mutex);
	if (!mailbox->starved_posted) {
		mailbox->starved_posted = true;
		post_locked(mailbox, &mailbox->starved);
	}
	pthread_mutex_unlock(&mailbox->mutex);
}

void zookeeper_mailbox_reset_starved(struct zookeeper_mailbox *mailbox)
{
	pthread_mutex_lock(&mailbox->mutex);
	mailbox->starved_posted = false;
	pthread_mutex_unlock(&mailbox->mutex);
}

struct zookeeper_message *zookeeper_mailbox_take(struct zookeeper_mailbox *mailbox)
{
	struct zookeeper_message *messages;
	eventfd_t count;

	pthread_mutex_lock(&mailbox->mutex);
	eventfd_read(mailbox->descriptor, &count);
	messages = mailbox->messages;
	mailbox->messages = NULL;
	pthread_mutex_unlock(&mailbox->mutex);
	return messages;
}
