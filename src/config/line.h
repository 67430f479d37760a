/* SPDX-License-Identifier: Apache-2.0
 *
 * A line of the INI file with a key, as text. For file.c only. Any thread.
 */
#ifndef DLOCKFS_CONFIG_LINE_H
#define DLOCKFS_CONFIG_LINE_H

#include <stddef.h>

/* Takes a comment behind a value away, as inih does: " ; ...", with the blanks in front of it. */
void line_end_at_comment(char *text);

/* What looks like a comment behind the value, or instead of it, and would be a part of it; NULL:
 * nothing does. */
const char *line_find_comment(const char *value);

/* How much of the text, which has no blanks at its ends, inih can take at once, at most `longest`
 * bytes; and in *ret_rest what is left for the next time, behind blanks, NULL if nothing is: it
 * begins with nothing that inih takes for a comment. 0: there is no such place. */
size_t line_measure_part(const char *text, size_t longest, const char **ret_rest);

#endif
