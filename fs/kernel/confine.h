/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes from the process the rights that it does not need once its mount is made. The process
 * parses what servers say: an attacker who finds a fault there may do all that the process may do.
 *
 *   the user        root becomes another one, and a warden (kernel/warden.h) does for it what takes
 *                   root's rights; or it stays root, as the warden does
 *   capabilities    none; or, of root, those that unmounting, signals, the folder below the mount,
 *                   the calls of other processes, and a guard take
 *   no_new_privs    no program that it executes gets more rights than it has (prctl(2))
 *   system calls    a filter (kernel/call_filter.h)
 *
 * All of it is inherited by children and by programs that are executed, so also by the next version
 * of dlockfs that goes on in this process (restart/restart.h): the next version has to manage with
 * the filter of the first one, which its rehearsal shows.
 *
 * Only for root. Other users need fusermount3, and its setuid bit, to unmount.
 */
#ifndef DLOCKFS_KERNEL_CONFINE_H
#define DLOCKFS_KERNEL_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Stays root; does nothing for another user. To be called before the process has a second thread,
 * which would keep everything. What cannot be taken is logged. May be called again. */
void confine_self(void);

#define CONFINE_GROUPS_MAX 256

struct confine_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[CONFINE_GROUPS_MAX];
	int group_count;
};

/* Looks up the user of that name or number, and its groups. This may load libraries, so it must not
 * be called while the mount is there and nobody answers its calls. Returns 0; -ENOENT: there is
 * none. */
int confine_find_user(const char *name, struct confine_user *ret);

/* Whether this process may go on as another user: as root, with the capabilities for it. */
bool confine_may_change_user(void);

/* Goes on as that user, without any capability, with no_new_privs and a filter that lets less pass
 * than that of confine_self(). By root, before there is a second thread. Returns 0; or -errno and
 * one line in `why`: then this process has to end. */
int confine_to_user(const struct confine_user *user, char *why, size_t why_bytes);

#endif
