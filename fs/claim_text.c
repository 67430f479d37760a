/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads /proc, which does not block. Loop thread only.
 */
#include "claim_text.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void escape(const char *from, char *to, size_t to_bytes)
{
	size_t used = 0;
	for (; *from != '\0' && used + 4 <= to_bytes; from++) {
		unsigned char byte = (unsigned char)*from;
		if (byte > ' ' && byte < 0x7f && byte != '%')
			to[used++] = (char)byte;
		else
			used += (size_t)snprintf(to + used, 4, "%%%02X", byte);
	}
	to[used] = '\0';
}

static void read_command(pid_t pid, char *command, size_t bytes)
{
	char path[32];
	ssize_t got = -1;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		got = read(fd, command, bytes - 1);
		close(fd);
	}
	if (got > 0 && command[got - 1] == '\n')
		got--;
	command[got > 0 ? got : 0] = '\0';
}

void claim_text_format(fuse_req_t req, enum lock_kind kind, enum claim_mode mode,
		       char text[CLAIM_TEXT_BYTES])
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	char command[64], safe_command[64 * 3], safe_host[65 * 3];

	read_command(caller->pid, command, sizeof(command));
	escape(command, safe_command, sizeof(safe_command));
	escape(filesystem_of(req)->host, safe_host, sizeof(safe_host));
	snprintf(text, CLAIM_TEXT_BYTES,
		 "format=1\nhost=%s\npid=%d\nuid=%u\ncommand=%s\nkind=%s\nmode=%s\nsince=%lld\n",
		 safe_host, (int)caller->pid, (unsigned int)caller->uid, safe_command,
		 kind == LOCK_KIND_OPEN ? "open" : "flock",
		 mode == CLAIM_EXCLUSIVE ? "exclusive" : "shared", (long long)time(NULL));
}
