/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the path of a lock (bytes as the kernel hands them, components divided by '/') and the
 * path of its znode. One to one: bytes that ZooKeeper cannot store (PathUtils.validatePath) and
 * '%' itself are written as %XX with upper-case digits, everything else stays.
 *
 * Encoded: '%'; control characters 0x01-0x1f and 0x7f; bytes that are not part of valid UTF-8; the
 * characters U+0080-U+009F, U+D800-U+F8FF, U+FFF0-U+FFFF and everything beyond U+FFFF (the server
 * sees surrogates there), each byte by byte; the '.' of a component "." or ".."; the first
 * letter of "zookeeper" where that component would stand directly below the server's root.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_ZNODE_PATH_H
#define DLOCKFS_ZNODE_PATH_H

/* The znode of the lock `lock_path` ("backup", "a/b"; never empty, no leading, trailing or double
 * slash) below `root` ("" for the server's root, else "/dlockfs"; already valid, copied as it
 * is). Returns a string that the caller frees, or NULL when out of memory. */
char *znode_path_encode(const char *root, const char *lock_path);

/* The name or path that znode_path_encode() made `encoded` (without the root and the slash after
 * it) from, whatever the root was: both "zookeeper" and its encoded form are taken. Returns 0 and a
 * string that the caller frees in *ret_lock_path; -EINVAL if no name is ever encoded so; -ENOMEM.
 */
int znode_path_decode(const char *encoded, char **ret_lock_path);

#endif
