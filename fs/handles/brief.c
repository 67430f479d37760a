/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is known of brief exclusive opens. Loop thread only.
 */
#include "handles/brief.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/user.h"
#include "files/user_lines.h"
#include "handles/handle.h"

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
void brief_grant(struct handle *handle, const struct claim_details *maker)
{
	struct inode *inode = handle->inode;

	free(inode->brief);
	inode->brief = calloc(1, sizeof(*inode->brief));
	if (inode->brief == NULL)
		return;
	inode->brief->handle = handle;
	inode->brief->granted_ms = handle->filesystem->now_ms;
	inode->brief->process = *maker;
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
	if (brief->written || handle->filesystem->now_ms - brief->granted_ms > BRIEF_MS) {
		brief_use(handle);
		return;
	}
	brief->written = true;
	claim_text_ask(req, &brief->process);
}

static void note(struct handle *handle, const struct claim_details *process)
{
	struct filesystem *filesystem = handle->filesystem;
	struct briefs *briefs = filesystem->briefs;
	struct inode *inode = handle->inode;

	briefs->count++;
	free(briefs->path);
	briefs->path = strdup(inode->path);
	briefs->process = *process;
	if (inode->brief_told ||
	    !log_limit_passes(&briefs->told, filesystem->now_ms, "brief", inode->path,
			      strlen(inode->path), 0) ||
	    !user_lines_pass(filesystem, handle->user->uid, USER_LINES_EVENTS))
		return;
	inode->brief_told = true;
	log_warning("%s: process %d (%s) has made the file by an exclusive open and closed it at "
		    "once, which released the lock; if the file itself is to be the lock, set "
		    "style = file",
		    inode->path, (int)process->pid, process->command);
}

/* Whether it was closed at once. */
static bool is_brief(const struct handle *handle, const struct brief *brief)
{
	int64_t limit_ms = brief->written ? BRIEF_MS : BRIEF_EMPTY_MS;

	return brief->process.pid != 0 && handle->inode->parent != NULL && !handle->fenced &&
	       handle->filesystem->now_ms - brief->granted_ms <= limit_ms;
}

void brief_close(struct handle *handle)
{
	const struct brief *brief = find(handle);

	if (brief != NULL && is_brief(handle, brief))
		note(handle, &brief->process);
	brief_use(handle);
}
