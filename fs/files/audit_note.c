/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the notes. Loop thread only.
 */
#include "files/audit_note.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/filesystem.h"
#include "files/handle.h"

struct audit_note *audit_note_of_file(const struct filesystem *filesystem,
				      const struct handle *handle)
{
	struct audit_note *note = NULL;

	if (filesystem->audited != NULL)
		HASH_FIND(by_handle, filesystem->audited, &handle->number, sizeof(handle->number),
			  note);
	return note;
}

struct audit_note *audit_note_of_owner(const struct holders *holders, uint64_t owner)
{
	struct audit_note *note = holders != NULL ? holders->audited : NULL;

	while (note != NULL && note->owner != owner)
		note = note->next;
	return note;
}

struct audit_note *audit_note_add(struct filesystem *filesystem, struct holders *holders,
				  const struct audit_note *note)
{
	struct audit_note *added = malloc(sizeof(*added));

	if (added == NULL)
		return NULL;
	*added = *note;
	if (added->kind == LOCK_KIND_RECORD) {
		DL_APPEND(holders->audited, added);
		return added;
	}
	HASH_ADD(by_handle, filesystem->audited, handle, sizeof(added->handle), added);
	if (added->by_handle.tbl != NULL)
		return added;
	free(added);
	return NULL;
}

void audit_note_remove(struct filesystem *filesystem, struct holders *holders,
		       struct audit_note *note)
{
	if (note->kind == LOCK_KIND_RECORD)
		DL_DELETE(holders->audited, note);
	else
		HASH_DELETE(by_handle, filesystem->audited, note);
	free(note);
}

/* The form: "kind mode owner pid uid since token command", numbers in decimal, and a newline. */

static void write_note(const struct audit_note *note, FILE *out)
{
	fprintf(out, "%d %d %" PRIu64 " %d %u %" PRId64 " %" PRIu64 " %s\n", (int)note->kind,
		(int)note->mode, note->owner, (int)note->pid, (unsigned int)note->uid,
		note->since_us, note->token, note->command);
}

void audit_notes_save(const struct handle *handle, const struct holders *holders, FILE *out)
{
	const struct audit_note *of_file = audit_note_of_file(handle->filesystem, handle), *note;
	char *text = NULL;
	size_t bytes = 0;

	if (of_file == NULL && holders->audited == NULL)
		return;
	FILE *stream = open_memstream(&text, &bytes);
	if (stream == NULL)
		return; /* the next process does not know for how long they were held */
	if (of_file != NULL)
		write_note(of_file, stream);
	DL_FOREACH (holders->audited, note) {
		if (note->handle == handle->number)
			write_note(note, stream);
	}
	if (fclose(stream) == 0 && bytes > 0)
		state_bytes(out, "audit", text, bytes);
	free(text);
}

bool audit_note_read(const char **text, struct audit_note *ret)
{
	int kind, mode, pid, end = 0;
	unsigned int uid;

	*ret = (struct audit_note){0};
	if (sscanf(*text, "%d %d %" SCNu64 " %d %u %" SCNd64 " %" SCNu64 "%n", &kind, &mode,
		   &ret->owner, &pid, &uid, &ret->since_us, &ret->token, &end) != 7 ||
	    (*text)[end] != ' ' || kind < 0 || kind > LOCK_KIND_RECORD || mode < 0 ||
	    mode > CLAIM_EXCLUSIVE || pid < 0)
		return false;
	*text += end + 1;
	size_t bytes = strcspn(*text, "\n");
	snprintf(ret->command, sizeof(ret->command), "%.*s", (int)bytes, *text);
	*text += bytes + ((*text)[bytes] == '\n');
	ret->kind = (enum lock_kind)kind;
	ret->mode = (enum claim_mode)mode;
	ret->pid = pid;
	ret->uid = uid;
	return true;
}
