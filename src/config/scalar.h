/* SPDX-License-Identifier: Apache-2.0
 *
 * The text forms of the values of configuration keys that are stored as a number: words, durations,
 * numbers, modes, users and groups. For keys of these types alone. For value.c. Loop thread only.
 */
#ifndef DLOCKFS_CONFIG_SCALAR_H
#define DLOCKFS_CONFIG_SCALAR_H

#include "config/value.h"

/* Writes which values a key may have. */
void config_scalar_describe(const struct config_key *key, char *text, size_t text_bytes);

/* Reads a value. A name of a user or group is looked up, which may block. Returns 0,
 * -ENOMEM, or -EINVAL with what is wrong and expected in `why`; `*ret` is then as it was. */
int config_scalar_parse(const struct config_key *key, const char *text, int64_t *ret, char *why,
			size_t why_bytes);

#endif
