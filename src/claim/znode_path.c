/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the one-to-one mapping of lock paths to znode paths. Must not know what a znode holds, only
 * how claims are named. Pure functions, any thread.
 */
#include "claim/znode_path.h"

#include "claim/marker.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "claim/name.h"

#define RESERVED_NAME "zookeeper" /* the server's own znode below its root */

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* How many bytes the character at `text` has, or 0 if it has to be encoded: ZooKeeper cannot store
 * it, or it is '%'. Never reads past the final NUL, which is no continuation byte. */
static size_t storable_bytes(const unsigned char *text)
{
	uint32_t character;

	if (text[0] < 0x80)
		return text[0] >= 0x20 && text[0] != 0x7f && text[0] != '%';
	if (text[0] >= 0xc2 && text[0] <= 0xdf && is_continuation(text[1])) {
		character = (text[0] & 0x1fu) << 6 | (text[1] & 0x3fu);
		return character >= 0xa0 ? 2 : 0;
	}
	if ((text[0] & 0xf0) != 0xe0 || !is_continuation(text[1]) || !is_continuation(text[2]))
		return 0;
	character = (text[0] & 0x0fu) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3fu);
	if (character < 0x800 || (character >= 0xd800 && character <= 0xf8ff) ||
	    character >= 0xfff0)
		return 0;
	return 3;
}

/* Whether a component of this length and text would mean something else to ZooKeeper. */
static bool is_special(const char *component, size_t bytes, bool below_server_root)
{
	if (bytes == strlen(RESERVED_NAME) && below_server_root)
		return memcmp(component, RESERVED_NAME, bytes) == 0;
	return (bytes == 1 || bytes == 2) && memcmp(component, "..", bytes) == 0;
}

/* Whether a component would be read as a marker of the lock above. */
static bool is_like_marker(const char *component, size_t bytes)
{
	return bytes >= strlen(CLAIM_MARKER_PREFIX) &&
	       memcmp(component, CLAIM_MARKER_PREFIX, strlen(CLAIM_MARKER_PREFIX)) == 0;
}

static char *append_component(char *out, const char *component, size_t bytes, bool special)
{
	const char *end = component + bytes;

	while (component < end) {
		size_t count = storable_bytes((const unsigned char *)component);

		if (special && (*component == '.' || *component == RESERVED_NAME[0]))
			count = 0;
		if (*component == '/') /* of a file below another one */
			count = 0;
		if (count == 0)
			out = escape_put(out, (unsigned char)*component++);
		for (; count > 0; count--)
			*out++ = *component++;
	}
	return out;
}

/* A component that reads as a claim ends in at least nine digits, none of them encoded. With the
 * last one encoded it ends in "%3" and a digit, which is the end of no claim. Returns the new end.
 */
static char *hide_number(char *component, char *end)
{
	struct claim_name claim;

	*end = '\0';
	if (!claim_name_parse(component, &claim))
		return end;
	return escape_put(end - 1, (unsigned char)end[-1]);
}

char *znode_path_encode(const char *root, const char *lock_path)
{
	char *encoded = malloc(strlen(root) + strlen("/") + 3 * strlen(lock_path) + 1);
	bool below_server_root = *root == '\0';
	const char *divided = strstr(lock_path, "//"); /* file_path.h */
	bool special;
	char *out, *component;

	if (encoded == NULL)
		return NULL;
	out = stpcpy(encoded, root);
	if (divided == lock_path)
		lock_path += 2;
	for (;;) {
		size_t bytes = divided != NULL && lock_path > divided ? strlen(lock_path)
								      : strcspn(lock_path, "/");

		*out++ = '/';
		component = out;
		special = is_special(lock_path, bytes, below_server_root);
		if (is_like_marker(lock_path, bytes)) {
			out = escape_put(out, (unsigned char)*lock_path++);
			bytes--;
		}
		out = append_component(out, lock_path, bytes, special);
		out = hide_number(component, out);
		lock_path += bytes;
		if (*lock_path == '\0')
			break;
		lock_path += lock_path == divided ? 2 : 1;
		below_server_root = false;
	}
	*out = '\0';
	return encoded;
}

/* Replaces every %XX, in any place. Returns 0, or -EINVAL where two digits are missing or make a
 * NUL. */
static int replace_encoded(const char *encoded, char *out)
{
	ssize_t bytes = escape_decode(out, encoded, strlen(encoded));

	return bytes >= 0 && strlen(out) == (size_t)bytes ? 0 : -EINVAL;
}

/* Returns 1 if encoding `lock_path` below `root` gives `encoded`, 0 if not, or -ENOMEM. */
static int encodes_to(const char *root, const char *lock_path, const char *encoded)
{
	char *again = znode_path_encode(root, lock_path);
	int same;

	if (again == NULL)
		return -ENOMEM;
	same = strcmp(again + strlen(root) + strlen("/"), encoded) == 0;
	free(again);
	return same;
}

static bool is_lock_path(const char *path)
{
	size_t bytes = strlen(path);

	return bytes > 0 && path[0] != '/' && path[bytes - 1] != '/' && strstr(path, "//") == NULL;
}

/* Decodes a path, or the name of a file, in front of which the lock path has two slashes. Text that
 * encodes to something else is not encoded: "%41", "%2F", a bare control byte. */
static int decode(const char *encoded, bool is_file, char **ret)
{
	const char *front = is_file ? "//" : "";
	size_t bytes = strlen(front);
	char *path = malloc(bytes + strlen(encoded) + 1);
	int result;

	if (path == NULL)
		return -ENOMEM;
	result = replace_encoded(encoded, stpcpy(path, front));
	if (result == 0 && is_file && path[bytes] == '/')
		result = -EINVAL;
	if (result == 0)
		result = encodes_to("/root", path, encoded);
	if (result == 0)
		result = encodes_to("", path, encoded);
	if (result <= 0) {
		free(path);
		return result < 0 ? result : -EINVAL;
	}
	*ret = memmove(path, path + bytes, strlen(path + bytes) + 1);
	return 0;
}

int znode_path_decode(const char *encoded, char **ret_lock_path)
{
	return is_lock_path(encoded) ? decode(encoded, false, ret_lock_path) : -EINVAL;
}

int znode_path_decode_file(const char *encoded, char **ret_file)
{
	return strchr(encoded, '/') == NULL ? decode(encoded, true, ret_file) : -EINVAL;
}

bool znode_path_is_root(const char *root)
{
	bool below_server_root = true;

	while (*root == '/') {
		size_t bytes = strcspn(++root, "/");
		const char *end = root + bytes;

		if (bytes == 0 || is_special(root, bytes, below_server_root))
			return false;
		while (root < end) {
			size_t count = storable_bytes((const unsigned char *)root);

			if (count == 0)
				return false;
			root += count;
		}
		below_server_root = false;
	}
	return *root == '\0';
}
