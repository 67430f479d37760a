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

#include "base/escape.h"
#include "claim/znode_path.h"

#ifdef HAVE_ETCD
const bool store_url_has_etcd = true;
#else
const bool store_url_has_etcd = false;
#endif
#ifdef HAVE_REDIS
const bool store_url_has_redis = true;
#else
const bool store_url_has_redis = false;
#endif

#define LOCAL_URL      STORE_SCHEME_LOCAL ":"
#define DEFAULT_ROOT   "/dlockfs"
#define STATUS_NAME    ".dlockfs"
#define HOST_BYTES_MAX 255
#define PORT_BYTES_MAX 5

/* What is before "://" and decides about what is behind it. */
struct scheme {
	const char *name;
	const char *store; /* STORE_SCHEME_... */
	const char *default_port;
	bool has_brackets; /* of IPv6 addresses, in store_url.servers */
	bool has_user;	   /* there may be "user:password@" */
	bool has_tls;
	bool has_service; /* behind the servers is "/SERVICE" */
	/* Whether "/path" without a slash at its end is one. */
	bool (*is_root)(const char *root);
	const char *expected_root;
	/* Whether this build has it, and what the meson option is called. NULL: any build has. */
	const bool *is_built;
	const char *option;
};

/* What is being parsed. */
struct parse {
	const char *text;
	char *shown;		/* the text without user and password, for people */
	const char *secret_end; /* behind them, in the text: nothing before that is shown */
	const struct scheme *scheme;
	char *why;
	size_t why_bytes;
};

/* Says that `bytes` of `what` are wrong. Always -EINVAL. */
static int reject(const struct parse *parse, const char *kind, const char *what, size_t bytes,
		  const char *expected)
{
	if (what < parse->secret_end)
		what = "***", bytes = strlen(what);
	snprintf(parse->why, parse->why_bytes, "bad %s \"%.*s\" in store \"%s\", expected %s", kind,
		 (int)bytes, what, parse->shown, expected);
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

/* A path that is what keys begin with: any bytes would do. */
static bool is_prefix(const char *root)
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

#define EXPECTED_NAMES                                                                             \
	"printable names divided by single slashes, none of them \".\", \"..\" or \"" STATUS_NAME  \
	"\""

static const struct scheme schemes[] = {
	{
		.name = STORE_SCHEME_ZOOKEEPER,
		.store = STORE_SCHEME_ZOOKEEPER,
		.default_port = "2181",
		.is_root = znode_path_is_root,
		.expected_root = "printable names divided by single slashes, none of them \".\" or "
				 "\"..\" or with a '%', the first not \"zookeeper\"",
	},
	{
		.name = STORE_SCHEME_ETCD,
		.store = STORE_SCHEME_ETCD,
		.default_port = "2379",
		.has_brackets = true,
		.is_root = is_prefix,
		.expected_root = EXPECTED_NAMES,
		.is_built = &store_url_has_etcd,
		.option = "etcd",
	},
	{
		.name = STORE_SCHEME_REDIS,
		.store = STORE_SCHEME_REDIS,
		.default_port = "6379",
		.has_brackets = true,
		.has_user = true,
		.is_root = is_prefix,
		.expected_root = EXPECTED_NAMES,
		.is_built = &store_url_has_redis,
		.option = "redis",
	},
	{
		.name = STORE_SCHEME_REDIS "s",
		.store = STORE_SCHEME_REDIS,
		.default_port = "6379",
		.has_brackets = true,
		.has_user = true,
		.has_tls = true,
		.is_root = is_prefix,
		.expected_root = EXPECTED_NAMES,
		.is_built = &store_url_has_redis,
		.option = "redis",
	},
	{
		.name = STORE_SCHEME_REDIS "+sentinel",
		.store = STORE_SCHEME_REDIS,
		.default_port = "26379",
		.has_brackets = true,
		.has_user = true,
		.has_service = true,
		.is_root = is_prefix,
		.expected_root = EXPECTED_NAMES,
		.is_built = &store_url_has_redis,
		.option = "redis",
	},
	{
		.name = STORE_SCHEME_REDIS "s+sentinel",
		.store = STORE_SCHEME_REDIS,
		.default_port = "26379",
		.has_brackets = true,
		.has_user = true,
		.has_tls = true,
		.has_service = true,
		.is_root = is_prefix,
		.expected_root = EXPECTED_NAMES,
		.is_built = &store_url_has_redis,
		.option = "redis",
	},
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

/* Takes "/SERVICE" off the path, and puts it behind the servers. */
static int parse_service(const struct parse *parse, const char **path, char **servers)
{
	const char *name = **path == '/' ? *path + 1 : *path;
	size_t bytes = strcspn(name, "/");
	char *with_name;

	if (!is_host_name(name, bytes))
		return reject(parse, "service", name, bytes,
			      "the name by which the Sentinels know it, as in /mymaster/dlockfs");
	if (asprintf(&with_name, "%s/%.*s", *servers, (int)bytes, name) < 0)
		return -ENOMEM;
	free(*servers);
	*servers = with_name;
	*path = name + bytes;
	return 0;
}

/* One of user and password, of `bytes`, each of which may be %XX. Returns 0, and NULL if it is
 * empty; or -EINVAL or -ENOMEM. */
static int decode(const char *text, size_t bytes, char **ret)
{
	size_t escapes = 0;
	char *to = bytes > 0 ? malloc(bytes + 1) : NULL;

	if (bytes > 0 && to == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < bytes; i++)
		escapes += text[i] == '%';
	if (to != NULL) {
		escape_decode_lenient(to, bytes + 1, text, bytes);
		if (strlen(to) != bytes - 2 * escapes) {
			explicit_bzero(to, bytes);
			free(to);
			return -EINVAL;
		}
	}
	*ret = to;
	return 0;
}

/* Parses the `bytes` of "user:password". */
static int parse_user(const struct parse *parse, const char *text, size_t bytes,
		      struct store_url *url)
{
	const char *colon = memchr(text, ':', bytes);
	size_t user_bytes = colon != NULL ? (size_t)(colon - text) : bytes;
	char *password = NULL;
	int error = decode(text, user_bytes, &url->user);

	if (!error && colon != NULL)
		error = decode(colon + 1, bytes - user_bytes - 1, &password);
	if (!error && password != NULL) {
		error = secret_make(password, strlen(password), &url->password);
		explicit_bzero(password, strlen(password));
	}
	free(password);
	return error == -EINVAL
		       ? reject(parse, "user or password", text, bytes,
				"printable ones, with %XX for what has a meaning in an address")
		       : error;
}

/* `list` is what is behind "://". */
static int parse_remote(const struct parse *parse, const char *list, struct store_url *ret)
{
	struct store_url url = {.scheme = parse->scheme->store, .has_tls = parse->scheme->has_tls};
	size_t bytes = strcspn(list, "/");
	const char *at = parse->scheme->has_user ? memrchr(list, '@', bytes) : NULL;
	int error = 0;

	if (at != NULL) {
		error = parse_user(parse, list, (size_t)(at - list), &url);
		bytes -= (size_t)(at + 1 - list);
		list = at + 1;
	}
	if (!error)
		error = parse_servers(parse, list, bytes, &url.servers);
	list += bytes;
	if (!error && parse->scheme->has_service)
		error = parse_service(parse, &list, &url.servers);
	if (!error)
		error = parse_root(parse, list, &url.root);
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
	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		size_t bytes = strlen(schemes[i].name);

		if (strncmp(text, schemes[i].name, bytes) == 0 &&
		    strncmp(text + bytes, "://", 3) == 0) {
			*ret = text + bytes + 3;
			return &schemes[i];
		}
	}
	return NULL;
}

/* The text for people: what may be a password is up to the last "@", wherever that is. */
static int hide_secret(struct parse *parse, const char *list)
{
	const char *at =
		parse->scheme == NULL || parse->scheme->has_user ? strrchr(parse->text, '@') : NULL;

	parse->secret_end = at != NULL ? at + 1 : NULL;
	if (at == NULL)
		parse->shown = strdup(parse->text);
	else if (asprintf(&parse->shown, "%.*s***%s", list != NULL ? (int)(list - parse->text) : 0,
			  parse->text, at) < 0)
		parse->shown = NULL;
	return parse->shown != NULL ? 0 : -ENOMEM;
}

static int parse_text(const struct parse *parse, const char *list, struct store_url *ret)
{
	const struct scheme *scheme = parse->scheme;

	if (strcmp(parse->text, LOCAL_URL) == 0) {
		*ret = (struct store_url){.scheme = STORE_SCHEME_LOCAL};
		return 0;
	}
	if (scheme == NULL) {
		snprintf(parse->why, parse->why_bytes,
			 "bad store \"%s\", expected " STORE_URL_FORMS, parse->shown);
		return -EINVAL;
	}
	if (scheme->is_built != NULL && !*scheme->is_built) {
		snprintf(parse->why, parse->why_bytes,
			 "store \"%s\", but this dlockfs was built without %s, expected another "
			 "store, or a build with -D%s=enabled",
			 parse->shown, scheme->option, scheme->option);
		return -EINVAL;
	}
	return parse_remote(parse, list, ret);
}

int store_url_parse(const char *text, struct store_url *ret, char *why, size_t why_bytes)
{
	const char *list = NULL;
	struct parse parse = {
		.text = text,
		.scheme = find_scheme(text, &list),
		.why = why,
		.why_bytes = why_bytes,
	};
	int error = hide_secret(&parse, list);

	if (!error)
		error = parse_text(&parse, list, ret);
	if (error == -ENOMEM)
		snprintf(why, why_bytes, "out of memory");
	free(parse.shown);
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

bool store_url_has_sentinels(const struct store_url *url)
{
	return strchr(url->servers, '/') != NULL;
}

void store_url_finish(struct store_url *url)
{
	free(url->servers);
	free(url->root);
	free(url->user);
	secret_destroy(url->password);
	*url = (struct store_url){0};
}
