/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks ZooKeeper's servers by `srvr`, which servers answer to everybody unless their
 * 4lw.commands.whitelist is without it (from 3.5.3 on it is the only word in that list).
 */
#include "stores/zookeeper/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stores/net/ask.h"
#include "stores/zookeeper/session/servers.h"

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* "Mode:" stands behind the numbers of the server, and before "Node count:". */
static const char *judge_mode(const char *text, bool is_end, enum store_health *health)
{
	static const struct {
		const char *line, *words;
	} modes[] = {
		{"\nMode: leader", "leads"},
		{"\nMode: follower", "follows"},
		{"\nMode: observer", "observes"},
		{"\nMode: standalone", "serves alone"},
	};

	if (!is_end && strstr(text, "\nNode count:") == NULL)
		return NULL;
	*health = STORE_WELL;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (strstr(text, modes[i].line) != NULL)
			return modes[i].words;
	}
	return "serves";
}

static const char *judge(const char *text, size_t bytes, bool is_end, enum store_health *health)
{
	const char *words = ask_judge_stranger(text, bytes, is_end);

	if (words != NULL)
		return words;
	if (!is_end && strchr(text, '\n') == NULL)
		return NULL;
	if (begins(text, "Zookeeper version"))
		return judge_mode(text, is_end, health);
	if (begins(text, "This ZooKeeper instance is not currently serving"))
		return "is not in the quorum: it serves nobody";
	if (begins(text, "srvr is not executed")) {
		*health = STORE_WELL;
		return "may not tell whether it is in the quorum (srvr is not in its "
		       "4lw.commands.whitelist)";
	}
	return "is no ZooKeeper, by what it answers";
}

int zookeeper_health(const struct store_url *url, const struct store_access *access,
		     const struct store_asker *asker)
{
	/* ZooKeeper's client library does not look at the name. */
	static const struct ask_protocol protocol = {
		.question = "srvr", .takes_any_name = true, .judge = judge};
	char *servers = zookeeper_servers_show(url->servers);
	int error = servers != NULL
			    ? ask_by_line(servers, access, access->tls_ca != NULL, &protocol, asker)
			    : -ENOMEM;

	free(servers);
	return error;
}
