/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cobs.h"

#include <string.h>

enum { GROUP_MAX = 254 };

/* The last group is followed by no NUL, though it may be a short one. */
void cobs_write(FILE *out, const void *bytes, size_t count)
{
	const unsigned char *at = bytes, *end = at + count;
	bool more = true;

	while (more) {
		size_t left = (size_t)(end - at);
		size_t most = left < GROUP_MAX ? left : GROUP_MAX;
		const unsigned char *nul = most > 0 ? memchr(at, '\0', most) : NULL;
		size_t group = nul != NULL ? (size_t)(nul - at) : most;

		putc_unlocked((int)group + 1, out);
		if (group > 0)
			fwrite_unlocked(at, 1, group, out);
		more = nul != NULL || group < left;
		at += group + (nul != NULL ? 1 : 0);
	}
}

bool cobs_read(const void *text, size_t text_bytes, void *to, size_t count)
{
	const unsigned char *from = text, *end = from + text_bytes;
	unsigned char *at = to, *stop = at + count;

	while (from < end) {
		size_t group = *from++;
		bool has_nul = group <= GROUP_MAX;

		if (group-- == 0 || group > (size_t)(end - from) || group > (size_t)(stop - at) ||
		    memchr(from, '\0', group) != NULL)
			return false;
		memcpy(at, from, group);
		at += group;
		from += group;
		if (!has_nul || from == end)
			continue;
		if (at == stop)
			return false;
		*at++ = '\0';
	}
	return at == stop;
}
