/* SPDX-License-Identifier: Apache-2.0
 *
 * Which characters this terminal may be sent: by base/printable.h, and by the locale.
 */
#ifndef DLOCKCTL_SHOWN_H
#define DLOCKCTL_SHOWN_H

#include <stddef.h>

/* The bytes of the character that the text, of at least one byte, begins with, and the columns that
 * it takes in *ret_columns; 0: it cannot be shown. */
size_t shown_bytes(const char *text, size_t bytes, int *ret_columns);

#endif
