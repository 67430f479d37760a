/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the notes. Loop thread only.
 */
#include "handles/audit_note.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "journal/text.h"

struct audit_note *audit_note_of_file(struct audit_note *by_handle, uint64_t handle)
{
	struct audit_note *note;
	HASH_FIND(by_handle, by_handle, &handle, sizeof(handle), note);
	return note;
}

struct audit_note *audit_note_of_owner(struct audit_note *list, uint64_t owner)
{
	struct audit_note *note = list;

	while (note != NULL && note->owner != owner)
		note = note->next;
	return note;
}

bool audit_note_add(struct audit_note **notes, const struct audit_note *note)
{
	struct audit_note *added = malloc(sizeof(*added));

	if (added == NULL)
		return false;
	*added = *note;
	if (added->kind == LOCK_KIND_RECORD) {
		DL_APPEND(*notes, added);
		return true;
	}
	HASH_ADD(by_handle, *notes, handle, sizeof(added->handle), added);
	if (added->by_handle.tbl != NULL)
		return true;
	free(added);
	return false;
}

void audit_note_remove(struct audit_note **notes, struct audit_note *note)
{
	if (note->kind == LOCK_KIND_RECORD)
		DL_DELETE(*notes, note);
	else
		HASH_DELETE(by_handle, *notes, note);
	free(note);
}

/* The form: "kind mode owner pid uid since token command", numbers in decimal, and a newline. */

static void write_note(const struct audit_note *note, FILE *out)
{
	fprintf(out, "%d %d %" PRIu64 " %d %u %" PRId64 " %" PRIu64 " %s\n", (int)note->kind,
		(int)note->mode, note->owner, (int)note->pid, (unsigned int)note->uid,
		note->since_us, note->token, note->command);
}

void audit_notes_save(struct audit_note *by_handle, const struct audit_note *of_path,
		      uint64_t handle, FILE *out)
{
	const struct audit_note *of_file = audit_note_of_file(by_handle, handle), *note;
	char *text = NULL;
	size_t bytes = 0;

	if (of_file == NULL && of_path == NULL)
		return;
	FILE *stream = open_memstream(&text, &bytes);
	if (stream == NULL)
		return; /* the next process does not know for how long they were held */
	if (of_file != NULL)
		write_note(of_file, stream);
	DL_FOREACH (of_path, note) {
		if (note->handle == handle)
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
