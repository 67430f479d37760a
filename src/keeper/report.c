/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/report.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void report(const char *format, ...)
{
	static const char start[] = "dlockfs-keeper: ";
	char line[1024] = "dlockfs-keeper: ";
	struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
	va_list values;

	va_start(values, format);
	vsnprintf(line + sizeof(start) - 1, sizeof(line) - sizeof(start), format, values);
	va_end(values);
	size_t length = 0;
	while (line[length] != '\0')
		length++;
	line[length++] = '\n';
	if (poll(&out, 1, 0) != 1)
		return;
	ssize_t written = write(STDERR_FILENO, line, length);
	(void)written;
}
