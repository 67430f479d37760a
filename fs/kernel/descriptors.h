/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process has open, by /proc. Does not look below the mount. Nothing here blocks.
 */
#ifndef DLOCKFS_KERNEL_DESCRIPTORS_H
#define DLOCKFS_KERNEL_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether the process has a file of that inode number (st_ino) open. Looks at `*looks` descriptors
 * at most, and takes off how many these were. True also where it cannot be told: there were more, a
 * kernel before 5.14 does not say, the process has ended, or another file system uses the same
 * number. */
bool descriptors_have(pid_t pid, uint64_t inode, size_t *looks);

/* The same, as this process itself may see it. */
bool descriptors_show(pid_t pid, uint64_t inode, size_t *looks);

/* Whether the process has a file of the file system with that device number open, wherever it is
 * mounted, or no longer is. The number is the minor one, as of file systems without a disk, such as
 * FUSE. True also where it cannot be told: this process may not see it, which takes CAP_SYS_PTRACE
 * and CAP_DAC_READ_SEARCH; the first thread has ended; or it has more than DESCRIPTORS_LOOKS
 * descriptors, because looking takes time. */
#define DESCRIPTORS_LOOKS 16384
bool descriptors_have_of(pid_t pid, unsigned int device);

#endif
