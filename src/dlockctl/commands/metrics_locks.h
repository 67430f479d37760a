/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl metrics --locks prints besides: of each lock of the mount, on all hosts, in the
 * text format of Prometheus. A lock's name is in the label `lock`, encoded as in .dlockfs.
 */
#ifndef DLOCKCTL_COMMANDS_METRICS_LOCKS_H
#define DLOCKCTL_COMMANDS_METRICS_LOCKS_H

/* Prints that. Returns 0, or tells the error and returns the status. */
int metrics_locks_print(const char *mount);

#endif
