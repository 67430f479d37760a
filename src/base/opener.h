/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens files of the administrator for a process that may have no right to them any more: the
 * configuration, and the secrets that it names. Loop thread only, or before there is another one.
 */
#ifndef DLOCKFS_BASE_OPENER_H
#define DLOCKFS_BASE_OPENER_H

/* Sets the function that opens a file to which this process has no right: it returns a descriptor,
 * or -errno. NULL: there is none. */
void opener_set(int (*other)(const char *file));

/* Opens the file for reading, with further flags of open(2). Returns a descriptor, which is closed
 * by execve(2); or -1 and errno. */
int opener_open(const char *file, int flags);

/* A file for a library that opens it by name, perhaps later and again. If this process has no right
 * to the file, the name is that of a copy in memory, made now. */
struct opener_loan {
	int descriptor; /* of the copy; -1: there is none */
	char name[32];
};

/* Returns the name, which is good until opener_take_back(); the file's own name also if it cannot
 * be copied: then the library says why. */
const char *opener_lend(const char *file, struct opener_loan *loan);
void opener_take_back(struct opener_loan *loan);

#endif
