/* SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor of a lock file that dlockctl has inherited, as in: dlockctl token 9 9>/run/dlocks/a
 */
#ifndef DLOCKCTL_DESCRIPTOR_H
#define DLOCKCTL_DESCRIPTOR_H

#include <stdint.h>

#include "dlockctl/dlockctl.h"

/* The fencing token of the locks that are held through the descriptor. Returns 0 or -errno. Blocks.
 */
int descriptor_token(int fd, uint64_t *ret_token);

/* The number of the slot by which the lock of the descriptor is held; -ENODATA: it has none, as
 * only one may hold it. Returns 0 or -errno. */
int descriptor_slot(int fd, uint64_t *ret_slot);

/* For how long what is locked next through the descriptor is to be held at least, and at most; 0:
 * nothing is said. Returns 0 or -errno; -ENOTTY: an older daemon, too. */
int descriptor_set_term(int fd, long long least_ms, long long most_ms);

/* Says that what is locked next through the descriptor may become a hold; makes it one. Return 0 or
 * -errno, as dlockfs.h says; the second one does not go on after EINTR. */
int descriptor_may_hold(int fd);
struct dlockfs_hold;
int descriptor_hold(int fd, const struct dlockfs_hold *hold);

/* Does the work of a command whose only word is a descriptor, up to its result: calls ask(), which
 * is descriptor_token() or the like, for the token. Returns -1 to go on, or the status to end with.
 */
int descriptor_ask(struct context *context, int argc, char **argv,
		   int (*ask)(int fd, uint64_t *ret_token), uint64_t *ret_token);

/* Tells why there is no token. Returns the status. */
int descriptor_fail(const char *what, int error);

#endif
