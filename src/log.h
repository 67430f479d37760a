/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages to the operator, one line each: to stderr in the foreground, to
 * syslog(3) (and so to the journal) in the background.
 *
 * Every function here may be called from any thread and leaves errno as it was.
 */
#ifndef DLOCKFS_LOG_H
#define DLOCKFS_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Sets the most detailed level that is written; LOG_LEVEL_INFO until then. */
void log_set_level(enum log_level most_detailed);

/* From now on writes to syslog(3) instead of stderr. Called once, before other threads exist. */
void log_to_syslog(void);

/* Writes one line; a longer one than 2 KiB is cut and ends in "...". `%m` stands for the message of
 * errno, as in syslog(3). Control characters in the text (a lock's name may hold any byte) are
 * written as \xNN. */
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* __extension__: %m is not of ISO C, and -Wpedantic says so at every use. */
#define log_error(...)	 (__extension__ log_write(LOG_LEVEL_ERROR, __VA_ARGS__))
#define log_warning(...) (__extension__ log_write(LOG_LEVEL_WARNING, __VA_ARGS__))
#define log_info(...)	 (__extension__ log_write(LOG_LEVEL_INFO, __VA_ARGS__))
#define log_debug(...)	 (__extension__ log_write(LOG_LEVEL_DEBUG, __VA_ARGS__))

#endif
