/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is known of the request that is being handled. Loop thread only.
 */
#include "files/request.h"

#include <fuse_lowlevel.h>

#include "files/filesystem.h"
#include "files/looked.h"

void request_handle(struct filesystem *filesystem, const struct fuse_buf *buffer)
{
	struct requests *requests = filesystem->requests;

	if ((buffer->flags & FUSE_BUF_IS_FD) == 0) {
		requests->handled = buffer->mem;
		requests->handled_bytes = buffer->size;
	}
	if (requests->handled != NULL && buffer->size >= sizeof(struct fuse_in_header)) {
		struct fuse_in_header header = request_header(buffer->mem);
		looked_pass(filesystem, &header);
	}
	fuse_session_process_buf(filesystem->session, buffer);
	requests->handled = NULL;
	requests->pass = (struct request_pass){0};
}
