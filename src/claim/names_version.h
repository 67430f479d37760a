/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of the encoding of names below the root of a store (znode_path.h), which stands in
 * the data of the root as a line
 *
 *     dlockfs-names=2
 *
 * among whatever else is there. Without such a line the version is that one: the root was made by
 * hand, or by another client. The line is written only together with the root, and never changed.
 *
 * Pure functions, any thread.
 */
#ifndef DLOCKFS_CLAIM_NAMES_VERSION_H
#define DLOCKFS_CLAIM_NAMES_VERSION_H

#include <stddef.h>

enum { NAMES_VERSION = 2 }; /* the one that this program knows */

/* The data of a root that is made here. */
#define NAMES_VERSION_LINE "dlockfs-names=2\n"

/* The version in the data; 0 if that is not a number from 1 on. */
int names_version_parse(const void *data, size_t bytes);

#endif
