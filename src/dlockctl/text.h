/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from other hosts, on its way to a terminal: never trusted to be printable. Widths are
 * columns of the terminal, by the locale.
 */
#ifndef DLOCKCTL_TEXT_H
#define DLOCKCTL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the %XX of src/view/view.h; anything else, and %00, stays as it is. To be freed. */
char *text_decode(const char *text, size_t bytes);

/* Keeps characters that can be shown (shown.h); writes other bytes as \xNN, and a backslash as two.
 * NULL is an empty text. To be freed. */
char *text_printable(const char *text);

/* The columns that printable text takes. */
size_t text_width(const char *text);

/* Cuts printable text, in place, to that many columns; "~" stands for the rest. */
void text_cut(char *text, size_t columns);

/* "45s", "3m12s", "2h05m", "3d04h". */
#define TEXT_AGE_BYTES 24
void text_age(int64_t seconds, char age[TEXT_AGE_BYTES]);

/* "s" behind a noun; "" if there is one. */
const char *text_plural(size_t count);

#endif
