/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of markers. Must not know of queues or holders. Pure functions, any thread.
 */
#include "claim/marker.h"

#include <string.h>

#define ESCAPE '~'

static bool is_of_dlockfs(const char *claim)
{
	struct claim_name name;

	return strlen(claim) < CLAIM_NAME_BYTES && claim_name_parse(claim, &name) &&
	       name.id.session != 0;
}

bool claim_marker_format(char text[CLAIM_MARKER_BYTES], const char *claim)
{
	char *end = stpcpy(text, CLAIM_MARKER_PREFIX);

	if (!is_of_dlockfs(claim))
		return false;
	for (; *claim != '\0'; claim++) {
		if (*claim == '-' || *claim == '_')
			*end++ = ESCAPE;
		*end++ = *claim;
	}
	stpcpy(end, CLAIM_MARKER_SUFFIX);
	return true;
}

bool claim_marker_parse(const char *text, char claim[CLAIM_NAME_BYTES])
{
	char again[CLAIM_MARKER_BYTES];
	size_t bytes = 0, length = strlen(text);
	size_t around = strlen(CLAIM_MARKER_PREFIX CLAIM_MARKER_SUFFIX);

	if (length < around || strncmp(text, CLAIM_MARKER_PREFIX, strlen(CLAIM_MARKER_PREFIX)) != 0)
		return false;
	const char *from = text + strlen(CLAIM_MARKER_PREFIX);
	for (const char *end = from + (length - around); from < end; from++) {
		if (*from == ESCAPE)
			continue;
		if (bytes == CLAIM_NAME_BYTES - 1)
			return false;
		claim[bytes++] = *from;
	}
	claim[bytes] = '\0';
	return claim_marker_format(again, claim) && strcmp(again, text) == 0;
}
