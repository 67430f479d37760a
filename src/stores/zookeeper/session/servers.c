/* SPDX-License-Identifier: Apache-2.0
 *
 * After each failed attempt the client library goes two addresses further in its list: one step in
 * handle_error(), another one in zookeeper_interest(). If their number is even, the library never
 * tries every other address, and jumps over the end of the list, where it would pause. So one
 * address is then listed twice.
 */
#include "stores/zookeeper/session/servers.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An IPv6 address in text with its zone, a colon and a port. */
#define ADDRESS_BYTES 80

/* Writes the address as the library reads it. */
static void format_address(const struct addrinfo *address, char text[ADDRESS_BYTES])
{
	char host[64], port[8];

	if (getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(text, ADDRESS_BYTES, "%s:%s", host, port);
}

/* Looks the `bytes` of "host:port" up as the library does. Returns how many addresses the name has,
 * or 0 and the error in *ret_error. If `first` is empty, fills in the first address. */
static size_t count_addresses(const char *server, size_t bytes, char first[ADDRESS_BYTES],
			      int *ret_error)
{
	const struct addrinfo hints = {
		.ai_flags = AI_ADDRCONFIG,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_protocol = IPPROTO_TCP,
	};
	struct addrinfo *found = NULL;
	char *host = strndup(server, bytes);
	char *port = host != NULL ? strrchr(host, ':') : NULL;
	size_t count = 0;
	int error = EAI_NONAME;

	if (port != NULL)
		*port++ = '\0';
	if (port != NULL)
		error = getaddrinfo(host, port, &hints, &found);
	if (error == 0) {
		for (const struct addrinfo *address = found; address != NULL;
		     address = address->ai_next)
			count++;
		if (*first == '\0')
			format_address(found, first);
		freeaddrinfo(found);
	} else {
		*ret_error = error;
	}
	free(host);
	return count;
}

char *zookeeper_servers_show(const char *servers)
{
	char *text = malloc(2 * strlen(servers) + 1), *out = text;

	for (const char *server = servers; text != NULL && *server != '\0';) {
		size_t bytes = strcspn(server, ",");
		const char *colon = memrchr(server, ':', bytes);
		size_t host_bytes = colon != NULL ? (size_t)(colon - server) : bytes;
		bool is_ipv6 = memchr(server, ':', host_bytes) != NULL;

		out = stpcpy(out, is_ipv6 ? "[" : "");
		out = mempcpy(out, server, host_bytes);
		out = stpcpy(out, is_ipv6 ? "]" : "");
		bytes += server[bytes] == ',';
		out = mempcpy(out, server + host_bytes, bytes - host_bytes);
		server += bytes;
	}
	if (text != NULL)
		*out = '\0';
	return text;
}

/* Takes the brackets away: the library resolves what stands before the last colon. */
static char *strip(const char *servers)
{
	char *text = malloc(strlen(servers) + 1), *out = text;

	for (const char *at = servers; text != NULL && *at != '\0'; at++) {
		if (*at != '[' && *at != ']')
			*out++ = *at;
	}
	if (text != NULL)
		*out = '\0';
	return text;
}

char *zookeeper_servers_list(const char *servers, bool *several, int *ret_error)
{
	char first[ADDRESS_BYTES] = "", *list, *plain = strip(servers);
	size_t count = 0;
	int error = 0;

	*several = false;
	*ret_error = 0;
	if (plain == NULL)
		return NULL;
	for (const char *server = plain; *server != '\0';) {
		size_t bytes = strcspn(server, ",");

		count += count_addresses(server, bytes, first, &error);
		server += bytes + (server[bytes] == ',');
	}
	*several = count > 1;
	*ret_error = count == 0 ? error : 0;
	if (count % 2 == 1 || *first == '\0')
		return plain;
	if (asprintf(&list, "%s,%s", plain, first) < 0)
		list = NULL;
	free(plain);
	return list;
}
