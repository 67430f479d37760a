/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks servers of Redis, or Sentinels, by PING: without a password, which a server that wants one
 * says.
 */
#include "stores/redis/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/net/ask.h"

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static const char *judge(const char *text, size_t bytes, bool is_end, enum store_health *health)
{
	const char *words = ask_judge_stranger(text, bytes, is_end);

	if (words != NULL)
		return words;
	if (!is_end && strchr(text, '\n') == NULL)
		return NULL;
	*health = STORE_WELL;
	if (begins(text, "+PONG"))
		return "serves";
	if (begins(text, "-NOAUTH") || begins(text, "-NOPERM"))
		return "serves, by a password";
	*health = STORE_SICK;
	if (begins(text, "-LOADING"))
		return "is loading its data, and serves nobody yet";
	if (begins(text, "-DENIED"))
		return "is in protected mode: it serves this host only with a password, or bind";
	return text[0] == '-' ? "serves nobody now, by what it answers"
			      : "is no Redis, by what it answers";
}

int redis_health(const struct store_url *url, const struct store_access *access,
		 const struct store_asker *asker)
{
	static const struct ask_protocol protocol = {.question = "PING\r\n", .judge = judge};
	char *servers = strndup(url->servers, strcspn(url->servers, "/"));
	int error = servers != NULL ? ask_by_line(servers, access, url->has_tls, &protocol, asker)
				    : -ENOMEM;

	free(servers);
	return error;
}
