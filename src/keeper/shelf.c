/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/shelf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper/message.h"

#define GREETING "dlockfs-keeper/1"

_Static_assert(SHELF_MAX <= MESSAGE_DESCRIPTORS, "a message has all");
_Static_assert(sizeof(GREETING) + SHELF_MAX * SHELF_NAME_BYTES <= MESSAGE_BYTES, "and the names");

static bool is_name(const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < length; i++)
		if (name[i] <= ' ' || name[i] > '~' || name[i] == ':')
			return false;
	return length > 0 && length < SHELF_NAME_BYTES;
}

static struct shelf_entry *find(struct shelf *shelf, const char *name)
{
	for (size_t i = 0; i < shelf->count; i++)
		if (strcmp(shelf->entries[i].name, name) == 0)
			return &shelf->entries[i];
	return NULL;
}

int shelf_put(struct shelf *shelf, const char *name, int descriptor)
{
	struct shelf_entry *entry = find(shelf, name);
	int error = !is_name(name)				 ? -EINVAL
		    : entry == NULL && shelf->count == SHELF_MAX ? -ENOSPC
								 : 0;

	if (error != 0) {
		close(descriptor);
		return error;
	}
	if (entry != NULL)
		close(entry->descriptor);
	else
		entry = &shelf->entries[shelf->count++];
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	entry->descriptor = descriptor;
	return 0;
}

int shelf_find(const struct shelf *shelf, const char *name)
{
	for (size_t i = 0; i < shelf->count; i++)
		if (strcmp(shelf->entries[i].name, name) == 0)
			return shelf->entries[i].descriptor;
	return -1;
}

void shelf_remove(struct shelf *shelf, const char *name)
{
	struct shelf_entry *entry = find(shelf, name);

	if (entry == NULL)
		return;
	close(entry->descriptor);
	*entry = shelf->entries[--shelf->count];
}

void shelf_clear(struct shelf *shelf)
{
	while (shelf->count > 0)
		close(shelf->entries[--shelf->count].descriptor);
}

int shelf_send(const struct shelf *shelf, int socket)
{
	char text[MESSAGE_BYTES] = GREETING;
	int descriptors[SHELF_MAX];
	size_t length = strlen(text);

	for (size_t i = 0; i < shelf->count; i++) {
		length += (size_t)snprintf(text + length, sizeof(text) - length, " %s",
					   shelf->entries[i].name);
		descriptors[i] = shelf->entries[i].descriptor;
	}
	return message_send(socket, text, descriptors, shelf->count);
}

/* Moves the descriptors of the message to an empty shelf, under the names in it. */
static int unpack(struct message *message, struct shelf *shelf)
{
	char *rest = NULL;
	const char *word = strtok_r(message->text, " ", &rest);
	size_t count = message->count;

	if (word == NULL || strcmp(word, GREETING) != 0)
		return -EPROTO;
	for (size_t i = 0; i < count; i++) {
		word = strtok_r(NULL, " ", &rest);
		if (word == NULL || shelf_find(shelf, word) >= 0)
			return -EPROTO;
		int descriptor = message->descriptors[i];
		message->descriptors[i] = -1;
		if (shelf_put(shelf, word, descriptor) != 0)
			return -EPROTO;
	}
	return strtok_r(NULL, " ", &rest) == NULL ? 0 : -EPROTO;
}

int shelf_receive(struct shelf *shelf, int socket)
{
	struct shelf fresh = {0};
	struct message message = {.count = 0};
	int error = message_receive(socket, &message);

	if (error != 0)
		return error;
	error = unpack(&message, &fresh);
	message_close(&message);
	if (error != 0) {
		shelf_clear(&fresh);
		return error;
	}
	shelf_clear(shelf);
	*shelf = fresh;
	return 0;
}
