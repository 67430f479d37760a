/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether files of this host still stand. Another host may take one away: the store tells that at
 * once where there is a watch. Most lock files do not live for long, and are not watched: a watch
 * is one more request to the store, once.
 *
 *   young     in lockfiles->watch_timers: the file was made a moment ago, or its watch has failed
 *   unwatched in lockfiles->unwatched: until there is a connection, and not too many are sent
 *   asked     file->watch: watch() of the store is called
 *   watched   file->watched: the watch has shown the file, and nothing else since
 *
 * A watch cannot be undone. That of a file which this host has removed ends by that, and its answer
 * is dropped. Another process sets all watches anew. Loop thread only.
 */
#ifndef DLOCKFS_LOCKFILE_WATCH_H
#define DLOCKFS_LOCKFILE_WATCH_H

#include "lockfile/ask.h"
#include "lockfile/own.h"

/* The file stands now. */
void watch_note_seen(struct own *file);

/* Whether no other host can have taken the file away, but for a moment ago. */
bool watch_knows(const struct own *file);

/* The file is to be watched: when it has lived a while; as soon as possible. */
void watch_later(struct own *file);
void watch_soon(struct own *file);

/* Sends the watches that are possible now; and before that takes the files whose time has come. */
void watch_send(struct lockfiles *lockfiles);
void watch_end_time(struct lockfiles *lockfiles);

/* What was read at the path of a file that was in the books when that was asked for. Takes the
 * file, if it is gone. watch_looked(): the answer to own_look(), for which an alteration may wait.
 */
void watch_found(struct own *file, int error, const struct store_claim *claim);
void watch_looked(struct own *file, int error, const struct store_claim *claim);

/* The store's on_read() and on_watched(). */
void watch_shown(struct ask *ask, const char *text);
void watch_ended(struct ask *ask, int error);

#endif
