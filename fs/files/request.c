/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what is known of the request that is being handled. Loop thread only.
 */
#include "files/request.h"

#include <linux/fuse.h>
#include <string.h>

#include "files/filesystem.h"
#include "files/looked.h"

void request_handle(struct filesystem *filesystem, const struct fuse_buf *buffer)
{
	struct requests *requests = filesystem->requests;
	struct fuse_in_header header;

	if ((buffer->flags & FUSE_BUF_IS_FD) == 0) {
		requests->handled = buffer->mem;
		requests->handled_bytes = buffer->size;
	}
	if ((buffer->flags & FUSE_BUF_IS_FD) == 0 && buffer->size >= sizeof(header)) {
		memcpy(&header, buffer->mem, sizeof(header));
		looked_pass(filesystem, &header);
	}
	fuse_session_process_buf(filesystem->session, buffer);
	requests->handled = NULL;
	requests->pass = (struct request_pass){0};
}
