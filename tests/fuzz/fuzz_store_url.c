/* SPDX-License-Identifier: Apache-2.0
 *
 * The address of a store. What is taken is a list of servers and a path that these take, and comes
 * out the same when it is written down and read again; an error is one line.
 */
#include "fuzz.h"

#include <ctype.h>
#include <errno.h>

#include "claim/znode_path.h"
#include "config/url.h"

/* Whether the path is what keys begin with. */
static bool has_keys(const struct store_url *url)
{
	return strcmp(url->scheme, STORE_SCHEME_ETCD) == 0 ||
	       strcmp(url->scheme, STORE_SCHEME_REDIS) == 0;
}

static void check_servers(const struct store_url *url)
{
	const char *servers = url->servers;

	REQUIRE(*servers != '\0');
	for (const char *at = servers; *at; at++)
		REQUIRE(isalnum((unsigned char)*at) ||
			strchr(has_keys(url) ? ".-_:,[]" : ".-_:,", *at));
	for (const char *server = servers; server; server = strchr(server, ',')) {
		const char *colon;
		unsigned long port;

		server += *server == ',';
		colon = memrchr(server, ':', strcspn(server, ","));
		REQUIRE(colon && colon > server);
		port = strtoul(colon + 1, NULL, 10);
		REQUIRE(port >= 1 && port <= 65535);
	}
}

static void check_root(const struct store_url *url)
{
	const char *root = url->root;

	if (*root == '\0')
		return;
	REQUIRE(*root == '/' && !strstr(root, "//") && root[strlen(root) - 1] != '/');
	if (has_keys(url)) {
		for (const char *at = root; *at; at++)
			REQUIRE((unsigned char)*at >= ' ' && *at != '\x7f');
		REQUIRE(!strstr(root, "/./") && !strstr(root, "/../"));
		return;
	}
	/* Not encoded: so neither "." nor "..", nor a character that the server refuses. */
	REQUIRE(strcmp(root, "/zookeeper") != 0 && strncmp(root, "/zookeeper/", 11) != 0);
	REQUIRE(!strchr(root, '%') && znode_path_is_root(root));
}

/* As somebody would write it. */
static char *format(const struct store_url *url)
{
	size_t bytes;
	char *text, *list = strdup(url->servers), *rest = list, *server;
	const char *divider = "";
	FILE *out = open_memstream(&text, &bytes);

	REQUIRE(list && out);
	fprintf(out, "%s://", url->scheme);
	while ((server = strsep(&rest, ","))) {
		char *colon = strrchr(server, ':');

		*colon = '\0';
		fprintf(out, strchr(server, ':') && *server != '[' ? "%s[%s]:%s" : "%s%s:%s",
			divider, server, colon + 1);
		divider = ",";
	}
	fprintf(out, "%s", *url->root ? url->root : "/");
	fclose(out);
	free(list);
	return text;
}

static void check_again(const struct store_url *url)
{
	struct store_url again;
	char why[512], *text = format(url);

	REQUIRE(store_url_parse(text, &again, why, sizeof(why)) == 0);
	REQUIRE(strcmp(again.scheme, url->scheme) == 0);
	REQUIRE(strcmp(again.servers, url->servers) == 0 && strcmp(again.root, url->root) == 0);
	store_url_finish(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = fuzz_text(data, bytes), why[512] = "";
	struct store_url url;
	int error = store_url_parse(text, &url, why, sizeof(why));

	REQUIRE(error == 0 || error == -EINVAL);
	if (error != 0) {
		REQUIRE(why[0] != '\0' && (strchr(text, '\n') || !strchr(why, '\n')));
	} else if (strcmp(url.scheme, STORE_SCHEME_LOCAL) == 0) {
		REQUIRE(!url.servers && !url.root);
	} else {
		check_servers(&url);
		check_root(&url);
		check_again(&url);
	}
	if (error == 0)
		store_url_finish(&url);
	free(text);
	return 0;
}
