/* SPDX-License-Identifier: Apache-2.0
 *
 * What the servers have of a lock file, as other hosts and other clients write
 * it: whatever it is, it is read as a name whose kind, id and content are what a kernel can be
 * told.
 */
#include "fuzz.h"

#include <sys/stat.h>

#include "claim/file_path.h"
#include "files/lockfile_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct store_claim claim = {
		.session = fuzz_number(&data, &bytes),
		.since_ms = (int64_t)fuzz_number(&data, &bytes),
		.changed_ms = (int64_t)fuzz_number(&data, &bytes),
		.data = (const char *)data,
		.data_bytes = bytes,
	};
	struct lockfile_facts facts;

	REQUIRE(lockfile_text_parse(&claim, &facts) == 0);
	REQUIRE(S_ISREG(facts.mode) || S_ISDIR(facts.mode) || S_ISLNK(facts.mode));
	REQUIRE((facts.mode & (S_ISUID | S_ISGID | S_ISVTX)) == 0 && facts.links >= 1);
	REQUIRE(facts.uid != UINT32_MAX && facts.gid != UINT32_MAX);
	REQUIRE(strlen(facts.id) == sizeof(facts.id) - 1);
	REQUIRE(memchr(facts.who, '\0', sizeof(facts.who)) != NULL && facts.who[0] != '\0');
	REQUIRE(facts.text_bytes <= LOCKFILE_TEXT_BYTES_MAX);
	REQUIRE(facts.text != NULL || facts.text_bytes == 0);
	REQUIRE(facts.text == NULL || facts.text[facts.text_bytes] == '\0');
	REQUIRE(facts.mtime.tv_nsec >= 0 && facts.mtime.tv_nsec < 1000000000);
	for (const char *at = facts.who; *at != '\0'; at++)
		REQUIRE(*at >= ' ' && *at < 0x7f);
	REQUIRE(facts.queue == NULL || file_path_is_queue(facts.queue));
	lockfile_text_finish(&facts);
	return 0;
}
