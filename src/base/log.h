/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages to the operator, one line each: in the foreground to stderr, or, if stderr leads to the
 * journal, to the journal with fields; in the background to the journal or to syslog(3).
 * What leads to the journal by stderr itself has its priority in front, <N> (sd-daemon(3)).
 *
 * Fields in the journal: MESSAGE, PRIORITY, SYSLOG_FACILITY, SYSLOG_IDENTIFIER, and our own
 * DLOCKFS_MOUNTPOINT, and DLOCKFS_LOCK for a message about a lock.
 *
 * Every function here may be called from any thread and leaves errno as it was.
 */
#ifndef DLOCKFS_BASE_LOG_H
#define DLOCKFS_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Sets the most detailed level that is written; LOG_LEVEL_INFO until then. */
void log_set_level(enum log_level most_detailed);

/* The mount point, for the field; copied. Called once, before other threads exist. */
void log_set_mountpoint(const char *mountpoint);

/* Whether stderr is a stream to the journal (JOURNAL_STREAM, systemd.exec(5)), which knows no
 * fields. */
bool log_stderr_is_journal(void);

/* From now on writes to the journal instead of stderr: for a process that runs on. The journal asks
 * the kernel which service a line is of. For a process that has ended by then it does not learn
 * that, except for what came by stderr, which is always the service's. Returns false, and changes
 * nothing, where there is no journal or the program was built without libsystemd. Called once,
 * before other threads exist.
 */
bool log_to_journal(void);

/* From now on writes to syslog(3) instead of stderr. Called once, before other threads exist. */
void log_to_syslog(void);

/* Writes one line; a longer one than 2 KiB is cut and ends in "...". `%m` stands for the message of
 * errno, as in syslog(3). What is not printable in the text (a lock's name may hold any byte) is
 * written as base/printable.h says. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes one line about a lock: "LOCK: text". */
void log_write_lock(enum log_level level, const char *lock, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Writes one line at once, whatever the level is and whoever holds messages; with more fields in
 * the journal, each "NAME=value". May block, as where the log leads to may. For log_queue.h. */
enum { LOG_FIELDS_MAX = 16 };
void log_write_fields(enum log_level level, const char *text, const char *const *fields,
		      size_t count);

/* From now on the messages of this thread are held, until as many calls of log_resume(). Then they
 * are written in their order, and those of this thread that come meanwhile behind them:
 * LOG_HELD_AT_ONCE by log_resume() and by each call of log_go_on(), which returns whether there are
 * more. A write may block, and urgent work must not wait for it. A message for which there is no
 * memory is written at once. */
enum { LOG_HELD_AT_ONCE = 256 };
void log_hold(void);
void log_resume(void);
bool log_go_on(void);

/* __extension__: %m is not of ISO C, and -Wpedantic says so at every use. */
#define log_error(...)	 (__extension__ log_write(LOG_LEVEL_ERROR, __VA_ARGS__))
#define log_warning(...) (__extension__ log_write(LOG_LEVEL_WARNING, __VA_ARGS__))
#define log_info(...)	 (__extension__ log_write(LOG_LEVEL_INFO, __VA_ARGS__))
#define log_debug(...)	 (__extension__ log_write(LOG_LEVEL_DEBUG, __VA_ARGS__))

#define log_lock_error(lock, ...) (__extension__ log_write_lock(LOG_LEVEL_ERROR, lock, __VA_ARGS__))
#define log_lock_warning(lock, ...)                                                                \
	(__extension__ log_write_lock(LOG_LEVEL_WARNING, lock, __VA_ARGS__))
#define log_lock_info(lock, ...) (__extension__ log_write_lock(LOG_LEVEL_INFO, lock, __VA_ARGS__))

#endif
