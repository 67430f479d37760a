/* SPDX-License-Identifier: Apache-2.0 */
#include "store_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

struct proxy proxy;

static void close_pair(int i)
{
	for (int end = i & ~1; end <= (i | 1); end++) {
		if (proxy.ends[end] >= 0)
			close(proxy.ends[end]);
		proxy.ends[end] = -1;
	}
}

static void accept_link(void)
{
	struct sockaddr_in target = {.sin_family = AF_INET};
	int near = accept(proxy.listener, NULL, NULL);
	int far = socket(AF_INET, SOCK_STREAM, 0);
	int i = 0;

	target.sin_port = htons((uint16_t)atoi(strrchr(proxy.server, ':') + 1));
	target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (i < PAIRS_MAX * 2 && (proxy.ends[i] >= 0 || proxy.ends[i + 1] >= 0))
		i += 2;
	if (i == PAIRS_MAX * 2 || proxy.link == LINK_REFUSES ||
	    connect(far, (struct sockaddr *)&target, sizeof(target)) < 0) {
		close(near);
		close(far);
		return;
	}
	proxy.ends[i] = near;
	proxy.ends[i + 1] = far;
}

static void forward(int i)
{
	char buffer[65536];
	ssize_t bytes = recv(proxy.ends[i], buffer, sizeof(buffer), 0);

	for (ssize_t sent = 0, n; sent < bytes; sent += n) {
		n = send(proxy.ends[i ^ 1], buffer + sent, (size_t)(bytes - sent), MSG_NOSIGNAL);
		if (n < 0) {
			bytes = 0;
			break;
		}
	}
	if (bytes > 0)
		return;
	if (proxy.lingers && i % 2 == 0 && proxy.ends[i + 1] >= 0) {
		close(proxy.ends[i]);
		proxy.ends[i] = -1;
	} else {
		close_pair(i);
	}
}

static void *run_proxy(void *context)
{
	struct pollfd polled[PAIRS_MAX * 2 + 2];
	eventfd_t count;

	while (!proxy.stopping) {
		enum link link = (enum link)proxy.link;
		bool breaks = atomic_exchange(&proxy.breaking, false);

		for (int i = 0; i < PAIRS_MAX * 2; i++) {
			if ((breaks || proxy.link == LINK_REFUSES) && proxy.ends[i] >= 0)
				close_pair(i);
			bool passes = link == LINK_PASSES || (link == LINK_MUTE && i % 2 == 0);
			polled[i] = (struct pollfd){passes ? proxy.ends[i] : -1, POLLIN, 0};
		}
		polled[PAIRS_MAX * 2] =
			(struct pollfd){proxy.link == LINK_SILENT ? -1 : proxy.listener, POLLIN, 0};
		polled[PAIRS_MAX * 2 + 1] = (struct pollfd){proxy.wake, POLLIN, 0};
		poll(polled, PAIRS_MAX * 2 + 2, -1);
		if (polled[PAIRS_MAX * 2 + 1].revents) {
			eventfd_read(proxy.wake, &count);
			continue;
		}
		for (int i = 0; i < PAIRS_MAX * 2; i++)
			if (polled[i].revents && proxy.ends[i] >= 0)
				forward(i);
		if (polled[PAIRS_MAX * 2].revents)
			accept_link();
	}
	return NULL;
}

void set_link(enum link link)
{
	proxy.link = link;
	eventfd_write(proxy.wake, 1);
}

void break_links(void)
{
	proxy.breaking = true;
	eventfd_write(proxy.wake, 1);
}

void start_proxy(const char *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy.server = server;
	proxy.listener = socket(AF_INET, SOCK_STREAM, 0);
	proxy.wake = eventfd(0, EFD_NONBLOCK);
	memset(proxy.ends, -1, sizeof(proxy.ends));
	if (bind(proxy.listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(proxy.listener, 16) < 0 ||
	    getsockname(proxy.listener, (struct sockaddr *)&address, &bytes) < 0 ||
	    pthread_create(&proxy.thread, NULL, run_proxy, NULL) != 0) {
		perror("proxy");
		exit(1);
	}
	snprintf(proxy.address, sizeof(proxy.address), "127.0.0.1:%d", ntohs(address.sin_port));
}

void stop_proxy(void)
{
	proxy.stopping = true;
	set_link(LINK_REFUSES);
	pthread_join(proxy.thread, NULL);
	for (int i = 0; i < PAIRS_MAX * 2; i += 2)
		close_pair(i);
	close(proxy.listener);
	close(proxy.wake);
}
