/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the form of the texts that the store has of lock files. Loop thread only.
 */
#include "files/lockfile_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cobs.h"
#include "base/escape.h"
#include "claim/file_path.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/shard.h"
#include "files/text.h"

/* UINT32_MAX is nobody's, and means no change: chown(2). */
#define ACCOUNT_MAX (UINT32_MAX - 1)

#define NS_PER_MS INT64_C(1000000)

/* The end of the line, and what is behind it. */
static void format_text(FILE *out, const struct text *text)
{
	bool is_behind = text->count > LOCKFILE_LINE_BYTES_MAX;

	if (is_behind)
		state_unsigned(out, "bytes", text->count);
	else if (text->count > 0)
		state_bytes(out, "text", text->bytes, text->count);
	state_end(out);
	if (is_behind)
		cobs_write(out, text->bytes, text->count);
}

char *lockfile_text_format(const struct inode *inode, nlink_t links)
{
	const struct lockfile *lockfile = inode->lockfile;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	fprintf(out, "%s\n", lockfile->id);
	state_begin(out, "file");
	if (lockfile->number != lockfile_number(lockfile->id))
		state_unsigned(out, "inode", lockfile->number);
	if (lockfile_has_other_queue(inode->lockfile))
		state_text(out, "lock", lockfile->queue);
	state_unsigned(out, "mode", inode->mode);
	state_unsigned(out, "uid", inode->uid);
	state_unsigned(out, "gid", inode->gid);
	state_unsigned(out, "links", links);
	state_flag(out, "moved", lockfile->is_moved);
	if (lockfile->dates)
		state_time(out, "mtime", inode->mtime);
	if (clock_ns_of(inode->atime) != clock_ns_of(inode->mtime))
		state_time(out, "atime", inode->atime);
	state_text(out, "host", inode->shard->filesystem->host);
	state_number(out, "pid", lockfile->maker.pid);
	state_text(out, "command", lockfile->maker.command);
	format_text(out, &inode->text);
	bool failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* Returns false if that is no path of a queue, or when out of memory. */
static bool parse_queue(struct state_reader *in, struct lockfile_facts *facts)
{
	const char *queue = state_get_text(in, "lock");

	if (file_path_is_queue(queue))
		facts->queue = strdup(queue);
	return facts->queue != NULL;
}

/* The text becomes a copy of these bytes. Returns false when out of memory. */
static bool copy_text(struct lockfile_facts *facts, const void *text, size_t bytes)
{
	facts->text_bytes = bytes < LOCKFILE_TEXT_BYTES_MAX ? bytes : LOCKFILE_TEXT_BYTES_MAX;
	facts->text = malloc(facts->text_bytes + 1);
	if (facts->text == NULL)
		return false;
	if (bytes > 0)
		memcpy(facts->text, text, facts->text_bytes);
	facts->text[facts->text_bytes] = '\0';
	return true;
}

/* The text that is behind the two lines. Returns false if it is not there, or when out of memory.
 */
static bool parse_text_behind(const struct store_claim *claim, struct state_reader *in,
			      struct lockfile_facts *facts)
{
	const char *at = claim->data, *end = at + claim->data_bytes;

	for (int line = 0; line < 2 && at != NULL; line++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at != NULL ? at + 1 : NULL;
	}
	facts->text_bytes = state_get_unsigned(in, "bytes", LOCKFILE_TEXT_BYTES_MAX);
	facts->text = at != NULL ? malloc(facts->text_bytes + 1) : NULL;
	if (facts->text == NULL)
		return false;
	facts->text[facts->text_bytes] = '\0';
	return cobs_read(at, (size_t)(end - at), facts->text, facts->text_bytes);
}

/* Returns false, and leaves the facts undefined, if the lines are not of dlockfs. */
static bool parse_lines(const struct store_claim *claim, struct state_reader *in,
			struct lockfile_facts *facts)
{
	if (state_next(in) != 1 || strlen(in->word) != sizeof(facts->id) - 1 || in->field_count > 0)
		return false;
	memcpy(facts->id, in->word, sizeof(facts->id));
	if (state_next(in) != 1 || strcmp(in->word, "file") != 0)
		return false;
	facts->number = state_has(in, "inode") ? state_get_unsigned(in, "inode", UINT64_MAX)
					       : lockfile_number(facts->id);
	if (state_has(in, "lock") && !parse_queue(in, facts))
		return false;
	facts->mode = (mode_t)state_get_unsigned(in, "mode", 0177777) & LOCKFILE_MODE_BITS;
	facts->uid = (uid_t)state_get_unsigned(in, "uid", ACCOUNT_MAX);
	facts->gid = (gid_t)state_get_unsigned(in, "gid", ACCOUNT_MAX);
	facts->is_moved = state_find_flag(in, "moved");
	facts->links = (nlink_t)state_get_number(in, "links", 1, UINT32_MAX);
	if (state_has(in, "mtime"))
		facts->mtime = state_get_time(in, "mtime");
	facts->atime = facts->mtime;
	if (state_has(in, "atime"))
		facts->atime = state_get_time(in, "atime");
	char host[64], command[32];
	escape_format(host, sizeof(host), state_get_text(in, "host"));
	escape_format(command, sizeof(command), state_get_text(in, "command"));
	snprintf(facts->host, sizeof(facts->host), "%s", state_get_text(in, "host"));
	snprintf(facts->command, sizeof(facts->command), "%s", state_get_text(in, "command"));
	facts->maker = (pid_t)state_get_number(in, "pid", 0, INT32_MAX);
	snprintf(facts->who, sizeof(facts->who), "host %s, process %d (%s)", host,
		 (int)facts->maker, command);
	size_t bytes = 0;
	const void *text = state_has(in, "text") ? state_get_bytes(in, "text", &bytes) : NULL;
	if (text != NULL && !copy_text(facts, text, bytes))
		return false;
	if (state_has(in, "bytes") && (facts->text != NULL || !parse_text_behind(claim, in, facts)))
		return false;
	bool is_kind = S_ISREG(facts->mode) || S_ISDIR(facts->mode) || S_ISLNK(facts->mode);
	return !state_failed(in) && is_kind;
}

/* What another client has put there. */
static int take_as_text(const struct store_claim *claim, struct lockfile_facts *facts)
{
	lockfile_text_finish(facts);
	*facts = (struct lockfile_facts){
		.mode = S_IFREG | 0644,
		.links = 1,
		.atime = facts->ctime,
		.mtime = facts->ctime,
		.ctime = facts->ctime,
		.version = facts->version,
		.who = "another client of the store",
	};
	if (!copy_text(facts, claim->data, claim->data_bytes))
		return -ENOMEM;
	/* Differs between two that follow each other under one name. */
	snprintf(facts->id, sizeof(facts->id), "%016llx%016llx", (unsigned long long)claim->session,
		 (unsigned long long)claim->since_ms);
	return 0;
}

void lockfile_text_finish(struct lockfile_facts *facts)
{
	free(facts->text);
	free(facts->queue);
	facts->text = facts->queue = NULL;
}

int lockfile_text_parse(const struct store_claim *claim, struct lockfile_facts *facts)
{
	struct state_reader in;
	FILE *file = claim->data_bytes > 0 ? fmemopen((void *)claim->data, claim->data_bytes, "r")
					   : NULL;
	bool parsed = false;

	struct timespec changed = clock_time_of(clock_ns_of((struct timespec){
		claim->changed_ms / 1000,
		claim->changed_ms % 1000 * NS_PER_MS,
	}));
	*facts = (struct lockfile_facts){
		.mtime = changed,
		.ctime = changed,
		.version = claim->version,
	};
	if (file == NULL && claim->data_bytes > 0)
		return -ENOMEM;
	if (file != NULL) {
		state_reader_init(&in, file);
		parsed = parse_lines(claim, &in, facts);
		state_reader_finish(&in);
		fclose(file);
	}
	return parsed ? 0 : take_as_text(claim, facts);
}

bool lockfile_text_is_same(const struct inode *inode, const struct lockfile_facts *facts)
{
	return strcmp(inode->lockfile->id, facts->id) == 0;
}

int lockfile_text_update(struct inode *inode, const struct lockfile_facts *facts)
{
	struct lockfile *lockfile = inode->lockfile;
	int error = text_set(&inode->text, facts->text, facts->text_bytes, inode->maker);

	/* Open files of a name have locked by its queue. */
	if (error == 0 && !lockfile_text_is_same(inode, facts))
		error = lockfile_set_queue(inode->lockfile, facts->queue);
	if (error != 0)
		return error;
	memcpy(lockfile->id, facts->id, sizeof(lockfile->id));
	lockfile->number = facts->number != 0 ? facts->number : inode_number(inode->path);
	lockfile->links = facts->links;
	lockfile->is_moved = facts->is_moved;
	lockfile->version = facts->version;
	memcpy(lockfile->who, facts->who, sizeof(lockfile->who));
	lockfile->dates = clock_ns_of(facts->mtime) != clock_ns_of(facts->ctime);
	inode->mode = facts->mode;
	inode->uid = facts->uid;
	inode->gid = facts->gid;
	inode->atime = facts->atime;
	inode->mtime = facts->mtime;
	inode->ctime = facts->ctime;
	inode_mark(inode);
	return 0;
}
