/* SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor of a lock file that dlockctl has inherited, as in: dlockctl token 9 9>/run/dlocks/a
 */
#ifndef DLOCKCTL_DESCRIPTOR_H
#define DLOCKCTL_DESCRIPTOR_H

#include <stdint.h>

/* The token of what is locked through the descriptor. Returns 0 or -errno. Blocks. */
int descriptor_token(int fd, uint64_t *ret_token);

/* Reads the number of an open descriptor. Returns 0, or tells the error and returns the status. */
int descriptor_parse(const char *word, int *ret_fd);

/* Tells why there is no token. Returns the status. */
int descriptor_fail(const char *what, int error);

#endif
