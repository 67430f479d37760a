/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of a store's address. Must not resolve names or connect. Pure functions, any
 * thread.
 */
#include "config/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim/znode_path.h"

#ifdef HAVE_ETCD
const bool store_url_has_etcd = true;
#else
const bool store_url_has_etcd = false;
#endif

#define LOCAL_URL      STORE_SCHEME_LOCAL ":"
#define DEFAULT_ROOT   "/dlockfs"
#define STATUS_NAME    ".dlockfs"
#define HOST_BYTES_MAX 255
#define PORT_BYTES_MAX 5

/* What is before "://" and decides about what is behind it. */
struct scheme {
	const char *name;
	const char *default_port;
	bool has_brackets; /* of IPv6 addresses, in store_url.servers */
	/* Whether "/path" without a slash at its end is one. */
	bool (*is_root)(const char *root);
	const char *expected_root;
};

/* What is being parsed. */
struct parse {
	const char *text;
	const struct scheme *scheme;
	char *why;
	size_t why_bytes;
};

/* Says that `bytes` of `what` are wrong. Always -EINVAL. */
static int reject(const struct parse *parse, const char *kind, const char *what, size_t bytes,
		  const char *expected)
{
	snprintf(parse->why, parse->why_bytes, "bad %s \"%.*s\" in store \"%s\", expected %s", kind,
		 (int)bytes, what, parse->text, expected);
	return -EINVAL;
}

static bool is_host_name(const char *host, size_t bytes)
{
	if (bytes == 0 || bytes > HOST_BYTES_MAX)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (!isalnum((unsigned char)host[i]) && strchr(".-_", host[i]) == NULL)
			return false;
	}
	return true;
}

static bool is_ipv6(const char *host, size_t bytes)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (bytes >= sizeof(text))
		return false;
	memcpy(text, host, bytes);
	text[bytes] = '\0';
	return inet_pton(AF_INET6, text, &address) == 1;
}

static bool is_port(const char *port, size_t bytes)
{
	unsigned value = 0;

	if (bytes == 0 || bytes > PORT_BYTES_MAX)
		return false;
	for (size_t i = 0; i < bytes; i++) {
		if (!isdigit((unsigned char)port[i]))
			return false;
		value = value * 10 + (unsigned)(port[i] - '0');
	}
	return value >= 1 && value <= 65535;
}

/* Appends one "host[:port]" of `bytes` to *out as "host:port". */
static int parse_server(const struct parse *parse, const char *server, size_t bytes, char **out)
{
	static const char expected_host[] =
		"a name, an IPv4 address or an IPv6 address in brackets";
	const char *host = server, *end = server + bytes, *colon;
	size_t host_bytes;
	bool valid;

	if (bytes > 0 && *server == '[') {
		const char *bracket = memchr(server, ']', bytes);

		host++;
		host_bytes = bracket != NULL ? (size_t)(bracket - host) : 0;
		colon = bracket != NULL ? bracket + 1 : end;
		valid = bracket != NULL && is_ipv6(host, host_bytes) &&
			(colon == end || *colon == ':');
	} else {
		/* The last one, so that an IPv6 address without brackets is quoted as a whole. */
		colon = memrchr(server, ':', bytes);
		if (colon == NULL)
			colon = end;
		host_bytes = (size_t)(colon - host);
		valid = is_host_name(host, host_bytes);
	}
	if (!valid)
		return reject(parse, "host", server, bytes, expected_host);
	if (colon < end && !is_port(colon + 1, (size_t)(end - colon - 1)))
		return reject(parse, "port", colon + 1, (size_t)(end - colon - 1),
			      "a number from 1 to 65535");

	if (parse->scheme->has_brackets)
		*out = mempcpy(*out, server, (size_t)(colon - server));
	else
		*out = mempcpy(*out, host, host_bytes);
	if (colon < end)
		*out = mempcpy(*out, colon, (size_t)(end - colon));
	else
		*out = stpcpy(stpcpy(*out, ":"), parse->scheme->default_port);
	return 0;
}

/* Parses the `bytes` of "host[:port][,host[:port]...]". */
static int parse_servers(const struct parse *parse, const char *list, size_t bytes, char **ret)
{
	const char *end = list + bytes;
	/* Even a host of one character grows by no more than a port. */
	char *servers = malloc((bytes + 1) * (1 + strlen(":") + PORT_BYTES_MAX) + 1);
	char *out = servers;
	int error = servers != NULL ? 0 : -ENOMEM;

	while (!error) {
		const char *comma = memchr(list, ',', (size_t)(end - list));

		error = parse_server(parse, list, (size_t)((comma != NULL ? comma : end) - list),
				     &out);
		if (comma == NULL)
			break;
		*out++ = ',';
		list = comma + 1;
	}
	if (error) {
		free(servers);
		return error;
	}
	*out = '\0';
	*ret = servers;
	return 0;
}

/* In etcd a path is what keys begin with: any bytes would do. */
static bool is_etcd_root(const char *root)
{
	while (*root == '/') {
		const char *name = ++root;
		size_t bytes = strcspn(name, "/");

		root += bytes;
		if (bytes == 0 || (bytes <= 2 && strncmp(name, "..", bytes) == 0) ||
		    (bytes == strlen(STATUS_NAME) && strncmp(name, STATUS_NAME, bytes) == 0))
			return false;
		for (size_t i = 0; i < bytes; i++) {
			if ((unsigned char)name[i] < ' ' || name[i] == '\x7f')
				return false;
		}
	}
	return true;
}

static const struct scheme zookeeper = {
	STORE_SCHEME_ZOOKEEPER,
	"2181",
	false,
	znode_path_is_root,
	"printable names divided by single slashes, none of them \".\" or \"..\" or with a '%', "
	"the "
	"first not \"zookeeper\"",
};

static const struct scheme etcd = {
	STORE_SCHEME_ETCD,
	"2379",
	true,
	is_etcd_root,
	"printable names divided by single slashes, none of them \".\", \"..\" or \"" STATUS_NAME
	"\"",
};

/* Parses the text after the servers: "", "/" or "/path" with or without a slash at its end. */
static int parse_root(const struct parse *parse, const char *path, char **ret)
{
	char *root = strdup(*path ? path : DEFAULT_ROOT);
	size_t bytes;

	if (root == NULL)
		return -ENOMEM;
	bytes = strlen(root);
	if (root[bytes - 1] == '/')
		root[--bytes] = '\0';
	if (bytes == 0 || parse->scheme->is_root(root)) {
		*ret = root;
		return 0;
	}
	free(root);
	return reject(parse, "path", path, strlen(path), parse->scheme->expected_root);
}

/* `list` is what is behind "://". */
static int parse_remote(const struct parse *parse, const char *list, struct store_url *ret)
{
	struct store_url url = {.scheme = parse->scheme->name};
	size_t bytes = strcspn(list, "/");
	int error;

	error = parse_servers(parse, list, bytes, &url.servers);
	if (!error)
		error = parse_root(parse, list + bytes, &url.root);
	if (error) {
		store_url_finish(&url);
		return error;
	}
	*ret = url;
	return 0;
}

/* Returns NULL if the text begins with no scheme of servers; else *ret is what is behind it. */
static const struct scheme *find_scheme(const char *text, const char **ret)
{
	static const struct scheme *const schemes[] = {&zookeeper, &etcd};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		size_t bytes = strlen(schemes[i]->name);

		if (strncmp(text, schemes[i]->name, bytes) == 0 &&
		    strncmp(text + bytes, "://", 3) == 0) {
			*ret = text + bytes + 3;
			return schemes[i];
		}
	}
	return NULL;
}

int store_url_parse(const char *text, struct store_url *ret, char *why, size_t why_bytes)
{
	const char *list = NULL;
	const struct parse parse = {text, find_scheme(text, &list), why, why_bytes};
	int error;

	if (strcmp(text, LOCAL_URL) == 0) {
		*ret = (struct store_url){.scheme = STORE_SCHEME_LOCAL};
		return 0;
	}
	if (parse.scheme == NULL) {
		snprintf(why, why_bytes, "bad store \"%s\", expected " STORE_URL_FORMS, text);
		return -EINVAL;
	}
	if (parse.scheme == &etcd && !store_url_has_etcd) {
		snprintf(why, why_bytes,
			 "store \"%s\", but this dlockfs was built without etcd, expected another "
			 "store, or a build with -Detcd=enabled",
			 text);
		return -EINVAL;
	}
	error = parse_remote(&parse, list, ret);
	if (error == -ENOMEM)
		snprintf(why, why_bytes, "out of memory");
	return error;
}

static bool is_same(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

bool store_url_equal(const struct store_url *a, const struct store_url *b)
{
	return is_same(a->scheme, b->scheme) && is_same(a->servers, b->servers) &&
	       is_same(a->root, b->root);
}

void store_url_finish(struct store_url *url)
{
	free(url->servers);
	free(url->root);
	*url = (struct store_url){0};
}
