/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel knows of a link.
 */
#ifndef DLOCKFS_STORES_LINK_H
#define DLOCKFS_STORES_LINK_H

#include <stdbool.h>

/* Whether nothing passes the TCP connection, as far as the kernel can tell: it is still to be made,
 * or has sent something again without an answer. What the other side has received and does not
 * answer is no matter of the link. Any thread; does not block. */
bool link_is_stuck(int socket);

#endif
