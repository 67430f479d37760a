/* SPDX-License-Identifier: Apache-2.0 */
#include "web/settings.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/mount.h"

#define DEFAULT_LISTEN "127.0.0.1:8470"
#define DEFAULT_RED_S  3600
#define MOST_RED_MS    (365LL * 24 * 3600 * 1000)

enum { OPTION_LISTEN = OPTION_OWN, OPTION_HOST, OPTION_RED };

static const struct command command = {
	.name = "serve",
	.usage = "[OPTION...]",
	.help = "a page with the locks, for a browser, and the same for programs",
	.more = "dlockctl serve --help has the options.\n",
};

/* "127.0.0.1:8470", "[::1]:8470", cut in two in place. */
static bool split(char *text, char **ret_address, char **ret_port)
{
	char *colon = strrchr(text, ':'), *end = colon;

	if (colon == NULL)
		return false;
	if (text[0] == '[' && colon > text && colon[-1] == ']') {
		text++;
		end = colon - 1;
	}
	*end = '\0';
	*ret_address = text;
	*ret_port = colon + 1;
	return true;
}

static int set_listen(struct settings *settings, const char *word)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char *text = must(strdup(word)), *address, *port;
	long long number;
	bool valid = split(text, &address, &port) && *address != '\0' &&
		     parse_number(port, 0, 65535, &number) &&
		     getaddrinfo(address, port, &hints, &found) == 0;

	if (valid) {
		memcpy(&settings->address, found->ai_addr, found->ai_addrlen);
		settings->address_bytes = found->ai_addrlen;
		freeaddrinfo(found);
	}
	free(text);
	return valid ? -1
		     : fail(EX_USAGE,
			    "--listen %s: is no address with a port; expected one like "
			    "127.0.0.1:8470 or [::1]:8470",
			    word);
}

static int add_name(struct settings *settings, const char *word)
{
	if (*word == '\0' || strpbrk(word, ":/ ") != NULL)
		return fail(EX_USAGE,
			    "--host %s: is no name; expected one like locks.example.org, without a "
			    "port",
			    word);
	settings->names = must(
		reallocarray(settings->names, settings->names_count + 1, sizeof(*settings->names)));
	settings->names[settings->names_count++] = word;
	return -1;
}

static int set_red(struct settings *settings, const char *word)
{
	long long ms;

	if (!parse_time(word, MOST_RED_MS, &ms) || ms < 1000)
		return fail(EX_USAGE, "--red %s: is no time; expected one like 90s, 5m, 1h or 1d",
			    word);
	settings->red_s = ms / 1000;
	return -1;
}

static int set_option(struct settings *settings, struct context *context, int letter, char **argv)
{
	switch (letter) {
	case OPTION_LISTEN:
		return set_listen(settings, optarg);
	case OPTION_HOST:
		return add_name(settings, optarg);
	case OPTION_RED:
		return set_red(settings, optarg);
	default:
		return common_option(context, letter, argv);
	}
}

int settings_read(struct settings *settings, int argc, char **argv)
{
	static const struct option options[] = {{"listen", required_argument, NULL, OPTION_LISTEN},
						{"host", required_argument, NULL, OPTION_HOST},
						{"red", required_argument, NULL, OPTION_RED},
						COMMON_OPTIONS};
	struct context context = {.command = &command};
	struct place place;
	int letter, status;

	*settings = (struct settings){.red_s = DEFAULT_RED_S};
	opterr = 0;
	status = set_listen(settings, DEFAULT_LISTEN);
	while (status < 0 && (letter = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		status = set_option(settings, &context, letter, argv);
	if (status < 0)
		status = check_words(&context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(&context, NULL, &place);
	settings->mount = place.mount;
	return status == 0 ? -1 : status;
}

void settings_finish(struct settings *settings)
{
	free(settings->mount);
	free(settings->names);
}

/* An address by which it is reached, in its 16 bytes, IPv4 as ::ffff:127.0.0.1. */
static bool read_address(const char *text, struct in6_addr *ret)
{
	struct in_addr four;

	if (inet_pton(AF_INET, text, &four) == 1) {
		*ret = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
		memcpy(&ret->s6_addr[12], &four, sizeof(four));
		return true;
	}
	return inet_pton(AF_INET6, text, ret) == 1;
}

static struct in6_addr own_address(const struct settings *settings)
{
	struct in6_addr address = {0};

	if (settings->address.ss_family == AF_INET) {
		const struct sockaddr_in *four = (const void *)&settings->address;
		address.s6_addr[10] = address.s6_addr[11] = 0xff;
		memcpy(&address.s6_addr[12], &four->sin_addr, sizeof(four->sin_addr));
	} else {
		address = ((const struct sockaddr_in6 *)&settings->address)->sin6_addr;
	}
	return address;
}

static bool is_loopback(const struct in6_addr *address)
{
	return IN6_IS_ADDR_LOOPBACK(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

/* 0.0.0.0 and ::. */
static bool is_any(const struct in6_addr *address)
{
	static const unsigned char nothing[4];

	return IN6_IS_ADDR_UNSPECIFIED(address) ||
	       (IN6_IS_ADDR_V4MAPPED(address) && memcmp(&address->s6_addr[12], nothing, 4) == 0);
}

static bool has_name(const struct settings *settings, const char *name)
{
	struct in6_addr address, own = own_address(settings);

	if (strcasecmp(name, "localhost") == 0)
		return true;
	for (size_t i = 0; i < settings->names_count; i++) {
		if (strcasecmp(name, settings->names[i]) == 0)
			return true;
	}
	return read_address(name, &address) &&
	       (is_any(&own) || is_loopback(&address) || memcmp(&address, &own, sizeof(own)) == 0);
}

bool settings_have_host(const struct settings *settings, const char *host)
{
	char *text = must(strdup(host)), *name = text, *end;
	bool valid = true;

	if (*name == '[') {
		name++;
		end = strchr(name, ']');
		valid = end != NULL && (end[1] == '\0' || end[1] == ':');
	} else {
		end = strchr(name, ':');
	}
	if (end != NULL)
		*end = '\0';
	valid = valid && has_name(settings, name);
	free(text);
	return valid;
}
