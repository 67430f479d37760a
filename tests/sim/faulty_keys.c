/* SPDX-License-Identifier: Apache-2.0
 *
 * See faulty_keys.h. Single-threaded.
 */
#include "faulty_keys.h"

void keys_begin(struct keys *keys, const struct faulty_settings *settings)
{
	*keys = (struct keys){.settings = settings, .renewed_ms = *settings->now_ms};
}

void keys_renew(struct keys *keys)
{
	keys->renewed_ms = *keys->settings->now_ms;
}

int64_t keys_end_ms(const struct keys *keys)
{
	return keys->renewed_ms + keys->settings->timeout_ms;
}
