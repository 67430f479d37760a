/* SPDX-License-Identifier: Apache-2.0
 *
 * What a claim says of its owner, for people who look into the queue: the claim's data, `key=value`
 * lines.
 */
#ifndef DLOCKFS_CLAIM_TEXT_H
#define DLOCKFS_CLAIM_TEXT_H

#include "filesystem.h"

#define CLAIM_TEXT_BYTES 512

/* Writes, each on a line of its own: format=1, host, pid (of the process, also if one of its
 * threads asks), uid, command (as /proc/PID/comm has it), kind (open, flock or record), mode
 * (exclusive or shared), since (seconds of the epoch on this host's clock; never compared). Bytes
 * that are not printable ASCII, and '%', are written as %XX in host and command. */
void claim_text_format(fuse_req_t req, enum lock_kind kind, enum claim_mode mode,
		       char text[CLAIM_TEXT_BYTES]);

/* The process that a thread of this host belongs to; `thread` itself if it has ended. Threads are
 * what the kernel names as the callers of everything but record locks. */
pid_t claim_text_process(pid_t thread);

#endif
