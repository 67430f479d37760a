/* SPDX-License-Identifier: Apache-2.0
 *
 * Lock paths and znode paths: what is encoded stays below the root, is one that ZooKeeper takes,
 * comes back, and, in the version that says so, has nothing in it that reads as a claim; what is
 * decoded is encoded so.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "claim/name.h"
#include "claim/znode_path.h"

static bool is_lock_path(const char *path)
{
	size_t length = strlen(path);

	return length > 0 && path[0] != '/' && path[length - 1] != '/' && !strstr(path, "//");
}

/* The character at *text, which must be valid UTF-8 in its shortest form; moves on behind it. */
static uint32_t read_character(const unsigned char **text)
{
	static const uint32_t first_of[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char lead = *(*text)++;
	int length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t character = length == 1 ? lead : lead & (0x7fu >> length);

	REQUIRE(length == 1 || (lead >= 0xc2 && lead <= 0xf4));
	for (int i = 1; i < length; i++) {
		REQUIRE((**text & 0xc0) == 0x80);
		character = character << 6 | (*(*text)++ & 0x3fu);
	}
	REQUIRE(character >= first_of[length]);
	return character;
}

/* As PathUtils.validatePath of ZooKeeper, which sees UTF-16. */
static void check_znode(const char *znode)
{
	const unsigned char *text = (const unsigned char *)znode;

	REQUIRE(*text == '/' && text[strlen(znode) - 1] != '/');
	while (*text) {
		uint32_t character = read_character(&text);

		REQUIRE(character > 0x1f && (character < 0x7f || character > 0x9f));
		REQUIRE(character < 0xd800 || character > 0xf8ff);
		REQUIRE(character < 0xfff0);
	}
	for (const char *part = znode; part; part = strchr(part + 1, '/')) {
		size_t length = strcspn(part + 1, "/");

		REQUIRE(length > 0);
		REQUIRE(!(length == 1 && part[1] == '.'));
		REQUIRE(!(length == 2 && part[1] == '.' && part[2] == '.'));
	}
}

static size_t count_slashes(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '/';
	return count;
}

static void check_no_claims(const char *znode)
{
	for (const char *part = znode; part; part = strchr(part + 1, '/')) {
		char *component = strndup(part + 1, strcspn(part + 1, "/"));
		struct claim_name claim;

		REQUIRE(component && !claim_name_parse(component, &claim));
		free(component);
	}
}

static void check_encoded(const char *root, const char *path)
{
	char *znode = znode_path_encode(root, path), *back;
	size_t root_bytes = strlen(root);

	REQUIRE(znode);
	REQUIRE(strncmp(znode, root, root_bytes) == 0 && znode[root_bytes] == '/');
	REQUIRE(count_slashes(znode + root_bytes) == count_slashes(path) + 1);
	REQUIRE(strlen(znode) <= root_bytes + 1 + 3 * strlen(path));
	check_znode(znode);
	check_no_claims(znode + root_bytes);
	if (root_bytes == 0)
		REQUIRE(strcmp(znode, "/zookeeper") != 0 && strncmp(znode, "/zookeeper/", 11) != 0);
	REQUIRE(znode_path_decode(znode + root_bytes + 1, &back) == 0);
	REQUIRE(strcmp(back, path) == 0);
	free(back);
	free(znode);
}

static void check_decoded(const char *encoded)
{
	char *path, *below_root, *below_server_root;
	int error = znode_path_decode(encoded, &path);

	REQUIRE(error == 0 || error == -EINVAL);
	if (error != 0)
		return;
	REQUIRE(is_lock_path(path));
	below_root = znode_path_encode("/r", path);
	below_server_root = znode_path_encode("", path);
	REQUIRE(below_root && below_server_root);
	REQUIRE(strcmp(below_root + 3, encoded) == 0 ||
		strcmp(below_server_root + 1, encoded) == 0);
	free(below_root);
	free(below_server_root);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = fuzz_text(data, bytes);

	if (is_lock_path(text)) {
		check_encoded("", text);
		check_encoded("/dlockfs", text);
	}
	check_decoded(text);
	free(text);
	return 0;
}
