/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps no state. What /proc shows of ids is as in this process's user namespace.
 */
#include "kernel/kill_right.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "kernel/proc.h"

static bool read_link(const char *path, char *text, size_t text_bytes)
{
	ssize_t bytes = readlink(path, text, text_bytes - 1);

	text[bytes > 0 ? bytes : 0] = '\0';
	return bytes > 0;
}

/* Whether the process is in another user namespace than this one, in which the user is 0. Then the
 * second number of a line is as here (user_namespaces(7)). */
static bool is_root_there(uid_t user, pid_t pid)
{
	char path[64], own[64], other[64], map[4096];
	uint32_t inside, outside, count;
	int length;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (!read_link("/proc/self/ns/user", own, sizeof(own)) ||
	    !read_link(path, other, sizeof(other)) || strcmp(own, other) == 0 ||
	    proc_read(pid, "uid_map", map, sizeof(map)) == 0)
		return false;
	for (const char *at = map; sscanf(at, "%" SCNu32 "%" SCNu32 "%" SCNu32 "%n", &inside,
					  &outside, &count, &length) == 3;
	     at += length) {
		if (inside == 0)
			return outside == user;
	}
	return false;
}

bool kill_right_has(uid_t user, pid_t pid)
{
	uint32_t real, effective, saved;
	char text[2048];

	if (user == 0)
		return true;
	if (proc_read(pid, "status", text, sizeof(text)) == 0)
		return false;
	const char *ids = strstr(text, "\nUid:");
	if (ids == NULL ||
	    sscanf(ids, "\nUid: %" SCNu32 "%" SCNu32 "%" SCNu32, &real, &effective, &saved) != 3)
		return false;
	return user == real || user == saved || is_root_there(user, pid);
}

int kill_right_send(uid_t user, int pidfd, pid_t pid, int number)
{
	bool may = kill_right_has(user, pid);

	if (pidfd_send_signal(pidfd, may ? number : 0, NULL, 0) < 0)
		return -errno;
	return may ? 0 : -EPERM;
}
