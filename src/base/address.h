/* SPDX-License-Identifier: Apache-2.0
 *
 * Numeric addresses of the internet with a port, as text: "10.0.0.7:7263", "[2001:db8::7]:7263".
 * Names are not looked up: nothing blocks. Pure functions, any thread.
 */
#ifndef DLOCKFS_BASE_ADDRESS_H
#define DLOCKFS_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Enough for any text, with its NUL. */
#define ADDRESS_TEXT_BYTES 64

/* Bytes that say nothing are zero. The longest comes first: {0} is for that one. */
union address {
	struct sockaddr_in6 ip6;
	struct sockaddr_in ip4;
	struct sockaddr any;
};

/* Reads ADDRESS, or ADDRESS:PORT, in which an IPv6 address stands in brackets; without a port the
 * address gets that one. Returns false if the text is nothing of the kind. */
bool address_parse(const char *text, uint16_t port, union address *ret);

/* Writes the address with its port, as address_parse() reads it. */
void address_format(const union address *address, char text[ADDRESS_TEXT_BYTES]);

/* How many bytes bind(2) and sendto(2) take. */
socklen_t address_bytes(const union address *address);

/* What the kernel has filled in, without what says nothing. Returns false: it is of neither kind.
 */
bool address_take(const struct sockaddr_storage *from, union address *ret);

/* Whether only this host has it. */
bool address_is_loopback(const union address *address);

bool address_equal(const union address *a, const union address *b);

/* Why no other host can send anything to the address, in words behind "it is "; NULL: it can, or
 * it is a loopback address, at which others on this host can. */
const char *address_fault(const union address *address);

#endif
