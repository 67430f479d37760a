/* SPDX-License-Identifier: Apache-2.0
 *
 * What open files and directories in .dlockfs show. Loop thread only.
 */
#include "status/content.h"

#include <errno.h>
#include <stdlib.h>

#include "files/filesystem.h"
#include "files/user.h"
#include "handles/handle.h"
#include "status/status.h"

struct status_content *status_content_find(const struct status *status,
					   const struct fuse_file_info *info)
{
	struct status_content *content;
	uint64_t number = info->fh;
	HASH_FIND(hh, status->contents, &number, sizeof(number), content);
	return content;
}

void status_content_close(struct filesystem *filesystem, struct status_content *content)
{
	HASH_DEL(filesystem->status->contents, content);
	user_leave(filesystem->users, content->user, USER_FILES, user_shares_of(content->bytes));
	free(content->text);
	free(content);
}

void status_content_reply(fuse_req_t req, struct fuse_file_info *info, char *text, size_t bytes)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct status *status = filesystem->status;
	uid_t uid = fuse_req_ctx(req)->uid;
	size_t shares = user_shares_of(bytes);
	int error = text != NULL ? user_check(filesystem, uid, USER_FILES, shares) : -ENOMEM;
	struct status_content *content = NULL;

	if (error != 0) {
		free(text);
		fuse_reply_err(req, -error);
		return;
	}
	content = calloc(1, sizeof(*content));
	if (content != NULL)
		content->user = user_add(filesystem->users, uid, USER_FILES, shares);
	if (content == NULL || content->user == NULL) {
		free(text);
		free(content);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	content->text = text;
	content->bytes = bytes;
	content->number = ++filesystem->handles->last_number;
	HASH_ADD(hh, status->contents, number, sizeof(content->number), content);
	if (content->hh.tbl == NULL) {
		user_leave(filesystem->users, content->user, USER_FILES,
			   user_shares_of(content->bytes));
		free(text);
		free(content);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	info->fh = content->number;
	info->direct_io = 1; /* the kernel does not know the content's length */
	if (fuse_reply_open(req, info) == -ENOENT)
		status_content_close(filesystem,
				     content); /* the caller was killed; no RELEASE will come */
}

void status_content_close_all(struct filesystem *filesystem)
{
	struct status *status = filesystem->status;

	while (status != NULL && status->contents != NULL)
		status_content_close(filesystem, status->contents);
}
