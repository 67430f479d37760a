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
#include "journal/fields.h"
#include "stores/store.h"

/* Of what the store has of a name, without paths and text (lockfile_text.h). */
#define LINES_BYTES 512

#define ID_BYTES 16 /* of randomness */

uint64_t lockfile_number(const char *id)
{
	uint64_t number = 0;

	for (size_t i = 0; i < 2 * sizeof(number); i++)
		number = number << 4 | (uint64_t)(id[i] - 'a');
	return number;
}

bool lockfile_renew_id(struct lockfile *lockfile)
{
	unsigned char bytes[ID_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		lockfile->id[2 * i] = (char)('a' + (bytes[i] >> 4)); /* a word: text.h */
		lockfile->id[2 * i + 1] = (char)('a' + (bytes[i] & 15));
	}
	lockfile->number = lockfile_number(lockfile->id);
	return true;
}

struct lockfile *lockfile_create(struct inode *inode, char *path)
{
	struct lockfile *lockfile = path != NULL ? calloc(1, sizeof(*lockfile)) : NULL;

	if (lockfile == NULL) {
		free(path);
		return NULL;
	}
	lockfile->inode = inode;
	lockfile->path = path;
	lockfile->maker.pidfd = -1;
	lockfile->links = 1;
	lockfile->prev = lockfile->next = lockfile;
	if (lockfile_set_queue(lockfile, NULL) == 0)
		return lockfile;
	lockfile_free(lockfile);
	return NULL;
}

void lockfile_free(struct lockfile *lockfile)
{
	if (lockfile == NULL)
		return;
	lockfile->prev->next = lockfile->next;
	lockfile->next->prev = lockfile->prev;
	if (lockfile->maker.pidfd >= 0)
		close(lockfile->maker.pidfd);
	free(lockfile->opening);
	free(lockfile->queue);
	free(lockfile->path);
	free(lockfile);
}

int lockfile_set_queue(struct lockfile *lockfile, const char *queue)
{
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

bool lockfile_has_other_queue(const struct lockfile *lockfile)
{
	size_t bytes = strlen(lockfile->path);

	return strncmp(lockfile->queue, lockfile->path, bytes) != 0 ||
	       strcmp(lockfile->queue + bytes, "/") != 0;
}

void lockfile_join(struct lockfile *lockfile, struct lockfile *other)
{
	lockfile->next = other->next;
	lockfile->prev = other;
	other->next->prev = lockfile;
	other->next = lockfile;
	lockfile->number = other->number;
	lockfile->is_linked = other->is_linked = true;
}

struct late *lockfile_late(const struct lockfile *lockfile)
{
	const struct lockfile *link = lockfile;

	do {
		if (link->late != NULL)
			return link->late;
		link = link->next;
	} while (link != lockfile);
	return NULL;
}

nlink_t lockfile_links(const struct lockfile *lockfile)
{
	const struct lockfile *link = lockfile;
	nlink_t links = 0;

	if (!lockfile->is_ours && lockfile->is_named)
		return lockfile->links;
	do {
		links += link->is_named;
		link = link->next;
	} while (link != lockfile);
	return links;
}

nlink_t lockfile_links_soon(const struct lockfile *lockfile)
{
	const struct lockfile *link = lockfile;
	nlink_t links = 0;

	do {
		links += link->is_named || link->is_linking;
		link = link->next;
	} while (link != lockfile);
	return links;
}

off_t lockfile_text_limit(const struct lockfile *lockfile)
{
	const struct lockfile *link = lockfile;
	size_t room = STORE_STEPS_BYTES_MAX, names = 0;

	do {
		if (link->is_named || link->is_linking) {
			names++;
			room -= STORE_STEP_BYTES + LINES_BYTES +
				3 * (strlen(link->path) + strlen(link->queue));
		}
		link = link->next;
	} while (link != lockfile);
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
	{"file_maker", FIELD_NUMBER(struct lockfile, maker.pid, 0, INT32_MAX)},
	{"file_maker_start", FIELD_UNSIGNED(struct lockfile, maker.start, UINT64_MAX)},
	{"file_command", FIELD_CHARS(struct lockfile, maker.command)},
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

void lockfile_save(const struct lockfile *lockfile, FILE *out)
{
	fields_save(fields, lockfile, out);
	if (lockfile_has_other_queue(lockfile))
		state_text(out, "file_lock", lockfile->queue);
	if (lockfile->opening != NULL)
		fields_save(opening_fields, lockfile->opening, out);
}

int lockfile_restore(struct inode *inode, struct state_reader *in, struct lockfile **ret)
{
	struct lockfile *lockfile = calloc(1, sizeof(*lockfile));

	if (lockfile == NULL)
		return state_starve(in);
	fields_restore(fields, lockfile, in);
	lockfile->maker.pidfd = -1;
	lockfile->inode = inode;
	lockfile->prev = lockfile->next = lockfile;
	*ret = lockfile;
	lockfile->path = strdup(lockfile->path);
	if (lockfile->path == NULL)
		return state_starve(in);
	const char *queue = state_has(in, "file_lock") ? state_get_text(in, "file_lock") : NULL;
	if (queue != NULL && !file_path_is_queue(queue))
		state_refuse(in, "file_lock", "the path of a queue");
	else if (lockfile_set_queue(lockfile, queue) != 0)
		return state_starve(in);
	if (state_has(in, "opening_thread")) {
		lockfile->opening = calloc(1, sizeof(*lockfile->opening));
		if (lockfile->opening == NULL)
			return state_starve(in);
		fields_restore(opening_fields, lockfile->opening, in);
	}
	return state_failed(in) ? -EINVAL : 0;
}
