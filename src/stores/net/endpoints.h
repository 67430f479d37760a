/* SPDX-License-Identifier: Apache-2.0
 *
 * The servers, their addresses, and which server is next: in the order of the list, from a random
 * server on, each with all of its addresses. After a round of failures there is a pause, which
 * doubles from round to round.
 *
 * Names are resolved by c-ares (/etc/hosts and DNS): nothing blocks. Loop thread.
 */
#ifndef DLOCKFS_STORES_NET_ENDPOINTS_H
#define DLOCKFS_STORES_NET_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ENDPOINTS_PAUSE_MIN_MS 50
#define ENDPOINTS_PAUSE_MAX_MS 2000

struct endpoints;

struct endpoint {
	char *name;	 /* as in the list: "host:port" */
	char *host;	 /* without the port */
	char *authority; /* with brackets around an IPv6 address */
	uint16_t port;
};

/* Takes "host:port,host:port"; an IPv6 address is followed by its port after the last colon. The
 * sockets of c-ares are kept in `epoll`, with ENDPOINTS_EVENT of them as data. Returns NULL and
 * errno: ENOMEM or EINVAL. */
struct endpoints *endpoints_create(const char *servers, int epoll);
void endpoints_destroy(struct endpoints *endpoints);

#define ENDPOINTS_EVENT(descriptor) ((uint64_t)1 << 32 | (uint32_t)(descriptor))
#define ENDPOINTS_IS_EVENT(data)    ((data) >> 32 == 1)

/* The server whose turn it is. */
const struct endpoint *endpoints_server(const struct endpoints *endpoints);

/* Its number in the list, from 0. */
int endpoints_number(const struct endpoints *endpoints);

/* The next server is that with this number, with this address alone. */
void endpoints_turn_to(struct endpoints *endpoints, int number,
		       const struct sockaddr_storage *address, socklen_t address_bytes);

/* Begins to look for the addresses of that server. Returns 0; or -EIO and `why`. */
int endpoints_resolve(struct endpoints *endpoints, char *why, size_t why_bytes);

/* Goes on with the look-up after an event of a socket (0 for `data`: after a time). Returns 1 once
 * the addresses are there, 0 if they are not yet; or -EIO and `why`. */
int endpoints_advance(struct endpoints *endpoints, uint64_t data, uint32_t events, char *why,
		      size_t why_bytes);

/* In how many milliseconds endpoints_advance() is due at the latest: `limit_ms` at most. */
int64_t endpoints_wait_ms(const struct endpoints *endpoints, int64_t limit_ms);

/* The next address of the server; NULL: there is none. Valid until the server changes. */
const struct sockaddr *endpoints_address(struct endpoints *endpoints, socklen_t *bytes);

/* Whether there is another one. */
bool endpoints_has_address(const struct endpoints *endpoints);

/* The address is a good one: the others of the server are not tried. */
void endpoints_keep(struct endpoints *endpoints);

/* The server has failed: the next server has its turn. Returns the pause before that, in ms. */
int64_t endpoints_fail(struct endpoints *endpoints);

/* A server has proved to be good: the next failure begins a round, with the least pause. */
void endpoints_begin_round(struct endpoints *endpoints);

#endif
