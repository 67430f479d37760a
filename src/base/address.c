/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns no state. Any thread.
 */
#include "base/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* Returns false if the text is no decimal port. */
static bool parse_port(const char *text, uint16_t *ret)
{
	unsigned long port = 0;
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 5 || text[digits] != '\0')
		return false;
	for (; *text != '\0'; text++)
		port = port * 10 + (unsigned long)(*text - '0');
	if (port == 0 || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

static bool parse_ip6(const char *text, size_t bytes, uint16_t port, union address *ret)
{
	char host[INET6_ADDRSTRLEN];
	union address address = {.ip6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};

	if (bytes >= sizeof(host))
		return false;
	memcpy(host, text, bytes);
	host[bytes] = '\0';
	if (inet_pton(AF_INET6, host, &address.ip6.sin6_addr) != 1)
		return false;
	*ret = address;
	return true;
}

static bool parse_ip4(const char *text, size_t bytes, uint16_t port, union address *ret)
{
	char host[INET_ADDRSTRLEN];
	union address address = {0};

	if (bytes >= sizeof(host))
		return false;
	memcpy(host, text, bytes);
	host[bytes] = '\0';
	address.ip4.sin_family = AF_INET;
	address.ip4.sin_port = htons(port);
	if (inet_pton(AF_INET, host, &address.ip4.sin_addr) != 1)
		return false;
	*ret = address;
	return true;
}

bool address_parse(const char *text, uint16_t port, union address *ret)
{
	bool has_brackets = text[0] == '[';
	const char *host = text + (has_brackets ? 1 : 0);
	size_t bytes = strcspn(host, has_brackets ? "]" : ":");
	const char *rest = host + bytes;

	if (has_brackets && *rest++ != ']')
		return false;
	if (*rest != '\0' && (*rest != ':' || !parse_port(rest + 1, &port)))
		return false;
	return has_brackets ? parse_ip6(host, bytes, port, ret) : parse_ip4(host, bytes, port, ret);
}

void address_format(const union address *address, char text[ADDRESS_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "";

	if (address->any.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &address->ip6.sin6_addr, host, sizeof(host));
		snprintf(text, ADDRESS_TEXT_BYTES, "[%s]:%u", host, ntohs(address->ip6.sin6_port));
	} else {
		inet_ntop(AF_INET, &address->ip4.sin_addr, host, sizeof(host));
		snprintf(text, ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(address->ip4.sin_port));
	}
}

socklen_t address_bytes(const union address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->ip6) : sizeof(address->ip4);
}

bool address_take(const struct sockaddr_storage *from, union address *ret)
{
	union address found, address = {0};

	memcpy(&found, from, sizeof(found));
	if (from->ss_family == AF_INET6) {
		address.ip6.sin6_family = AF_INET6;
		address.ip6.sin6_port = found.ip6.sin6_port;
		address.ip6.sin6_addr = found.ip6.sin6_addr;
	} else if (from->ss_family == AF_INET) {
		address.ip4.sin_family = AF_INET;
		address.ip4.sin_port = found.ip4.sin_port;
		address.ip4.sin_addr = found.ip4.sin_addr;
	} else {
		return false;
	}
	*ret = address;
	return true;
}

bool address_equal(const union address *a, const union address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET6)
		return a->ip6.sin6_port == b->ip6.sin6_port &&
		       IN6_ARE_ADDR_EQUAL(&a->ip6.sin6_addr, &b->ip6.sin6_addr);
	return a->ip4.sin_port == b->ip4.sin_port &&
	       a->ip4.sin_addr.s_addr == b->ip4.sin_addr.s_addr;
}

static const char *fault_of_ip6(const struct in6_addr *address)
{
	if (IN6_IS_ADDR_UNSPECIFIED(address))
		return "that of all interfaces";
	if (IN6_IS_ADDR_MULTICAST(address))
		return "that of a group";
	if (IN6_IS_ADDR_LINKLOCAL(address))
		return "of one link alone";
	if (IN6_IS_ADDR_V4MAPPED(address))
		return "an IPv4 address in another form";
	return NULL;
}

static const char *fault_of_ip4(uint32_t address)
{
	if (address >> 24 == 0)
		return "that of all interfaces";
	if (address >> 28 == 0xe)
		return "that of a group";
	if (address >> 28 == 0xf)
		return "no address of a host";
	return NULL;
}

const char *address_fault(const union address *address)
{
	return address->any.sa_family == AF_INET6
		       ? fault_of_ip6(&address->ip6.sin6_addr)
		       : fault_of_ip4(ntohl(address->ip4.sin_addr.s_addr));
}

bool address_is_loopback(const union address *address)
{
	return address->any.sa_family == AF_INET6
		       ? IN6_IS_ADDR_LOOPBACK(&address->ip6.sin6_addr)
		       : ntohl(address->ip4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}
