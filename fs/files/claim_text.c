/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc, which does not block. Loop thread only.
 */
#include "files/claim_text.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/platform.h"
#include "files/filesystem.h"
#include "journal/fields.h"
#include "kernel/proc.h"

#define ASKERS 256 /* of 40 bytes */

/* The first thread of a process is in the thread group of its own number; for any other thread
 * tgkill(2) fails. This costs a tenth of reading a file in /proc. */
static bool is_process(pid_t thread)
{
	return tgkill(thread, thread, 0) == 0 || errno != ESRCH;
}

pid_t claim_text_process(pid_t thread)
{
	static const char field[] = "\nTgid:\t"; /* a newline in the command is escaped */
	char status[512];

	if (is_process(thread))
		return thread;
	proc_read(thread, "status", status, sizeof(status));
	const char *found = strstr(status, field);
	return found != NULL ? (pid_t)strtol(found + strlen(field), NULL, 10) : thread;
}

void claim_text_command(pid_t process, char command[16])
{
	proc_read(process, "comm", command, 16);
	command[strcspn(command, "\n")] = '\0';
}

/* Threads that have asked a short while ago. */
static struct asker {
	pid_t thread;
	int64_t until_ms;
	struct claim_details details;
} askers[ASKERS];

void claim_text_of(pid_t thread, int64_t now_ms, struct claim_details *ret)
{
	struct asker *asker = &askers[(unsigned int)thread % ASKERS];

	if (asker->thread != thread || asker->until_ms <= now_ms) {
		asker->thread = thread;
		asker->until_ms = now_ms + CLAIM_TEXT_KNOWN_MS;
		asker->details.pid = claim_text_process(thread);
		claim_text_command(asker->details.pid, asker->details.command);
	}
	*ret = asker->details;
	ret->since_s = (uint32_t)time(NULL);
}

void claim_text_ask(fuse_req_t req, struct claim_details *ret)
{
	claim_text_of(fuse_req_ctx(req)->pid, filesystem_of(req)->now_ms, ret);
}

void claim_text_format(const char *host, const char *peer, const struct engine_caller *caller,
		       enum lock_kind kind, enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	static const char *const kinds[] = {
		[LOCK_KIND_OPEN] = "open",
		[LOCK_KIND_FLOCK] = "flock",
		[LOCK_KIND_RECORD] = "record",
	};
	const struct claim_details *details = caller->details;
	char command[sizeof(details->command) * 3], shown_host[HOST_NAME_MAX * 3 + 1];

	escape_format(command, sizeof(command), details->command);
	escape_format(shown_host, sizeof(shown_host), host);
	snprintf(text, ENGINE_TEXT_BYTES,
		 "format=1\nhost=%s\npid=%d\nuid=%u\ncommand=%s\nkind=%s\nmode=%s\nsince=%lld\n"
		 "%s%s%s",
		 shown_host, (int)details->pid, (unsigned int)caller->uid, command, kinds[kind],
		 mode == CLAIM_EXCLUSIVE ? "exclusive" : "shared", (long long)details->since_s,
		 peer != NULL ? "peer=" : "", peer != NULL ? peer : "", peer != NULL ? "\n" : "");
}

static const struct field fields[] = {
	{"asker_pid", FIELD_NUMBER(struct claim_details, pid, INT32_MIN, INT32_MAX)},
	{"asker_since", FIELD_UNSIGNED(struct claim_details, since_s, UINT32_MAX)},
	{"asker_command", FIELD_CHARS(struct claim_details, command)},
	{0},
};

void claim_text_save(FILE *out, const struct claim_details *details)
{
	fields_save(fields, details, out);
}

void claim_text_restore(struct state_reader *in, struct claim_details *ret)
{
	fields_restore(fields, ret, in);
}
