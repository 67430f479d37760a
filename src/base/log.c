/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the level and the destination of messages. Must not lock or touch errno, nor allocate but
 * for messages that are held. Any thread; each message is one write(2), one syslog(3) or one
 * datagram to the journal, so that lines never mix.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#include "base/printable.h"

#if HAVE_LIBSYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION /* every message would be from the same line */
#include <systemd/sd-journal.h>
#endif

#define TEXT_BYTES   2048 /* of a message before escaping; a longer one is cut */
#define PREFIX_BYTES 32
#define CUT_MARK     "..."

#define JOURNAL_SOCKET	 "/run/systemd/journal/socket"
#define MOUNTPOINT_FIELD "DLOCKFS_MOUNTPOINT="
#define LOCK_FIELD	 "DLOCKFS_LOCK="
#define LOCK_BYTES_MAX	 4096

static const struct {
	int priority;
	const char *prefix;
} levels[] = {
	[LOG_LEVEL_ERROR] = {LOG_ERR, "dlockfs: error: "},
	[LOG_LEVEL_WARNING] = {LOG_WARNING, "dlockfs: warning: "},
	[LOG_LEVEL_INFO] = {LOG_INFO, "dlockfs: "},
	[LOG_LEVEL_DEBUG] = {LOG_DEBUG, "dlockfs: "},
};

struct held_message {
	struct held_message *next;
	enum log_level level;
	bool has_lock;
	size_t text_bytes; /* with its NUL; the lock stands behind it */
	char text[];
};

static _Thread_local struct {
	unsigned int depth;
	struct held_message *first, *last;
} held;

static atomic_int level_limit = LOG_LEVEL_INFO;
static atomic_bool use_syslog, use_journal;
static char mountpoint_field[sizeof(MOUNTPOINT_FIELD) + PATH_MAX];

void log_set_level(enum log_level most_detailed)
{
	level_limit = (int)most_detailed;
}

void log_set_mountpoint(const char *mountpoint)
{
	snprintf(mountpoint_field, sizeof(mountpoint_field), MOUNTPOINT_FIELD "%s", mountpoint);
}

bool log_stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM"); /* device:inode */
	uintmax_t device, inode;
	struct stat attr;

	return stream != NULL && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &attr) == 0 && attr.st_dev == device && attr.st_ino == inode;
}

bool log_to_journal(void)
{
#if HAVE_LIBSYSTEMD
	use_journal = access(JOURNAL_SOCKET, W_OK) == 0;
#endif
	return use_journal;
}

void log_to_syslog(void)
{
	int saved_errno = errno;

	openlog("dlockfs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	use_syslog = true;
	errno = saved_errno;
}

#if HAVE_LIBSYSTEMD
static void send_to_journal(enum log_level level, const char *lock, char *line,
			    const char *const *more, size_t more_count)
{
	char message[sizeof("MESSAGE=") + PRINTABLE_BYTES_MAX * TEXT_BYTES];
	char priority[] = {'P', 'R', 'I', 'O', 'R',
			   'I', 'T', 'Y', '=', (char)('0' + levels[level].priority),
			   '\0'};
	char facility[] = "SYSLOG_FACILITY=3"; /* daemon */
	char identifier[] = "SYSLOG_IDENTIFIER=dlockfs";
	char lock_field[sizeof(LOCK_FIELD) + LOCK_BYTES_MAX];
	struct iovec fields[6 + LOG_FIELDS_MAX];
	int count = 0;

	strcpy(stpcpy(message, "MESSAGE="), line);
	snprintf(lock_field, sizeof(lock_field), LOCK_FIELD "%s", lock != NULL ? lock : "");
	char *texts[] = {message,    priority,	       facility,
			 identifier, mountpoint_field, lock != NULL ? lock_field : ""};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i][0] != '\0')
			fields[count++] = (struct iovec){texts[i], strlen(texts[i])};
	}
	for (size_t i = 0; i < more_count && i < LOG_FIELDS_MAX; i++)
		fields[count++] = (struct iovec){(char *)more[i], strlen(more[i])};
	sd_journal_sendv(fields, count);
}
#endif

/* Writes the message to the present destination, with more fields for the journal. */
static void emit_fields(enum log_level level, const char *lock, const char *text,
			const char *const *fields, size_t count)
{
	char line[PREFIX_BYTES + PRINTABLE_BYTES_MAX * TEXT_BYTES + 1];
	char *end = line;

	(void)lock; /* for the journal alone, as are the fields */
	(void)fields;
	(void)count;
	if (use_syslog) {
		printable_append(line, text);
		syslog(levels[level].priority, "%s", line);
#if HAVE_LIBSYSTEMD
	} else if (use_journal) {
		printable_append(line, text);
		send_to_journal(level, lock, line, fields, count);
#endif
	} else {
		if (log_stderr_is_journal())
			end += snprintf(end, PREFIX_BYTES, "<%d>", levels[level].priority);
		else
			end = stpcpy(end, levels[level].prefix);
		end = printable_append(end, text);
		*end++ = '\n';
		/* There is nobody to tell that stderr does not work. */
		ssize_t ignored = write(STDERR_FILENO, line, (size_t)(end - line));

		(void)ignored;
	}
}

static void emit(enum log_level level, const char *lock, const char *text)
{
	emit_fields(level, lock, text, NULL, 0);
}

static bool hold(enum log_level level, const char *lock, const char *text)
{
	size_t text_bytes = strlen(text) + 1, lock_bytes = lock != NULL ? strlen(lock) + 1 : 0;
	struct held_message *message = malloc(sizeof(*message) + text_bytes + lock_bytes);

	if (message == NULL)
		return false;
	*message = (struct held_message){
		.level = level, .has_lock = lock != NULL, .text_bytes = text_bytes};
	memcpy(message->text, text, text_bytes);
	if (lock != NULL)
		memcpy(message->text + text_bytes, lock, lock_bytes);
	if (held.last != NULL)
		held.last->next = message;
	else
		held.first = message;
	held.last = message;
	return true;
}

void log_hold(void)
{
	held.depth++;
}

bool log_go_on(void)
{
	int saved_errno = errno;

	for (int i = 0; i < LOG_HELD_AT_ONCE && held.depth == 0 && held.first != NULL; i++) {
		struct held_message *message = held.first;
		held.first = message->next;
		emit(message->level, message->has_lock ? message->text + message->text_bytes : NULL,
		     message->text);
		free(message);
	}
	if (held.first == NULL)
		held.last = NULL;
	errno = saved_errno;
	return held.first != NULL;
}

void log_resume(void)
{
	held.depth--;
	log_go_on();
}

static void write_message(enum log_level level, const char *lock, const char *format,
			  va_list arguments)
{
	int saved_errno = errno, length = 0, rest = 0;
	char text[TEXT_BYTES];

	if ((int)level > level_limit)
		return;

	if (lock != NULL)
		length = snprintf(text, sizeof(text), "%s: ", lock);
	errno = saved_errno;
	if ((size_t)length < sizeof(text))
		rest = vsnprintf(text + length, sizeof(text) - (size_t)length, format, arguments);
	if (rest < 0)
		strcpy(text, "a message that could not be formatted");
	else if ((size_t)length + (size_t)rest >= sizeof(text))
		strcpy(text + sizeof(text) - sizeof(CUT_MARK), CUT_MARK);
	if ((held.depth == 0 && held.first == NULL) || !hold(level, lock, text))
		emit(level, lock, text);
	errno = saved_errno;
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_message(level, NULL, format, arguments);
	va_end(arguments);
}

void log_write_lock(enum log_level level, const char *lock, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_message(level, lock, format, arguments);
	va_end(arguments);
}

void log_write_fields(enum log_level level, const char *text, const char *const *fields,
		      size_t count)
{
	int saved_errno = errno;
	char cut[TEXT_BYTES];

	if ((size_t)snprintf(cut, sizeof(cut), "%s", text) >= sizeof(cut))
		strcpy(cut + sizeof(cut) - sizeof(CUT_MARK), CUT_MARK);
	emit_fields(level, NULL, cut, fields, count);
	errno = saved_errno;
}
