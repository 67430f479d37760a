/* SPDX-License-Identifier: Apache-2.0
 *
 * What open files and directories in .dlockfs show. Loop thread only.
 */
#ifndef DLOCKFS_STATUS_CONTENT_H
#define DLOCKFS_STATUS_CONTENT_H

#include "files/inode.h"

struct status;

/* The text of an open file; of an open directory, for each name a letter (d, f, or ? for either),
 * the name and a NUL. */
struct status_content {
	UT_hash_handle hh; /* in status->contents, by number */
	uint64_t number;   /* the file handle that the kernel knows */
	struct user *user; /* has user_shares_of(bytes) of USER_FILES for the content */
	char *text;
	size_t bytes;
};

/* The content of an open file or directory; NULL: a process before this one has opened it. */
struct status_content *status_content_find(const struct status *status,
					   const struct fuse_file_info *info);

void status_content_close(struct filesystem *filesystem, struct status_content *content);

/* Frees the contents of all that is open. */
void status_content_close_all(struct filesystem *filesystem);

/* Answers OPEN or OPENDIR with the content, if the caller may have as many open files as the
 * content counts for. Takes the text; NULL: ENOMEM. */
void status_content_reply(fuse_req_t req, struct fuse_file_info *info, char *text, size_t bytes);

#endif
