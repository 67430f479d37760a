/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the orders to the process that writes to the kernel. That process has one order at a time,
 * which can be taken back until it has begun with it; the other orders can always be taken back. An
 * order that is kept in the journal stays there until it was carried out.
 */
#include "kernel/notifier.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "journal/journal.h"
#include "journal/text.h"
#include "kernel/lease_board.h"
#include "kernel/notifier_process.h"
#include "kernel/request.h"

/* How long the process is given to end. */
#define END_LIMIT_MS 2000

#define START_INTERVAL_MS 1000

/* How long the first process may take to begin before the loop runs. Only a program whose loader
 * asks for files of the mount takes longer, as it waits for the loop. */
#define BEGIN_LIMIT_MS 2000

/* The kernel's struct fuse_notify_inval_entry_out as it is from Linux 6.2 on: in older headers its
 * last member has another name, and there is no FUSE_EXPIRE_ONLY. */
struct expire_entry {
	uint64_t parent;
	uint32_t namelen;
	uint32_t flags;
};

#define EXPIRE_ONLY 1

struct order {
	struct state_item item; /* first */
	uint64_t serial;	/* 0: it is not kept */
	bool taken_back;	/* while it is carried out */
	UT_hash_handle hh;	/* in notifier->orders, by the parent and the name */
	fuse_ino_t node;	/* 0: the name is to be looked up again */
	fuse_ino_t parent;
	char name[]; /* "": the attributes of the parent are meant */
};

_Static_assert(offsetof(struct order, name) == offsetof(struct order, parent) + sizeof(fuse_ino_t),
	       "the parent and the name are one key");
_Static_assert(NOTIFIER_MESSAGE_BYTES > NAME_BYTES_MAX + sizeof(struct fuse_out_header) +
						sizeof(struct fuse_notify_delete_out),
	       "a message has place for each name");

/* A key to look for in notifier->orders. */
struct key {
	fuse_ino_t parent;
	char name[NAME_BYTES_MAX + 1];
};

struct notifier {
	struct notifier_mount mount;
	struct state_journal *journal;
	const struct lease_board *board;
	int64_t started_ms; /* when notifier_advance() last started the process anew; INT64_MIN:
			       never */
	uint64_t last_serial;
	struct notifier_process process;
	int events;	       /* epoll: the same for each process */
	struct order *orders;  /* in the order in which they were given */
	struct order *current; /* is being carried out */
	bool stops;
	struct log_limit failures;
};

static unsigned key_bytes(const char *name)
{
	return (unsigned)(sizeof(fuse_ino_t) + strlen(name));
}

/* The process */

static int start_process(struct notifier *notifier)
{
	struct notifier_process *process = &notifier->process;
	struct epoll_event event = {.events = EPOLLIN};
	int journal = notifier->journal != NULL ? state_journal_descriptor(notifier->journal) : -1;
	int error = notifier_process_start(&notifier->mount, journal, notifier->board,
					   &notifier->process);

	if (error != 0)
		return error;
	if (epoll_ctl(notifier->events, EPOLL_CTL_ADD, process->socket, &event) < 0 ||
	    (process->starter_end >= 0 &&
	     epoll_ctl(notifier->events, EPOLL_CTL_ADD, process->starter_end, &event) < 0)) {
		error = -errno;
		notifier_process_leave(process);
	}
	return error;
}

static void restart_process(struct notifier *notifier)
{
	int error = start_process(notifier);

	if (error != 0 &&
	    log_limit_passes(&notifier->failures, histogram_now_us() / 1000, "start", "", 0, error))
		log_warning("starting the process that lets the kernel forget names: %s",
			    strerror(-error));
}

int notifier_create(const struct notifier_mount *mount, struct state_journal *journal,
		    const struct lease_board *board, struct notifier **ret)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	int error;

	if (notifier == NULL)
		return -ENOMEM;
	notifier->mount = *mount;
	notifier->journal = journal;
	notifier->board = board;
	notifier->started_ms = INT64_MIN;
	notifier->process = (struct notifier_process){.socket = -1, .starter_end = -1};
	notifier->events = epoll_create1(EPOLL_CLOEXEC);
	error = notifier->events < 0 ? -errno : start_process(notifier);
	if (error != 0) {
		notifier_destroy(notifier);
		return error;
	}
	/* What was taken over is held already: the guard is to know before anybody kills this
	 * process. */
	notifier_process_reap(&notifier->process, BEGIN_LIMIT_MS);
	*ret = notifier;
	return 0;
}

/* Orders */

/* Returns the length. */
static size_t write_parts(char message[NOTIFIER_MESSAGE_BYTES], int code, const void *body,
			  size_t body_bytes, const char *name, size_t name_bytes)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + body_bytes + name_bytes),
		.error = code,
	};

	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), body, body_bytes);
	memcpy(message + sizeof(header) + body_bytes, name, name_bytes);
	return header.len;
}

static size_t write_message(const struct order *order, char message[NOTIFIER_MESSAGE_BYTES])
{
	uint32_t length = (uint32_t)strlen(order->name);
	struct fuse_notify_inval_inode_out attributes = {
		.ino = order->parent, .off = -1, /* no content */
	};
	/* A name that the kernel has found meanwhile stays. Before Linux 6.2 the kernel drops it,
	 * too, and finds it again. */
	struct expire_entry renewed = {
		.parent = order->parent,
		.namelen = length,
		.flags = EXPIRE_ONLY,
	};
	struct fuse_notify_delete_out forgotten = {
		.parent = order->parent,
		.child = order->node,
		.namelen = length,
	};

	if (length == 0)
		return write_parts(message, FUSE_NOTIFY_INVAL_INODE, &attributes,
				   sizeof(attributes), "", 0);
	if (order->node == 0)
		return write_parts(message, FUSE_NOTIFY_INVAL_ENTRY, &renewed, sizeof(renewed),
				   order->name, length + 1);
	return write_parts(message, FUSE_NOTIFY_DELETE, &forgotten, sizeof(forgotten), order->name,
			   length + 1);
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

/* Only names are kept: the next process has the kernel ask for attributes anew anyway. */
static void keep(struct notifier *notifier, struct order *order)
{
	static const struct state_kind kind = {place, save};

	if (notifier->journal == NULL || order->name[0] == '\0')
		return;
	order->serial = ++notifier->last_serial;
	state_journal_mark(notifier->journal, &order->item, &kind);
}

static void free_order(struct notifier *notifier, struct order *order)
{
	if (order->serial != 0)
		state_journal_remove(notifier->journal, &order->item);
	free(order);
}

static struct order *find_order(const struct notifier *notifier, fuse_ino_t parent,
				const char *name)
{
	struct key key = {.parent = parent};
	struct order *order;

	strcpy(key.name, name);
	HASH_FIND(hh, notifier->orders, &key, key_bytes(name), order);
	return order;
}

/* Returns false when out of memory. */
static bool add_order(struct notifier *notifier, struct order *order)
{
	HASH_ADD_KEYPTR(hh, notifier->orders, &order->parent, key_bytes(order->name), order);
	return order->hh.tbl != NULL;
}

static void send_next(struct notifier *notifier)
{
	char message[NOTIFIER_MESSAGE_BYTES];
	struct order *order = notifier->orders;

	if (notifier->current != NULL || order == NULL || notifier->process.socket < 0 ||
	    notifier->stops)
		return;
	size_t length = write_message(order, message);
	/* An order that cannot be sent because the process has ended stays for the next process. */
	if (notifier_process_send(&notifier->process, message, length) != 0)
		return;
	HASH_DEL(notifier->orders, order);
	notifier->current = order;
}

void notifier_advance(struct notifier *notifier, int64_t now_ms)
{
	if (notifier->process.socket >= 0 || notifier->stops ||
	    (notifier->started_ms != INT64_MIN &&
	     now_ms < notifier->started_ms + START_INTERVAL_MS) ||
	    (!notifier->mount.unmounts && lease_board_deadline(notifier->board) == INT64_MAX))
		return;
	notifier->started_ms = now_ms;
	restart_process(notifier);
	send_next(notifier);
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
		noted = add_order(notifier, order);
	}
	if (!noted)
		log_warning("%s: stays in the kernel's cache: out of memory", name);
	if (order != NULL && !noted)
		free_order(notifier, order);
	if (notifier->process.socket < 0 && !notifier->stops)
		restart_process(notifier);
	send_next(notifier);
}

void notifier_renew_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	notifier_keep_name(notifier, parent, name);
	notifier_forget_name(notifier, parent, 0, name);
}

void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node)
{
	notifier_forget_name(notifier, node, node, "");
}

size_t notifier_backlog(const struct notifier *notifier)
{
	return HASH_COUNT(notifier->orders);
}

void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	struct order *order = find_order(notifier, parent, name);
	struct order *current = notifier->current;

	if (order != NULL) {
		HASH_DEL(notifier->orders, order);
		free_order(notifier, order);
	}
	/* Even if it is too late to take the order back, no process is to repeat it. */
	if (current != NULL && current->parent == parent && strcmp(current->name, name) == 0) {
		if (current->serial != 0)
			state_journal_remove(notifier->journal, &current->item);
		current->taken_back = true;
		notifier_process_take_back(&notifier->process);
	}
}

void notifier_save_orders(const struct notifier *notifier, FILE *out)
{
	const struct order *order = notifier->current;

	if (order != NULL && order->name[0] != '\0' && !order->taken_back)
		save(&order->item, out);
	for (order = notifier->orders; order != NULL; order = order->hh.next) {
		if (order->name[0] != '\0')
			save(&order->item, out);
	}
}

static void end_current(struct notifier *notifier)
{
	if (notifier->current != NULL)
		free_order(notifier, notifier->current);
	notifier->current = NULL;
}

/* The process has ended. The next process repeats the order that it was carrying out, unless the
 * same was ordered again already. */
static void on_end(struct notifier *notifier)
{
	struct order *current = notifier->current;

	notifier_process_leave(&notifier->process);
	if (!notifier->stops)
		log_warning("the process that lets the kernel forget names has ended");
	notifier->current = NULL;
	if (current == NULL)
		return;
	if (current->taken_back || find_order(notifier, current->parent, current->name) != NULL ||
	    !add_order(notifier, current))
		free_order(notifier, current);
}

int notifier_descriptor(const struct notifier *notifier)
{
	return notifier->events;
}

void notifier_dispatch(struct notifier *notifier)
{
	char done;

	if (notifier->process.socket < 0)
		return;
	notifier_process_reap(&notifier->process, 0);
	ssize_t got = recv(notifier->process.socket, &done, 1, 0);
	if (got == 1)
		end_current(notifier);
	else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		on_end(notifier);
		notifier_advance(notifier, clock_now_ms());
	}
	send_next(notifier);
}

void notifier_stop(struct notifier *notifier)
{
	notifier->stops = true;
	if (notifier->process.socket >= 0)
		shutdown(notifier->process.socket, SHUT_WR);
}

bool notifier_has_ended(const struct notifier *notifier)
{
	return notifier->process.socket < 0;
}

static void wait_for_end(struct notifier *notifier)
{
	struct pollfd process = {.fd = notifier->process.socket, .events = POLLIN};
	int limit_ms = notifier->stops ? 0 : END_LIMIT_MS;

	notifier_stop(notifier);
	while (!notifier_has_ended(notifier) && poll(&process, 1, limit_ms) == 1)
		notifier_dispatch(notifier);
	notifier_process_leave(&notifier->process);
}

void notifier_destroy(struct notifier *notifier)
{
	struct order *order, *next;
	if (notifier == NULL)
		return;
	wait_for_end(notifier);
	end_current(notifier);
	HASH_ITER (hh, notifier->orders, order, next) {
		HASH_DEL(notifier->orders, order);
		free_order(notifier, order);
	}
	if (notifier->events >= 0)
		close(notifier->events);
	free(notifier);
}
