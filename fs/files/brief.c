/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is known of brief exclusive opens. Loop thread only.
 */
#include "files/brief.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/handle.h"
#include "files/inode.h"

void briefs_finish(struct briefs *briefs)
{
	free(briefs->path);
	briefs->path = NULL;
}

static struct brief *find(const struct handle *handle)
{
	struct brief *brief = handle->inode->brief;
	return brief != NULL && brief->handle == handle ? brief : NULL;
}

/* Whoever had the lock before is not brief. Out of memory the open does not count as brief. */
void brief_grant(struct handle *handle)
{
	struct inode *inode = handle->inode;

	free(inode->brief);
	inode->brief = calloc(1, sizeof(*inode->brief));
	if (inode->brief == NULL)
		return;
	inode->brief->handle = handle;
	inode->brief->granted_ms = handle->filesystem->now_ms;
}

void brief_use(struct handle *handle)
{
	if (find(handle) == NULL)
		return;
	free(handle->inode->brief);
	handle->inode->brief = NULL;
}

void brief_write(struct handle *handle, fuse_req_t req)
{
	struct brief *brief = find(handle);

	if (brief == NULL)
		return;
	if (brief->writer.pid != 0 || handle->filesystem->now_ms - brief->granted_ms > BRIEF_MS)
		brief_use(handle);
	else
		claim_text_ask(req, &brief->writer);
}

static void note(struct briefs *briefs, const char *path, const struct claim_details *writer,
		 int64_t now_ms)
{
	briefs->count++;
	free(briefs->path);
	briefs->path = strdup(path);
	briefs->writer = *writer;
	if (log_limit_passes(&briefs->told, now_ms, "brief", path, strlen(path), 0))
		log_warning("%s: process %d (%s) has made the file by an exclusive open and closed "
			    "it at once, which released the lock; if the file itself is to be the "
			    "lock, set style = file",
			    path, (int)writer->pid, writer->command);
}

void brief_close(struct handle *handle)
{
	const struct brief *brief = find(handle);
	const struct inode *inode = handle->inode;
	struct filesystem *filesystem = handle->filesystem;

	if (brief != NULL && brief->writer.pid != 0 && inode->parent != NULL && !handle->fenced &&
	    filesystem->now_ms - brief->granted_ms <= BRIEF_MS)
		note(&filesystem->briefs, inode->path, &brief->writer, filesystem->now_ms);
	brief_use(handle);
}
