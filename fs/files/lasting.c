/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what inodes of lasting names have beyond others. Loop thread only.
 */
#include "files/lasting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <utlist.h>

#include "claim/file_path.h"
#include "files/filesystem.h"
#include "journal/fields.h"
#include "stores/store.h"

/* Of what the store has of a name, without paths and text (lasting_text.h). */
#define LINES_BYTES 512

#define ID_BYTES 16 /* of randomness */

bool lasting_directory(const struct inode *directory)
{
	return directory->keeps_files || (directory->lasting != NULL && S_ISDIR(directory->mode));
}

const struct inode *lasting_top(const struct inode *directory)
{
	while (directory->lasting != NULL && directory->parent != NULL)
		directory = directory->parent;
	return directory;
}

uint64_t lasting_number(const char *id)
{
	uint64_t number = 0;

	for (size_t i = 0; i < 2 * sizeof(number); i++)
		number = number << 4 | (uint64_t)(id[i] - 'a');
	return number;
}

bool lasting_renew_id(struct inode *inode)
{
	unsigned char bytes[ID_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		inode->lasting->id[2 * i] = (char)('a' + (bytes[i] >> 4)); /* a word: text.h */
		inode->lasting->id[2 * i + 1] = (char)('a' + (bytes[i] & 15));
	}
	inode->lasting->number = lasting_number(inode->lasting->id);
	return true;
}

char *lasting_path_below(const struct inode *directory, const char *name)
{
	char *path;
	int bytes = directory->lasting != NULL
			    ? asprintf(&path, "%s/%s", directory->lasting->path, name)
			    : asprintf(&path, "%s//%s", directory->path, name);

	return bytes < 0 ? NULL : path;
}

int lasting_create(struct inode *inode, const struct inode *directory)
{
	struct lasting *lasting = calloc(1, sizeof(*lasting));

	if (lasting == NULL)
		return -ENOMEM;
	lasting->path = lasting_path_below(directory, inode->name);
	if (lasting->path == NULL) {
		free(lasting);
		return -ENOMEM;
	}
	lasting->maker_fd = -1;
	lasting->links = 1;
	lasting->prev = lasting->next = inode;
	inode->lasting = lasting;
	int error = lasting_set_queue(inode, NULL);
	if (error != 0)
		lasting_free(inode);
	return error;
}

void lasting_free(struct inode *inode)
{
	struct lasting *lasting = inode->lasting;

	if (lasting == NULL)
		return;
	lasting->prev->lasting->next = lasting->next;
	lasting->next->lasting->prev = lasting->prev;
	if (lasting->maker_fd >= 0)
		close(lasting->maker_fd);
	free(lasting->opening);
	free(lasting->queue);
	free(lasting->path);
	free(lasting);
	inode->lasting = NULL;
}

int lasting_set_queue(struct inode *inode, const char *queue)
{
	struct lasting *lasting = inode->lasting;
	char *copy = NULL;

	if (queue != NULL)
		copy = strdup(queue);
	else if (asprintf(&copy, "%s/", lasting->path) < 0)
		copy = NULL;
	if (copy == NULL)
		return -ENOMEM;
	free(lasting->queue);
	lasting->queue = copy;
	return 0;
}

bool lasting_has_other_queue(const struct inode *inode)
{
	const struct lasting *lasting = inode->lasting;
	size_t bytes = strlen(lasting->path);

	return strncmp(lasting->queue, lasting->path, bytes) != 0 ||
	       strcmp(lasting->queue + bytes, "/") != 0;
}

void lasting_join(struct inode *inode, struct inode *other)
{
	struct lasting *mine = inode->lasting, *its = other->lasting;

	mine->next = its->next;
	mine->prev = other;
	its->next->lasting->prev = inode;
	its->next = inode;
	mine->number = its->number;
	mine->is_linked = its->is_linked = true;
}

struct late *lasting_late(const struct inode *inode)
{
	const struct inode *link = inode;

	do {
		if (link->lasting->late != NULL)
			return link->lasting->late;
		link = link->lasting->next;
	} while (link != inode);
	return NULL;
}

nlink_t lasting_links(const struct inode *inode)
{
	const struct inode *link = inode;
	nlink_t links = 0;

	if (!inode->lasting->is_ours && inode->parent != NULL)
		return inode->lasting->links;
	do {
		links += link->parent != NULL;
		link = link->lasting->next;
	} while (link != inode);
	return links;
}

nlink_t lasting_links_soon(const struct inode *inode)
{
	const struct inode *link = inode;
	nlink_t links = 0;

	do {
		links += link->parent != NULL || link->lasting->is_linking;
		link = link->lasting->next;
	} while (link != inode);
	return links;
}

off_t lasting_text_limit(const struct inode *inode)
{
	const struct inode *link = inode;
	size_t room = STORE_STEPS_BYTES_MAX, names = 0;

	do {
		const struct lasting *lasting = link->lasting;
		if (link->parent != NULL || lasting->is_linking) {
			names++;
			room -= STORE_STEP_BYTES + LINES_BYTES +
				3 * (strlen(lasting->path) + strlen(lasting->queue));
		}
		link = lasting->next;
	} while (link != inode);
	if (names > 0)
		room /= names;
	return (off_t)((room - 1) / 255 * 254); /* COBS_BYTES() */
}

/* What another process goes on with */

static const struct field fields[] = {
	{"file", FIELD_TEXT(struct lasting, path)},
	{"file_id", FIELD_CHARS(struct lasting, id)},
	{"file_number", FIELD_UNSIGNED(struct lasting, number, UINT64_MAX)},
	{"file_is_ours", FIELD_FLAG(struct lasting, is_ours)},
	{"file_links", FIELD_UNSIGNED(struct lasting, links, UINT32_MAX)},
	{"file_version", FIELD_UNSIGNED(struct lasting, version, UINT32_MAX)},
	{"file_dates", FIELD_FLAG(struct lasting, dates)},
	{"file_maker", FIELD_NUMBER(struct lasting, maker, 0, INT32_MAX)},
	{"file_maker_start", FIELD_UNSIGNED(struct lasting, maker_start, UINT64_MAX)},
	{"file_command", FIELD_CHARS(struct lasting, command)},
	{"file_is_taken", FIELD_FLAG(struct lasting, is_taken)},
	{"file_is_linked", FIELD_FLAG(struct lasting, is_linked)},
	{"file_is_moved", FIELD_FLAG(struct lasting, is_moved)},
	{"file_is_touched", FIELD_FLAG(struct lasting, is_touched)},
	{0},
};

static const struct field opening_fields[] = {
	{"opening_thread", FIELD_NUMBER(struct lasting_opening, thread, 0, INT32_MAX)},
	{"opening_uid", FIELD_UNSIGNED(struct lasting_opening, uid, UINT32_MAX)},
	{"opening_gid", FIELD_UNSIGNED(struct lasting_opening, gid, UINT32_MAX)},
	{"opening_flags", FIELD_NUMBER(struct lasting_opening, flags, INT32_MIN, INT32_MAX)},
	{"opening_decided", FIELD_FLAG(struct lasting_opening, decided)},
	{"opening_error", FIELD_NUMBER(struct lasting_opening, error, 0, 4095), FIELD_OR(0)},
	{0},
};

void lasting_save(const struct inode *inode, FILE *out)
{
	const struct lasting *lasting = inode->lasting;

	fields_save(fields, lasting, out);
	if (lasting_has_other_queue(inode))
		state_text(out, "file_lock", lasting->queue);
	if (lasting->opening != NULL)
		fields_save(opening_fields, lasting->opening, out);
}

int lasting_restore(struct inode *inode, struct state_reader *in)
{
	struct lasting *lasting = calloc(1, sizeof(*lasting));

	if (lasting == NULL)
		return state_starve(in);
	fields_restore(fields, lasting, in);
	lasting->maker_fd = -1;
	lasting->prev = lasting->next = inode;
	inode->lasting = lasting;
	lasting->path = strdup(lasting->path);
	if (lasting->path == NULL)
		return state_starve(in);
	const char *queue = state_has(in, "file_lock") ? state_get_text(in, "file_lock") : NULL;
	if (queue != NULL && !file_path_is_queue(queue))
		state_refuse(in, "file_lock", "the path of a queue");
	else if (lasting_set_queue(inode, queue) != 0)
		return state_starve(in);
	if (state_has(in, "opening_thread")) {
		lasting->opening = calloc(1, sizeof(*lasting->opening));
		if (lasting->opening == NULL)
			return state_starve(in);
		fields_restore(opening_fields, lasting->opening, in);
	}
	return state_failed(in) ? -EINVAL : 0;
}

/* 0: it has no others in its ring. */
static uint64_t content_of(const struct inode *inode)
{
	return inode->lasting != NULL && inode->lasting->is_linked ? inode->lasting->number : 0;
}

static int compare_contents(const struct inode *a, const struct inode *b)
{
	return (content_of(a) > content_of(b)) - (content_of(a) < content_of(b));
}

/* The order in which inodes are saved: directories before what is in them. */
static int compare_nodes(const struct inode *a, const struct inode *b)
{
	return (a->node > b->node) - (a->node < b->node);
}

void lasting_restored_all(struct inodes *inodes)
{
	struct inode *inode, *former = NULL;

	HASH_SRT(by_node, inodes->by_node, compare_contents);
	for (inode = inodes->by_node; inode != NULL; former = inode, inode = inode->by_node.next) {
		if (former != NULL && content_of(inode) != 0 &&
		    content_of(inode) == content_of(former))
			lasting_join(inode, former);
	}
	HASH_SRT(by_node, inodes->by_node, compare_nodes);
}
