/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock files as text, for another process and the journal. Lines:
 *
 *   lockfile    a file of this host: its path, and the first line of its text
 *   alteration  an alteration that is not decided; the steps that follow are its own
 *   step        what the alteration does, step by step
 *
 * Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_SAVE_H
#define DLOCKFS_LOCKFILE_SAVE_H

#include "journal/fields.h"
#include "lockfile/alteration.h"
#include "lockfile/own.h"

/* A step as it is saved: of struct store_step. */
extern const struct field lockfile_save_step[];

/* What is written of it has changed: for the journal. An alteration without steps is nothing that
 * another process would go on with. */
void lockfile_save_mark_own(struct own *file);
void lockfile_save_mark(struct alteration *alteration);

/* visit() of struct tenant_kind. */
void lockfile_save_visit(void *context, const struct state_visit *visit);

#endif
