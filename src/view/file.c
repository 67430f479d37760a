/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the line of a lock file. Pure but for memory.
 */
#include "view/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

#define VALUE_BYTES_MAX 1024

struct view_file *view_file_read(const struct store_claim *claim, const struct view_files *files)
{
	struct view_file *file = calloc(1, sizeof(*file));

	if (file == NULL)
		return NULL;
	file->session = claim->session;
	/* etcd tells when a file was made only until the file is changed. */
	file->since_ms = claim->since_ms > 0 ? claim->since_ms : claim->changed_ms;
	if (files->read(claim, &file->facts) == 0)
		return file;
	view_file_free(file);
	return NULL;
}

void view_file_free(struct view_file *file)
{
	if (file == NULL)
		return;
	free(file->facts.target);
	free(file->facts.queue);
	free(file->facts.host);
	free(file->facts.command);
	free(file);
}

/* A text that is too long is left out, as are those of claims. */
static void write_text(FILE *out, const char *key, const char *text)
{
	if (text == NULL || *text == '\0' || strlen(text) > VALUE_BYTES_MAX)
		return;
	fprintf(out, " %s=", key);
	escape_write(out, text);
}

void view_file_write(FILE *out, const struct view_file *file)
{
	const struct view_facts *facts = &file->facts;

	fprintf(out, "position=1 state=held mode=exclusive kind=%s", facts->kind);
	write_text(out, "target", facts->target);
	write_text(out, "host", facts->host);
	if (facts->pid > 0)
		fprintf(out, " pid=%" PRId64, facts->pid);
	if (facts->uid >= 0)
		fprintf(out, " uid=%" PRId64, facts->uid);
	write_text(out, "command", facts->command);
	if (file->since_ms > 0)
		fprintf(out, " since=%" PRId64, file->since_ms / 1000);
	fprintf(out, " client=%s session=0x%" PRIx64 " claim=",
		facts->host != NULL ? "dlockfs" : "other", file->session);
	escape_write(out, facts->name);
	fputc('\n', out);
}
