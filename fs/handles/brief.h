/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds programs that take a lock file itself for the lock: they make the file by an exclusive
 * open, perhaps write their process id, close the file, and remove it when they are done. Here the
 * lock ends at that close; such programs need `style = file`.
 *
 * Which these are is a guess. An exclusive open counts as brief if the name was still there when it
 * was closed, and that was within BRIEF_MS of the grant, when one write and nothing else was made
 * through it; or within BRIEF_EMPTY_MS, when nothing was. Programs that hold an exclusive open hold
 * it longer, as a rule. Those that do not are told once for each file, as long as its name stays.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_BRIEF_H
#define DLOCKFS_HANDLES_BRIEF_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log_limit.h"
#include "files/claim_text.h"

#define BRIEF_MS       100
#define BRIEF_EMPTY_MS 20

struct handle;

/* What is known of one that may become brief: the last that was granted of its inode. */
struct brief {
	const struct handle *handle;
	int64_t granted_ms;
	bool written;
	struct claim_details process; /* that wrote, or that made the file; pid 0: not known */
};

/* Those that have been brief. All zero at first. */
struct briefs {
	uint64_t count;
	char *path; /* of the last one; NULL: there was none, or out of memory */
	struct claim_details process;
	struct log_limit told;
};

void briefs_finish(struct briefs *briefs);

/* The exclusive open of `maker` has the lock. */
void brief_grant(struct handle *handle, const struct claim_details *maker);

/* The request writes through the handle. */
void brief_write(struct handle *handle, fuse_req_t req);

/* Something else is done through the handle. */
void brief_use(struct handle *handle);

/* The handle is about to be closed. */
void brief_close(struct handle *handle);

#endif
