/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of the kernel: what is in one at most.
 */
#ifndef DLOCKFS_KERNEL_REQUEST_H
#define DLOCKFS_KERNEL_REQUEST_H

#include <stddef.h>

#define NAME_BYTES_MAX 255 /* as on any Linux file system */

/* What libfuse reads at once at most. */
#define REQUEST_BYTES_MAX ((size_t)(256 * 4096 + 4096))

#endif
