/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs another program for what it says.
 */
#ifndef DLOCKCTL_PROGRAM_H
#define DLOCKCTL_PROGRAM_H

/* Runs the program, which PATH finds, with these arguments, the first of which is its name, with
 * nothing to read, and waits for its end, for `limit_ms` at most: then it is killed. Returns its
 * exit status, and in *ret_text, to be freed, what it has written to stdout and stderr, 64 KiB at
 * most; or -errno and NULL: -ENOENT if there is no such program, -ETIME if the time is over,
 * -ECHILD if a signal has ended it. */
int program_run(const char *program, const char *const *arguments, int limit_ms, char **ret_text);

#endif
