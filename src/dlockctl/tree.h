/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files below MOUNT/.dlockfs. They block until the store has answered, in a time that the
 * daemon bounds; a daemon that does not answer is given up, with LOOK_NO_ANSWER (look.h).
 */
#ifndef DLOCKCTL_TREE_H
#define DLOCKCTL_TREE_H

#include "dlockctl/mount.h"
#include "dlockctl/queue.h"

/* A file below .dlockfs, whole. Returns 0 and the text, which ends in a zero and is to be freed; or
 * -errno. */
int tree_read(const char *mount, const char *file, char **ret_text, size_t *ret_bytes);

/* Opens the file of one queue for reading, in the child of a look. Returns the descriptor or
 * -errno: -ENOENT or -ENOTDIR if nobody holds or wants the lock, or the mount shows no queues;
 * -EAGAIN if locks below it came and went all the time. */
int tree_open_queue(const struct place *place);

/* The queue of one lock; a lock that nobody holds or wants may have no entry in *queues. Returns 0
 * or -errno.
 */
int tree_queue(const struct place *place, struct queues *queues);

/* The queues of all. Returns 0 or -errno. */
int tree_queues(const char *mount, struct queues *queues);

/* Finds the lock of a name, as place_find_queue() does, which must have a claim, and calls act()
 * with its queue, queues->list[0]. Returns the result of act(), or reports the error and returns
 * the status. */
int tree_act(const struct context *context, const char *name,
	     int (*act)(const struct place *place, const struct queues *queues, void *data),
	     void *data);

/* Warns of lines that were not understood, of locks that could not be read, and of stores that did
 * not answer. Returns EXIT_NO_ANSWER if there are such stores, else 0. */
int warn_of_bad_lines(const struct queues *queues);

/* Tells why a file could not be read. Returns the status. */
int tree_fail(const char *mount, const char *what, int error);

/* A line of "key=value". */
struct tree_line {
	const char *key, *value;
	size_t key_bytes, value_bytes;
};

bool tree_line_is(const struct tree_line *line, const char *key);

/* Moves *text behind its next such line. Returns false at an empty line, or at the end. */
bool tree_next_line(const char **text, struct tree_line *ret);

/* The value of a key in lines of "key=value", up to an empty one; to be freed. NULL: there is no
 * such key.
 */
char *tree_value(const char *text, const char *key);

/* The value of a key in a line of several, "... key=value ...", behind the first word. To be freed;
 * empty if there is no such key. */
char *tree_word(const char *line, const char *key);

/* The text after the next empty line, such as the status of the next store; NULL: there is none. */
const char *tree_next_block(const char *text);

#endif
