/* SPDX-License-Identifier: Apache-2.0
 *
 * What a claim's data says of the caller, for people who look at the queue: `key=value` lines.
 */
#ifndef DLOCKFS_FILES_CLAIM_TEXT_H
#define DLOCKFS_FILES_CLAIM_TEXT_H

#include <fuse_lowlevel.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/engine.h"
#include "journal/text.h"

/* What the engine keeps of a caller who asks for a lock, beside its thread and user. */
struct claim_details {
	uint32_t since_s; /* of the epoch on this host's clock, until 2106; never compared */
	pid_t pid;	  /* the process, also if one of its threads asks */
	char command[16]; /* as /proc/PID/comm has it, which is no longer, without its newline */
};

/* How long the name of a process is known, once it was read: reading it costs more than the rest of
 * a call that needs no server. It is text for people. For so long, a process that has changed its
 * name (exec(2), prctl(2)) may be shown by the one before; as may another one, where the numbers of
 * processes come round as fast. */
#define CLAIM_TEXT_KNOWN_MS 1000

/* Reads the details of the thread's process from /proc, unless they are known. */
void claim_text_of(pid_t thread, int64_t now_ms, struct claim_details *ret);

/* The same for the process that has made the request. */
void claim_text_ask(fuse_req_t req, struct claim_details *ret);

/* Writes, each on a line of its own: format=1, host, pid, uid, command, kind (open, flock or
 * record), mode (exclusive or shared), since, and peer unless that is NULL. Bytes that are not
 * printable ASCII, and '%', are written as %XX in host and command. */
void claim_text_format(const char *host, const char *peer, const struct engine_caller *caller,
		       enum lock_kind kind, enum claim_mode mode, char text[ENGINE_TEXT_BYTES]);

/* The details as keys of a line, for another process (engine/transfer.h). */
void claim_text_save(FILE *out, const struct claim_details *details);
void claim_text_restore(struct state_reader *in, struct claim_details *ret);

/* The command of a process, as struct claim_details has it; "" if the process has ended. */
void claim_text_command(pid_t process, char command[16]);

/* The process that a thread of this host belongs to; `thread` itself if the thread has ended. The
 * kernel gives the thread as the caller of every request but those for record locks. */
pid_t claim_text_process(pid_t thread);

#endif
