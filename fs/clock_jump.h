/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether somebody has set the clock. While a virtual machine is paused, or migrated, its clocks
 * may stand still, CLOCK_BOOTTIME among them, and the machine does not know when it goes on; but as
 * a rule the wall clock is then set to what it should be: by the agent of the hypervisor in the
 * guest (qemu-ga's guest-set-time, VMware Tools, Hyper-V's time synchronisation), or by NTP. The
 * kernel tells of that (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET).
 *
 * That the wall clock was set does not mean that the machine stood still, nor how long: an
 * administrator may have done so. And after a suspend, which CLOCK_BOOTTIME counts, the kernel
 * tells of that, too: that is no jump, for both clocks went on by the same time.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_CLOCK_JUMP_H
#define DLOCKFS_CLOCK_JUMP_H

#include <stdbool.h>
#include <stdint.h>

struct clock_jump {
	int timer;	  /* readable when the clock was set */
	int64_t ahead_ms; /* how much CLOCK_REALTIME was ahead of CLOCK_BOOTTIME */
};

/* Returns 0 or -errno, with nothing left open. */
int clock_jump_init(struct clock_jump *jump);
void clock_jump_finish(struct clock_jump *jump);

/* Whether the clock was set since the last call, by more than clock_jump_init() or that call could
 * have been off by. *ret_ms is by how much; positive: forward. One system call. */
bool clock_jump_seen(struct clock_jump *jump, int64_t *ret_ms);

#endif
