/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of lock files (stores/store.h: alter()). Such a file is one entry of the
 * store that ends with a session, and ZooKeeper has nothing below an entry that does. So all files
 * of a directory tree stand side by side, directly below its top, which is a directory for good;
 * and the queue of a lock on one of them stands beside it. Two slashes divide the top and the rest:
 *
 *     file    locked by    ZooKeeper                  etcd
 *     a//b                 <root>/a/b                 <root>/a/b
 *             a//b/        <root>/a/b%2F/<claim>      <root>/a/b/write/<claim>
 *     a//b/c               <root>/a/b%2Fc             <root>/a/b/c
 *     //b                  <root>/b                   <root>/b
 *
 * where b is a directory of this kind in the third line: an entry itself. No path from the kernel
 * has two slashes, or one at its end.
 *
 * A file that was renamed keeps the queue that it had, and all hard links have one: the queue's
 * path is that of the name by which the file was made.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_CLAIM_FILE_PATH_H
#define DLOCKFS_CLAIM_FILE_PATH_H

#include <stdbool.h>

/* The longest path of such a queue. */
#define FILE_QUEUE_BYTES_MAX (4095 + 2)

/* The path as the kernel has it: "a/b" for "a//b" and "a//b/"; other paths stay. To be freed; NULL:
 * out of memory. */
char *file_path_plain(const char *path);

/* Writes what file_path_plain() returns, which is no longer than the path, and a NUL. Returns where
 * the text ends. */
char *file_path_put_plain(char *to, const char *path);

/* Whether a path is that of the queue of such a file: "a//b/", "//b/". */
bool file_path_is_queue(const char *path);

#endif
