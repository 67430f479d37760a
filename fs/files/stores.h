/* SPDX-License-Identifier: Apache-2.0
 *
 * All kinds of stores. Any thread.
 */
#ifndef DLOCKFS_FILES_STORES_H
#define DLOCKFS_FILES_STORES_H

#include "stores/store.h"

/* That of the scheme (config/url.h), which is known. */
const struct store_kind *stores_find(const char *scheme);

/* That of the store whose line save_session() wrote to: the one whose flag it has, else local. */
const struct store_kind *stores_find_saved(struct state_reader *in);

#endif
