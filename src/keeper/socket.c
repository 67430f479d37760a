/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

static int set_path(struct sockaddr_un *address, const char *path)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

/* Removes what an earlier keeper has left. */
static int make_room(const char *path)
{
	struct stat there;

	if (lstat(path, &there) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(there.st_mode))
		return -EEXIST;
	int other = socket_connect(path);
	if (other >= 0) {
		close(other);
		return -EADDRINUSE;
	}
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}

int socket_listen(const char *path)
{
	struct sockaddr_un address;
	int error = set_path(&address, path);

	if (error == 0)
		error = make_room(path);
	if (error != 0)
		return error;
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | FLAGS, 0);
	if (listener < 0)
		return -errno;
	mode_t mask = umask(0177);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, SOMAXCONN) < 0)
		error = -errno;
	umask(mask);
	if (error == 0)
		return listener;
	close(listener);
	return error;
}

int socket_connect(const char *path)
{
	struct sockaddr_un address;
	int error = set_path(&address, path);

	if (error != 0)
		return error;
	int client = socket(AF_UNIX, SOCK_SEQPACKET | FLAGS, 0);
	if (client < 0)
		return -errno;
	if (connect(client, (struct sockaddr *)&address, sizeof(address)) == 0)
		return client;
	error = -errno;
	close(client);
	return error;
}

int socket_notify(char *name, size_t bytes)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	const int on = 1;
	int error = 0, receiver = socket(AF_UNIX, SOCK_DGRAM | FLAGS, 0);

	if (receiver < 0)
		return -errno;
	/* Without a name the kernel chooses one that is free. */
	if (setsockopt(receiver, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    bind(receiver, (struct sockaddr *)&address, sizeof(sa_family_t)) < 0 ||
	    getsockname(receiver, (struct sockaddr *)&address, &length) < 0)
		error = -errno;
	if (error != 0) {
		close(receiver);
		return error;
	}
	size_t count = length - offsetof(struct sockaddr_un, sun_path);
	snprintf(name, bytes, "@%.*s", (int)count - 1, address.sun_path + 1);
	return receiver;
}
