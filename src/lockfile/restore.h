/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads lock files, as save.h has them. Of each alteration nobody knows whether it has happened.
 * Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_RESTORE_H
#define DLOCKFS_LOCKFILE_RESTORE_H

#include "journal/text.h"

/* has_word() and restore() of struct tenant_kind. */
bool lockfile_restore_has_word(const char *word);
int lockfile_restore_line(void *context, struct state_reader *in);

#endif
