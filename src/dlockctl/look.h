/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl asks a mount, other than to lock, in a child process only: callers of a mount whose
 * daemon hangs hang with it, and cannot even be killed. The child has no descriptor of the terminal
 * or of a pipe, so that nobody waits for it.
 */
#ifndef DLOCKCTL_LOOK_H
#define DLOCKCTL_LOOK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* The mount has not answered; and the time of look_until() is over. No mount returns these. */
#define LOOK_NO_ANSWER (-EHOSTDOWN)
#define LOOK_TOO_LATE  (-ETIME)

/* How long a mount has for one answer. If there is none by then, the mount has as long again to
 * show that its daemon does answer, and only waits for a store. */
#define LOOK_LIMIT_MS 5000

/* Asks, in the child: returns 0 and a text to be freed, or NULL for none; or -errno. */
typedef int look_ask(const void *what, char **ret_text, size_t *ret_bytes);

/* Returns the result of ask(what), and its text, which ends in a zero; LOOK_NO_ANSWER;
 * LOOK_TOO_LATE; or another -errno, if no process can be started. `mount` is a path of the mount;
 * NULL: it is not known, and what takes longer than LOOK_LIMIT_MS counts as no answer. */
int look(const char *mount, look_ask *ask, const void *what, char **ret_text, size_t *ret_bytes);

/* Whether the mount at the path, or of the file, answers at all. */
bool look_answers(const char *mount);

/* The descriptor is not the children's: whoever waits for its end does not wait for one that hangs.
 */
void look_keep_from(int fd);

/* From now on every look ends at `end_ms` (now_ms()) at the latest. */
void look_until(long long end_ms);

/* strerror(3), also of the two above. */
const char *look_words(int error);

#endif
