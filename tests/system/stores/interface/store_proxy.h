/* SPDX-License-Identifier: Apache-2.0
 *
 * A proxy in front of a server, in a thread, for a test that cuts connections.
 */
#ifndef DLOCKFS_STORE_PROXY_H
#define DLOCKFS_STORE_PROXY_H

#include <pthread.h>
#include <stdatomic.h>

enum link {
	LINK_PASSES,
	LINK_SILENT,
	LINK_MUTE, /* what the server says stays in the proxy */
	LINK_REFUSES,
};

#define PAIRS_MAX 16

extern struct proxy {
	pthread_t thread;
	int listener, wake;
	const char *server;
	char address[32];
	atomic_int link;
	atomic_bool stopping, breaking;
	atomic_bool lingers; /* what has come from a client that leaves is delivered nevertheless,
				and the server is not told that it has left */
	int ends[PAIRS_MAX * 2]; /* neighbours belong together; -1: free, or it has left */
} proxy;

void set_link(enum link link);

/* Breaks what is connected; new connections are accepted as before. */
void break_links(void);

/* In front of the server HOST:PORT, on a port of its own: see proxy.address. */
void start_proxy(const char *server);
void stop_proxy(void);

#endif
