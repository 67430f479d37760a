/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

size_t proc_read(pid_t pid, const char *file, char *text, size_t text_bytes)
{
	char path[64];
	ssize_t bytes = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	int descriptor = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (descriptor >= 0) {
		bytes = read(descriptor, text, text_bytes - 1);
		close(descriptor);
	}
	text[bytes > 0 ? bytes : 0] = '\0';
	return bytes > 0 ? (size_t)bytes : 0;
}
