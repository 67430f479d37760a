/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "view/hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "claim/host_entry.h"

static bool is_own(const struct view_lock *lock, const struct store_claim *claim)
{
	const struct store *store = lock->view->viewer->store;

	return store->ops->session != NULL &&
	       claim->session == (uint64_t)store->ops->session(store);
}

/* An entry without a session does not end with one: a person, or another client, has made it. */
static int take(struct view_lock *lock, const struct store_claim *claim)
{
	const char *text = claim->data, *line;
	size_t length = claim->data_bytes < HOST_ENTRY_BYTES ? claim->data_bytes : HOST_ENTRY_BYTES;
	const char *end = text + length;
	size_t bytes;
	FILE *out;

	line = claim->session != 0 ? host_entry_next(&text, end, &bytes) : NULL;
	if (line == NULL)
		return 0;
	out = open_memstream(&lock->lines, &bytes);
	if (out == NULL)
		return -ENOMEM;
	text = claim->data;
	fprintf(out, "session=0x%" PRIx64, claim->session);
	if (claim->since_ms > 0)
		fprintf(out, " since=%" PRId64, claim->since_ms / 1000);
	fprintf(out, "%s ", is_own(lock, claim) ? " self=yes" : "");
	while ((line = host_entry_next(&text, end, &bytes)) != NULL)
		fprintf(out, "%.*s\n", (int)bytes, line);
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

const struct view_shelf view_hosts_shelf = {HOST_ENTRY_DIRECTORY, take};
