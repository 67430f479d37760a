/* SPDX-License-Identifier: Apache-2.0
 *
 * What the handlers of the kernel's requests have, beyond what is in files/. Loop thread only.
 */
#ifndef DLOCKFS_OPS_CALLS_H
#define DLOCKFS_OPS_CALLS_H

#include <stdbool.h>
#include <stdint.h>

struct late;
struct listing;
struct waiting;

struct calls {
	void (*on_ready)(void *context); /* called when the kernel has sent its greeting
					    (FUSE_INIT): the mount is usable; may be NULL */
	void *context;
	bool calls_are_seen;	    /* the kernel tells which call a thread waits in */
	bool follows_links;	    /* the kernel does in the mount (kernel/nosymfollow.h) */
	bool askings_ready;	    /* some of `askings` may go on */
	bool held_ready;	    /* some of `held` may go on */
	struct listing *listings;   /* open directories */
	struct waiting *askings;    /* requests about lock files that wait (asking.h) */
	struct late *lates;	    /* texts that are stored late (late.h) */
	uint64_t late_serial;	    /* the latest of them */
	struct waiting *running;    /* requests about the runs of jobs (running.h) */
	struct waiting *holdings;   /* requests to make holds (holding.h) */
	struct waiting *held;	    /* requests that are held (held.h), */
	struct waiting *held_until; /* and those of which it is known until when */
};

#endif
