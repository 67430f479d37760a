/* SPDX-License-Identifier: Apache-2.0
 *
 * What views show of the hosts of a store: see view_hosts() of view.h. For the view's own files.
 * Loop thread only.
 */
#ifndef DLOCKFS_VIEW_HOSTS_H
#define DLOCKFS_VIEW_HOSTS_H

#include "view/shelf.h"

extern const struct view_shelf view_hosts_shelf;

#endif
