/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of processes in /proc (proc(5)).
 */
#ifndef DLOCKFS_KERNEL_PROC_H
#define DLOCKFS_KERNEL_PROC_H

#include <stddef.h>
#include <sys/types.h>

/* Reads the beginning of a file of the process, "stat" or "fdinfo/9", as text that ends in a zero.
 * Returns how many bytes there are; 0 if the file cannot be read, as after the process's end. */
size_t proc_read(pid_t pid, const char *file, char *text, size_t text_bytes);

#endif
