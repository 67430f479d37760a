/* SPDX-License-Identifier: Apache-2.0
 *
 * The time at which the holders of locks ought to have been told of a loss, in the file of the
 * journal: for whoever keeps the mount and the journal while there is no daemon, and no guard
 * (fs/kernel/notifier_process.h), which may have died with the daemon's container. It is not a part
 * of the state. It is the last word of the head (form.h), which earlier versions leave at 0.
 *
 * Any process; nothing blocks.
 */
#ifndef DLOCKFS_JOURNAL_DEADLINE_H
#define DLOCKFS_JOURNAL_DEADLINE_H

#include <stddef.h>
#include <stdint.h>

#define DEADLINE_OFFSET ((size_t)4096 - sizeof(int64_t))

/* By clock_now_ms(); 0: nothing is held, or the file is no journal. */
int64_t deadline_read(int descriptor);

#endif
