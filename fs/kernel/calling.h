/* SPDX-License-Identifier: Apache-2.0
 *
 * Which system call a thread waits in. A LOOKUP does not say what it is for. But an exclusive open
 * has to be told from the calls that only want to know whether a name is free; and where a name may
 * be gone on another host, these have to be told from calls that go on with what they have found.
 * Where the call is not known, a name in use may be hidden until it is opened again, and a call may
 * cost a read more (etc/doc/semantics.md): no lock is affected.
 */
#ifndef DLOCKFS_KERNEL_CALLING_H
#define DLOCKFS_KERNEL_CALLING_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the thread, whose request is not answered yet, is in a call that makes a name or gives a
 * file another one, and opens nothing: mkdir(2), link(2), symlink(2), mknod(2), rename(2) and the
 * like. False if that cannot be known: without CAP_SYS_PTRACE, as a rule. Not to be called before
 * Linux 5.11. Blocks for some milliseconds at most, while the thread is on its way to sleep. */
bool calling_makes_name(pid_t thread);

/* Whether the call that the thread is in sends another request if it finds the name, about what it
 * has found, or to remove it: stat(2), unlink(2), an open(2) that is not exclusive, and the like.
 * False if that cannot be known, as above. */
bool calling_goes_on(pid_t thread);

/* What kind of call the thread is in, as this process itself may see it. */
enum calling { CALLING_OTHER, CALLING_MAKES_NAME, CALLING_GOES_ON }; /* OTHER: or unknown */
enum calling calling_read(pid_t thread);

#endif
