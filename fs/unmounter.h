/* SPDX-License-Identifier: Apache-2.0
 *
 * With the mount option auto_unmount a process of libfuse's, fusermount3, waits for the end of the
 * daemon, and then unmounts what it finds dead.
 */
#ifndef DLOCKFS_UNMOUNTER_H
#define DLOCKFS_UNMOUNTER_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the descriptor is the end of a pair of sockets through which it learns that. libfuse
 * tells nobody its number. Any thread. */
bool unmounter_waits_for(int descriptor, pid_t daemon);

#endif
