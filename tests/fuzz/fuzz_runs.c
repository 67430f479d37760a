/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of runs, which is anybody's: what is kept of it has room, comes out the same when it is
 * written and read again, and is printable ASCII.
 */
#include "fuzz.h"

#include "claim/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const struct run run = {.start_ms = 5, .key = "key", .host = "host"};
	char *text = runs_add((const char *)data, bytes, &run), *again;

	REQUIRE(text != NULL);
	REQUIRE(strlen(text) < RUNS_BYTES);
	REQUIRE(runs_have(text, strlen(text), &run));
	REQUIRE(!runs_want_key(text, strlen(text), "key"));
	for (const char *at = text; *at; at++)
		REQUIRE(*at == '\n' || (*at >= ' ' && *at < 0x7f));
	again = runs_add(text, strlen(text), NULL);
	REQUIRE(again != NULL && strcmp(text, again) == 0);
	free(again);
	free(text);
	return 0;
}
