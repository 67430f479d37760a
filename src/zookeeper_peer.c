/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the list of peers, and guards it and all in it by one mutex.
 */
#include "zookeeper_peer.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static pthread_mutex_t peers_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct zookeeper_peer *peers;

void zookeeper_peer_add(struct zookeeper_peer *peer)
{
	pthread_mutex_lock(&peers_mutex);
	LL_PREPEND(peers, peer);
	pthread_mutex_unlock(&peers_mutex);
}

void zookeeper_peer_remove(struct zookeeper_peer *peer)
{
	pthread_mutex_lock(&peers_mutex);
	LL_DELETE(peers, peer);
	pthread_mutex_unlock(&peers_mutex);
}

void zookeeper_peer_note(struct zookeeper_peer *peer, zhandle_t *handle)
{
	struct sockaddr_storage address;
	socklen_t address_bytes = sizeof(address);

	memset(&address, 0, sizeof(address));
	if (!handle ||
	    !zookeeper_get_connected_host(handle, (struct sockaddr *)&address, &address_bytes))
		address_bytes = 0;
	pthread_mutex_lock(&peers_mutex);
	peer->address = address;
	peer->address_bytes = address_bytes;
	pthread_mutex_unlock(&peers_mutex);
}

static bool is_peer(const struct zookeeper_peer *peer, const struct sockaddr_storage *address,
		    socklen_t address_bytes)
{
	return peer->address_bytes > 0 && peer->address_bytes == address_bytes &&
	       memcmp(&peer->address, address, address_bytes) == 0;
}

/* Whether the socket is connected to a server of others, and not to this one. */
static bool is_of_another(const struct zookeeper_peer *self, int descriptor)
{
	struct sockaddr_storage address;
	socklen_t address_bytes = sizeof(address);
	const struct zookeeper_peer *peer;
	bool found = false;

	memset(&address, 0, sizeof(address));
	if (getpeername(descriptor, (struct sockaddr *)&address, &address_bytes) != 0)
		return false;
	pthread_mutex_lock(&peers_mutex);
	LL_FOREACH (peers, peer)
		found |= peer != self && is_peer(peer, &address, address_bytes);
	found &= !is_peer(self, &address, address_bytes);
	pthread_mutex_unlock(&peers_mutex);
	return found;
}

/* The sockets of ZooKeeper's client are the only ones here that speak TCP, but for a name
 * server's perhaps, of which the resolver asks again. To shut a socket down is safe while
 * another thread uses it, unlike to close it. */
void zookeeper_peer_break(const struct zookeeper_peer *self)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		int protocol, descriptor = atoi(entry->d_name);
		socklen_t bytes = sizeof(protocol);

		if (getsockopt(descriptor, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 &&
		    protocol == IPPROTO_TCP && !is_of_another(self, descriptor))
			shutdown(descriptor, SHUT_RDWR);
	}
	if (folder)
		closedir(folder);
}
