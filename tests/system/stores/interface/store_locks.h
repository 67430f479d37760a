/* SPDX-License-Identifier: Apache-2.0
 *
 * Many locks, each with a claim of one host, which are placed and withdrawn in one turn.
 */
#ifndef DLOCKFS_STORE_LOCKS_H
#define DLOCKFS_STORE_LOCKS_H

#include "store_fixture.h"

enum { LOCKS = 70, NONE = -1 };

extern const char *folder; /* in which they are */
extern struct call placed[LOCKS], withdrawn[LOCKS];

/* The path of a lock, until the next call. */
const char *path_of(int i);

/* Sends all, half of them with a list; and waits until all are placed, or withdrawn. */
void send_all(struct host *host);
void place_all(struct host *host);
void withdraw_all(struct host *host);

/* How many claims of each lock there are; and one more of another client's. */
void expect_claims(struct host *host, size_t count, int with_other);

#endif
