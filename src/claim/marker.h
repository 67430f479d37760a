/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of markers: the children of a lock's znode that say which claim the lock is held with. A
 * marker outlives its claim, so a marker without its claim tells that the holder was lost
 * (stores/store.h: mark()).
 *
 * The name contains the claim's name, with a tilde before each dash and underscore, so that other
 * clients do not find the claim's own marker in it ("lock-", "__WRIT__"). To other clients it is a
 * claim that waits behind all others, and blocks none:
 *
 *     _c_<uuid>-__WRIT__0000000012   the claim
 *     ~held~~_c~_<uuid>~-~_~_WRIT~_~_0000000012~lock-2147483647
 *
 *     Curator         sorts by the text behind "lock-", or by the whole text: "~" is behind digits
 *     kazoo           from 2.8 on skips it, or sorts it as a mutex of Curator; before, sorts by the
 *                     text from the eighth character on
 *     WriteLock, C    sort by what follows the last dash. To WriteLock before 3.6 what is no number
 *                     there comes first
 *     go-zookeeper    reads a number behind the last "lock-", or dash; where there is none, Lock()
 *                     fails, and leaves its own claim there
 *     the textbook    sorts by what follows the last dash; "R" or "W" does not stand between dashes
 *
 * To dlockfs such a name is always a marker, never a claim.
 *
 * Pure functions: no I/O, no allocation, any thread.
 */
#ifndef DLOCKFS_CLAIM_MARKER_H
#define DLOCKFS_CLAIM_MARKER_H

#include <stdbool.h>

#include "claim/name.h"

#define CLAIM_MARKER_PREFIX "~held~"

#define CLAIM_MARKER_SUFFIX "~lock-2147483647"

/* Each character of the claim's name may become two. */
#define CLAIM_MARKER_BYTES                                                                         \
	(sizeof(CLAIM_MARKER_PREFIX CLAIM_MARKER_SUFFIX) + 2 * (CLAIM_NAME_BYTES - 1))

/* Writes the name of the marker of a claim. Returns false, and leaves the output undefined, if the
 * name is none that dlockfs gives a claim. */
bool claim_marker_format(char text[CLAIM_MARKER_BYTES], const char *claim);

/* Reads the name of the claim from that of its marker. Returns false, and leaves the output
 * undefined, if the name is no marker's. */
bool claim_marker_parse(const char *text, char claim[CLAIM_NAME_BYTES]);

#endif
