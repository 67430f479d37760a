/* SPDX-License-Identifier: Apache-2.0
 *
 * What a test has done outside of its program: by a client of the service, or to its servers.
 */
#ifndef DLOCKFS_STORE_PROGRAM_H
#define DLOCKFS_STORE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* Runs a program, whose words end with NULL, with that on its standard input. It has to end well,
 * unless it may fail. Returns what it printed, until the next call. */
const char *run_program(const char *const *argv, const char *input, size_t bytes, bool may_fail);

/* Asks the script that started the test, and the servers: writes a line, which is a function of the
 * script and its words, on the descriptor 3; when that is done, one can be read from 4. */
void ask_script(const char *what);

#endif
