/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that a thread writes, for a caller who must never wait for the log: a line of each lock
 * that is granted or released is so much that the log may fall behind, and a log that hangs must
 * not make leases end. Messages that do not fit in are left out; a line tells how many.
 *
 * Any thread, and nothing here blocks but log_queue_flush(). The thread starts with the first
 * message.
 */
#ifndef DLOCKFS_BASE_LOG_QUEUE_H
#define DLOCKFS_BASE_LOG_QUEUE_H

#include <stddef.h>

/* So many messages, of so many bytes in all, wait at most. */
enum { LOG_QUEUE_MESSAGES = 16384, LOG_QUEUE_BYTES = 8 * 1024 * 1024 };

/* Writes one line of LOG_LEVEL_INFO, whatever the level is; and in the journal these fields too, up
 * to LOG_FIELDS_MAX. All is copied. */
void log_queue_write(const char *text, const char *const *fields, size_t count);

/* Waits until everything is written, but not for long; before that, writes what this thread has
 * held (log.h). To be called before the process ends, or becomes another program. */
void log_queue_flush(void);

#endif
