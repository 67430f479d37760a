/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what inodes of lock files have beyond others. Loop thread only.
 */
#include "files/lockfile.h"

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

/* Of what the store has of a name, without paths and text (lockfile_text.h). */
#define LINES_BYTES 512

#define ID_BYTES 16 /* of randomness */

bool lockfile_directory(const struct inode *directory)
{
	return directory->keeps_files || (directory->lockfile != NULL && S_ISDIR(directory->mode));
}

const struct inode *lockfile_top(const struct inode *directory)
{
	while (directory->lockfile != NULL && directory->parent != NULL)
		directory = directory->parent;
	return directory;
}

uint64_t lockfile_number(const char *id)
{
	uint64_t number = 0;

	for (size_t i = 0; i < 2 * sizeof(number); i++)
		number = number << 4 | (uint64_t)(id[i] - 'a');
	return number;
}

bool lockfile_renew_id(struct inode *inode)
{
	unsigned char bytes[ID_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		inode->lockfile->id[2 * i] = (char)('a' + (bytes[i] >> 4)); /* a word: text.h */
		inode->lockfile->id[2 * i + 1] = (char)('a' + (bytes[i] & 15));
	}
	inode->lockfile->number = lockfile_number(inode->lockfile->id);
	return true;
}

char *lockfile_path_below(const struct inode *directory, const char *name)
{
	char *path;
	int bytes = directory->lockfile != NULL
			    ? asprintf(&path, "%s/%s", directory->lockfile->path, name)
			    : asprintf(&path, "%s//%s", directory->path, name);

	return bytes < 0 ? NULL : path;
}

int lockfile_create(struct inode *inode, const struct inode *directory)
{
	struct lockfile *lockfile = calloc(1, sizeof(*lockfile));

	if (lockfile == NULL)
		return -ENOMEM;
	lockfile->path = lockfile_path_below(directory, inode->name);
	if (lockfile->path == NULL) {
		free(lockfile);
		return -ENOMEM;
	}
	lockfile->maker_fd = -1;
	lockfile->links = 1;
	lockfile->prev = lockfile->next = inode;
	inode->lockfile = lockfile;
	int error = lockfile_set_queue(inode, NULL);
	if (error != 0)
		lockfile_free(inode);
	return error;
}

void lockfile_free(struct inode *inode)
{
	struct lockfile *lockfile = inode->lockfile;

	if (lockfile == NULL)
		return;
	lockfile->prev->lockfile->next = lockfile->next;
	lockfile->next->lockfile->prev = lockfile->prev;
	if (lockfile->maker_fd >= 0)
		close(lockfile->maker_fd);
	free(lockfile->opening);
	free(lockfile->queue);
	free(lockfile->path);
	free(lockfile);
	inode->lockfile = NULL;
}

int lockfile_set_queue(struct inode *inode, const char *queue)
{
	struct lockfile *lockfile = inode->lockfile;
	char *copy = NULL;

	if (queue != NULL)
		copy = strdup(queue);
	else if (asprintf(&copy, "%s/", lockfile->path) < 0)
		copy = NULL;
	if (copy == NULL)
		return -ENOMEM;
	free(lockfile->queue);
	lockfile->queue = copy;
	return 0;
}

bool lockfile_has_other_queue(const struct inode *inode)
{
	const struct lockfile *lockfile = inode->lockfile;
	size_t bytes = strlen(lockfile->path);

	return strncmp(lockfile->queue, lockfile->path, bytes) != 0 ||
	       strcmp(lockfile->queue + bytes, "/") != 0;
}

void lockfile_join(struct inode *inode, struct inode *other)
{
	struct lockfile *mine = inode->lockfile, *its = other->lockfile;

	mine->next = its->next;
	mine->prev = other;
	its->next->lockfile->prev = inode;
	its->next = inode;
	mine->number = its->number;
	mine->is_linked = its->is_linked = true;
}

struct late *lockfile_late(const struct inode *inode)
{
	const struct inode *link = inode;

	do {
		if (link->lockfile->late != NULL)
			return link->lockfile->late;
		link = link->lockfile->next;
	} while (link != inode);
	return NULL;
}

nlink_t lockfile_links(const struct inode *inode)
{
	const struct inode *link = inode;
	nlink_t links = 0;

	if (!inode->lockfile->is_ours && inode->parent != NULL)
		return inode->lockfile->links;
	do {
		links += link->parent != NULL;
		link = link->lockfile->next;
	} while (link != inode);
	return links;
}

nlink_t lockfile_links_soon(const struct inode *inode)
{
	const struct inode *link = inode;
	nlink_t links = 0;

	do {
		links += link->parent != NULL || link->lockfile->is_linking;
		link = link->lockfile->next;
	} while (link != inode);
	return links;
}

off_t lockfile_text_limit(const struct inode *inode)
{
	const struct inode *link = inode;
	size_t room = STORE_STEPS_BYTES_MAX, names = 0;

	do {
		const struct lockfile *lockfile = link->lockfile;
		if (link->parent != NULL || lockfile->is_linking) {
			names++;
			room -= STORE_STEP_BYTES + LINES_BYTES +
				3 * (strlen(lockfile->path) + strlen(lockfile->queue));
		}
		link = lockfile->next;
	} while (link != inode);
	if (names > 0)
		room /= names;
	return (off_t)((room - 1) / 255 * 254); /* COBS_BYTES() */
}

/* What another process goes on with */

static const struct field fields[] = {
	{"file", FIELD_TEXT(struct lockfile, path)},
	{"file_id", FIELD_CHARS(struct lockfile, id)},
	{"file_number", FIELD_UNSIGNED(struct lockfile, number, UINT64_MAX)},
	{"file_is_ours", FIELD_FLAG(struct lockfile, is_ours)},
	{"file_links", FIELD_UNSIGNED(struct lockfile, links, UINT32_MAX)},
	{"file_version", FIELD_UNSIGNED(struct lockfile, version, UINT32_MAX)},
	{"file_dates", FIELD_FLAG(struct lockfile, dates)},
	{"file_maker", FIELD_NUMBER(struct lockfile, maker, 0, INT32_MAX)},
	{"file_maker_start", FIELD_UNSIGNED(struct lockfile, maker_start, UINT64_MAX)},
	{"file_command", FIELD_CHARS(struct lockfile, command)},
	{"file_is_taken", FIELD_FLAG(struct lockfile, is_taken)},
	{"file_is_linked", FIELD_FLAG(struct lockfile, is_linked)},
	{"file_is_moved", FIELD_FLAG(struct lockfile, is_moved)},
	{"file_is_touched", FIELD_FLAG(struct lockfile, is_touched)},
	{0},
};

static const struct field opening_fields[] = {
	{"opening_thread", FIELD_NUMBER(struct lockfile_opening, thread, 0, INT32_MAX)},
	{"opening_uid", FIELD_UNSIGNED(struct lockfile_opening, uid, UINT32_MAX)},
	{"opening_gid", FIELD_UNSIGNED(struct lockfile_opening, gid, UINT32_MAX)},
	{"opening_flags", FIELD_NUMBER(struct lockfile_opening, flags, INT32_MIN, INT32_MAX)},
	{"opening_decided", FIELD_FLAG(struct lockfile_opening, decided)},
	{"opening_error", FIELD_NUMBER(struct lockfile_opening, error, 0, 4095), FIELD_OR(0)},
	{0},
};

void lockfile_save(const struct inode *inode, FILE *out)
{
	const struct lockfile *lockfile = inode->lockfile;

	fields_save(fields, lockfile, out);
	if (lockfile_has_other_queue(inode))
		state_text(out, "file_lock", lockfile->queue);
	if (lockfile->opening != NULL)
		fields_save(opening_fields, lockfile->opening, out);
}

int lockfile_restore(struct inode *inode, struct state_reader *in)
{
	struct lockfile *lockfile = calloc(1, sizeof(*lockfile));

	if (lockfile == NULL)
		return state_starve(in);
	fields_restore(fields, lockfile, in);
	lockfile->maker_fd = -1;
	lockfile->prev = lockfile->next = inode;
	inode->lockfile = lockfile;
	lockfile->path = strdup(lockfile->path);
	if (lockfile->path == NULL)
		return state_starve(in);
	const char *queue = state_has(in, "file_lock") ? state_get_text(in, "file_lock") : NULL;
	if (queue != NULL && !file_path_is_queue(queue))
		state_refuse(in, "file_lock", "the path of a queue");
	else if (lockfile_set_queue(inode, queue) != 0)
		return state_starve(in);
	if (state_has(in, "opening_thread")) {
		lockfile->opening = calloc(1, sizeof(*lockfile->opening));
		if (lockfile->opening == NULL)
			return state_starve(in);
		fields_restore(opening_fields, lockfile->opening, in);
	}
	return state_failed(in) ? -EINVAL : 0;
}

/* 0: it has no others in its ring. */
static uint64_t content_of(const struct inode *inode)
{
	return inode->lockfile != NULL && inode->lockfile->is_linked ? inode->lockfile->number : 0;
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

void lockfile_restored_all(struct inodes *inodes)
{
	struct inode *inode, *former = NULL;

	HASH_SRT(by_node, inodes->by_node, compare_contents);
	for (inode = inodes->by_node; inode != NULL; former = inode, inode = inode->by_node.next) {
		if (former != NULL && content_of(inode) != 0 &&
		    content_of(inode) == content_of(former))
			lockfile_join(inode, former);
	}
	HASH_SRT(by_node, inodes->by_node, compare_nodes);
}
