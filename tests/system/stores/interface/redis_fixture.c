/* SPDX-License-Identifier: Apache-2.0
 *
 * What other clients of Redis do, by redis-cli.
 */
#include "redis_fixture.h"

#include "store_program.h"
#include "stores/redis/gate.h"

static char port[16];

const char *redis_cli_with(const char *const *given)
{
	static char text[8192];
	const char *argv[16] = {"redis-cli", "-h", "127.0.0.1", "-p", port};

	for (int words = 5; given[words - 5] && words < 15; words++)
		argv[words] = given[words - 5];
	snprintf(text, sizeof(text), "%s", run_program(argv, "", 0, false));
	if (*text != '\0')
		text[strlen(text) - 1] = '\0';
	return text;
}

const char *redis_key(const char *path)
{
	static char text[1024];

	snprintf(text, sizeof(text), "%s/%s", top + 1, path);
	return text;
}

const char *value_of(const char *path)
{
	return redis_cli("GET", redis_key(path));
}

bool has_our_key(const char *path)
{
	return strncmp(value_of(path), REDIS_VALUE_MARK, strlen(REDIS_VALUE_MARK)) == 0;
}

size_t count_in(struct host *host, const char *path)
{
	struct call all;

	list(host, &all, path, false);
	assert_int_equal(all.error, 0);
	return all.count;
}

bool is_gate(const struct claim_name *claim)
{
	return claim->id.session != claim_id_session(1) && claim->mode == CLAIM_EXCLUSIVE &&
	       claim->span.start == 0 && claim->span.end == INT64_MAX;
}

static void begin(void)
{
	snprintf(port, sizeof(port), "%s", strrchr(server, ':') + 1);
}

static void end(void)
{
}

const struct backend backend_redis = {
	.scheme = STORE_SCHEME_REDIS,
	.begin = begin,
	.end = end,
};
