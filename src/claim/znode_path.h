/* SPDX-License-Identifier: Apache-2.0
 *
 * Translates between the path of a lock (bytes as the kernel passes them, components divided by
 * '/') and the path of its znode, one to one: bytes that ZooKeeper cannot store
 * (PathUtils.validatePath) and '%' itself are written as %XX with upper-case digits, everything
 * else stays.
 *
 * Encoded: '%'; control characters 0x01-0x1f and 0x7f; bytes that are not part of valid UTF-8; the
 * characters U+0080-U+009F, U+D800-U+F8FF, U+FFF0-U+FFFF and everything beyond U+FFFF (the server
 * sees surrogates there), each byte by byte; the '.' of a component "." or ".."; the first
 * letter of "zookeeper" where that component would stand directly below the server's root; the last
 * digit of a component that would read as a claim of the lock above it (name.h): "job-1200000000"
 * is "job-120000000%30"; and the first character of one that begins as the markers of claims do
 * (marker.h).
 *
 * Behind two slashes a path is one component, in which '/' is encoded, too: see file_path.h.
 *
 * Pure functions: no I/O, any thread.
 */
#ifndef DLOCKFS_CLAIM_ZNODE_PATH_H
#define DLOCKFS_CLAIM_ZNODE_PATH_H

#include <stdbool.h>

/* The znode of the lock `lock_path` ("backup", "a/b"; never empty, no leading, trailing or double
 * slash, but for those of file_path.h) below `root` ("" for the server's root, else "/dlockfs";
 * already valid, copied as it is). Returns a string that the caller frees, or NULL when out of
 * memory. */
char *znode_path_encode(const char *root, const char *lock_path);

/* The reverse of znode_path_encode(): `encoded` is a name or path without the root and the slash
 * after it. As the root is not known, both "zookeeper" and its encoded form are accepted. Returns 0
 * and a string that the caller frees in *ret_lock_path; -EINVAL if no name is ever encoded so;
 * -ENOMEM. */
int znode_path_decode(const char *encoded, char **ret_lock_path);

/* The same for a component that stands directly below a directory of files: *ret_file is what
 * follows the two slashes. */
int znode_path_decode_file(const char *encoded, char **ret_file);

/* Whether ZooKeeper takes each component of the root ("/dlockfs", "/a/b") as it is. */
bool znode_path_is_root(const char *root);

#endif
