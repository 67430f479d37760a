/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets that are kept in files of their own: users and passwords of ZooKeeper's "digest" scheme,
 * and other passwords.
 *
 * A secret lives in pages that are left out of core dumps and, where that is allowed, never written
 * to the swap; it is wiped when it is destroyed. No message contains a part of it.
 *
 * Any thread; one secret is not changed once it is read.
 */
#ifndef DLOCKFS_BASE_SECRET_H
#define DLOCKFS_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Of a whole file. */
#define SECRET_BYTES_MAX 2048

enum secret_form {
	SECRET_DIGEST,	/* lines "user:password" */
	SECRET_PASSWORD /* one line */
};

struct secret;

/* Whether the file may hold a secret: a regular file that belongs to root or to the user who runs
 * the program, with a mode that gives other users nothing. Blocks. Returns 0; or -errno and in
 * `why` one line "file: what, expected what". */
int secret_check_file(const char *file, char *why, size_t why_bytes);

/* Reads a file that secret_check_file() accepts; each line must be as the form says, without
 * control characters, the last with or without a newline. Blocks. Returns 0 and *ret, for
 * secret_destroy(); or -errno and in `why` one line as there, or "file:line: ...". */
int secret_read(const char *file, enum secret_form form, struct secret **ret, char *why,
		size_t why_bytes);

/* Makes a secret of these bytes, a password that stands elsewhere than in a file. Returns 0 and
 * *ret, for secret_destroy(); or -ENOMEM, or -EINVAL: it is empty, too long or has control
 * characters. */
int secret_make(const char *password, size_t bytes, struct secret **ret);

/* Returns NULL when out of memory, or if `secret` is NULL. */
struct secret *secret_copy(const struct secret *secret);

/* Keeps the secret from the swap in a child of fork(2) too, which does not inherit locked memory.
 * NULL is fine. */
void secret_lock(const struct secret *secret);

/* The line after `line`, the first one after NULL; NULL after the last. They live as long as the
 * secret. */
const char *secret_next(const struct secret *secret, const char *line);

/* Whether both have the same lines. Either may be NULL. */
bool secret_equal(const struct secret *a, const struct secret *b);

/* Wipes and frees the secret. NULL is fine. */
void secret_destroy(struct secret *secret);

#endif
