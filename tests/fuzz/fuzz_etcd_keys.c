/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of claims in etcd, which may be any bytes, and their names, which people type: a key that is
 * a claim's has a name that leads back to it, and to no other; a name leads to a key below its
 * lock, which has that name.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "stores/etcd/keys.h"

#define ROOT  "/root"
#define LOCK  "a/b"
#define BEGIN ROOT "/" LOCK "/"

enum { REVISION = 47110815 };

static void check_key(const char *rest, size_t bytes, const char *value, size_t value_bytes)
{
	struct claim_name claim;
	struct etcd_named named;
	char *name = etcd_key_claim_parse(rest, bytes, value, value_bytes, REVISION, &claim);

	bool is_of_lock = etcd_key_is_of_lock(rest, bytes, REVISION);

	if (!name)
		return;
	REQUIRE(is_of_lock || claim.id.session == 0);
	REQUIRE(!strchr(name, '/') && claim.order == REVISION);
	named = etcd_key_of_claim(ROOT, LOCK, name);
	REQUIRE(named.key.bytes && named.order == REVISION);
	REQUIRE(named.is_ours == (claim.id.session != 0));
	REQUIRE(named.key.count == strlen(BEGIN) + bytes);
	REQUIRE(memcmp(named.key.bytes + strlen(BEGIN), rest, bytes) == 0);
	free(named.key.bytes);
	free(name);
}

static void check_name(const char *name)
{
	struct etcd_named named = etcd_key_of_claim(ROOT, LOCK, name);

	if (!named.key.bytes)
		return;
	REQUIRE(named.order >= 0 && named.key.count >= strlen(BEGIN));
	REQUIRE(memcmp(named.key.bytes, BEGIN, strlen(BEGIN)) == 0);
	check_key(named.key.bytes + strlen(BEGIN), named.key.count - strlen(BEGIN), name,
		  strlen(name));
	free(named.key.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	size_t key;

	REQUIRE(text);
	memcpy(text, data, size);
	text[size] = '\0';
	key = strlen(text);
	check_key(text, key, text + key + (key < size), size - key - (key < size));
	check_name(text);
	free(text);
	return 0;
}
