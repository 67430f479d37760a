/* SPDX-License-Identifier: Apache-2.0
 *
 * What is passed on to the program that goes on in place of a daemon (restart/takeover.h), read
 * without a kernel and a service.
 */
#ifndef REHEARSAL_H
#define REHEARSAL_H

#include <stddef.h>

struct filesystem;

/* Reads a text. It is understood; or there is one line that says where and why it is not. */
void rehearsal_read(const char *text, size_t bytes);

/* Lets a file system that is new keep what it passes on in a journal, which is the descriptor's
 * from now on. */
void rehearsal_keep(struct filesystem *filesystem, int descriptor);

/* The journal is gone. */
void rehearsal_forget(struct filesystem *filesystem);

/* What has changed is in the journal, which says what would be passed on. */
void rehearsal_of_journal(struct filesystem *filesystem);

/* What a file system passes on is understood, and what is made of it would pass on the same. */
void rehearsal_of(struct filesystem *filesystem);

#endif
