/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the kernel, as they come: the one that is being handled. Loop thread only; nothing
 * blocks.
 */
#ifndef DLOCKFS_FILES_REQUEST_H
#define DLOCKFS_FILES_REQUEST_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct filesystem;
struct fuse_buf;
struct kept_request;

/* What a request that is put aside, and then handled from the beginning (ops/held.h), need not wait
 * for once more. */
struct request_pass {
	uint64_t late_serial; /* the request has waited for these texts (ops/late.h); 0: for none */
	bool has_paid; /* the request counts among the writes of its user (files/user_writes.h) */
};

struct requests {
	const void *handled;	  /* the one that is being handled, as it was read; NULL: unknown */
	size_t handled_bytes;	  /* of that */
	struct request_pass pass; /* of the one that is being handled */
	struct kept_request *kept;	    /* files/kept_request.h */
	uint64_t last_serial;		    /* of these, for their places in the journal */
	const struct kept_request *resumed; /* the one that is being handled again */
	unsigned int max_write; /* as was agreed on with the kernel; 0: nothing was yet */
};

/* The header of a request, which has at least as many bytes. */
static inline struct fuse_in_header request_header(const void *request)
{
	struct fuse_in_header header;
	memcpy(&header, request, sizeof(header));
	return header;
}

/* Handles a request of the kernel. */
void request_handle(struct filesystem *filesystem, const struct fuse_buf *buffer);

#endif
