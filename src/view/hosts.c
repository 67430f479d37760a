/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "view/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "claim/host_entry.h"

static bool is_own(const struct view_lock *lock, const struct store_claim *claim)
{
	const struct store *store = lock->view->viewer->store;

	return store->ops->session != NULL &&
	       claim->session == (uint64_t)store->ops->session(store);
}

/* Whether a line, of which the first one begins with `first`, is one of an entry: no other may
 * stand at the beginning of a line, where it would be taken for the daemon's own. */
static bool is_of_entry(const char *line, size_t bytes, bool first)
{
	const char *begin = first ? "host=" : "setting=";
	size_t count = strlen(begin);

	return (bytes >= count && memcmp(line, begin, count) == 0) ||
	       (!first && bytes == strlen("more=yes") && memcmp(line, "more=yes", bytes) == 0);
}

/* An entry without a session does not end with one: a person, or another client, has made it. What
 * is the daemon's own word stands in front of the host's. */
static int take(struct view_lock *lock, const struct store_claim *claim)
{
	const char *text = claim->data, *line;
	size_t length = claim->data_bytes < HOST_ENTRY_BYTES ? claim->data_bytes : HOST_ENTRY_BYTES;
	const char *end = text + length, *first;
	size_t bytes, first_bytes;
	FILE *out;

	first = claim->session != 0 ? host_entry_next(&text, end, &first_bytes) : NULL;
	if (first == NULL || !is_of_entry(first, first_bytes, true))
		return 0;
	out = open_memstream(&lock->lines, &bytes);
	if (out == NULL)
		return -ENOMEM;
	fprintf(out, "session=0x%" PRIx64 " self=%s since=", claim->session,
		is_own(lock, claim) ? "yes" : "no");
	if (claim->since_ms > 0)
		fprintf(out, "%" PRId64, claim->since_ms / 1000);
	fprintf(out, " %.*s\n", (int)first_bytes, first);
	while ((line = host_entry_next(&text, end, &bytes)) != NULL) {
		if (is_of_entry(line, bytes, false))
			fprintf(out, "%.*s\n", (int)bytes, line);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

const struct view_shelf view_hosts_shelf = {HOST_ENTRY_DIRECTORY, take};
