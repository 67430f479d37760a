/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the level and the place that messages go to. Must not allocate, lock or touch errno.
 * Any thread; each message is one write(2) or one syslog(3), so that lines never mix.
 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define TEXT_BYTES    2048 /* of a message before escaping; what is longer is cut */
#define ESCAPED_BYTES 4	   /* of "\xNN" */
#define PREFIX_BYTES  32
#define CUT_MARK      "..."

static const struct {
	int priority;
	const char *prefix;
} levels[] = {
	[LOG_LEVEL_ERROR] = {LOG_ERR, "dlockfs: error: "},
	[LOG_LEVEL_WARNING] = {LOG_WARNING, "dlockfs: warning: "},
	[LOG_LEVEL_INFO] = {LOG_INFO, "dlockfs: "},
	[LOG_LEVEL_DEBUG] = {LOG_DEBUG, "dlockfs: "},
};

static atomic_int level_limit = LOG_LEVEL_INFO;
static atomic_bool use_syslog;

void log_set_level(enum log_level most_detailed)
{
	level_limit = (int)most_detailed;
}

void log_to_syslog(void)
{
	int saved_errno = errno;

	openlog("dlockfs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	use_syslog = true;
	errno = saved_errno;
}

/* Appends `text` to `line` with its control characters escaped; returns the end. */
static char *append_escaped(char *line, const char *text)
{
	static const char hex[] = "0123456789abcdef";

	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte >= 0x20 && byte != 0x7f) {
			*line++ = (char)byte;
			continue;
		}
		*line++ = '\\';
		*line++ = 'x';
		*line++ = hex[byte >> 4];
		*line++ = hex[byte & 15];
	}
	*line = '\0';
	return line;
}

void log_write(enum log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char text[TEXT_BYTES];
	char line[PREFIX_BYTES + ESCAPED_BYTES * TEXT_BYTES + 1];
	char *end = line;
	va_list arguments;
	int length;

	if ((int)level > level_limit)
		return;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length < 0)
		strcpy(text, "a message that could not be formatted");
	else if ((size_t)length >= sizeof(text))
		strcpy(text + sizeof(text) - sizeof(CUT_MARK), CUT_MARK);

	if (use_syslog) {
		append_escaped(line, text);
		syslog(levels[level].priority, "%s", line);
	} else {
		end = stpcpy(end, levels[level].prefix);
		end = append_escaped(end, text);
		*end++ = '\n';
		/* There is nobody to tell that stderr does not work. */
		ssize_t ignored = write(STDERR_FILENO, line, (size_t)(end - line));

		(void)ignored;
	}
	errno = saved_errno;
}
