/* SPDX-License-Identifier: Apache-2.0
 *
 * What ends the use of an open file, but for its loss (telling.h), and who is told: its requests,
 * and the processes that hold through it. Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_HANDLES_HANDLE_END_H
#define DLOCKFS_HANDLES_HANDLE_END_H

#include "handles/handle.h"

/* Closes the file: its locks are released, and its waiting calls withdrawn. */
void handle_close(struct handle *handle);

/* Somebody asks for the lock that the handle holds: poll(2) of it wakes, and holders get the signal
 * of on_revoke. */
void handle_revoke(struct handle *handle);

#endif
