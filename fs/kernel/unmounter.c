/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/unmounter.h"

#include <sys/socket.h>
#include <time.h>

#include "kernel/mount_point.h"

/* How long fusermount3 is given, and how often the mount is checked in that time. */
#define LOOKS	4
#define LOOK_MS 500

bool unmounter_waits_for(int descriptor, pid_t daemon)
{
	struct ucred maker;
	int domain, type;
	socklen_t maker_bytes = sizeof(maker), domain_bytes = sizeof(domain);
	socklen_t type_bytes = sizeof(type);

	return getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) == 0 &&
	       domain == AF_UNIX &&
	       getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 &&
	       type == SOCK_STREAM &&
	       getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &maker, &maker_bytes) == 0 &&
	       maker.pid == daemon;
}

void unmounter_stand_in(const char *mountpoint)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	bool dead = mount_point_is_dead(mountpoint);

	for (int i = 0; i < LOOKS && dead; i++) {
		nanosleep(&pause, NULL);
		dead = mount_point_is_dead(mountpoint);
	}
	if (dead)
		mount_point_unmount(mountpoint);
}
