/* SPDX-License-Identifier: Apache-2.0 */
#include "unmounter.h"

#include <sys/socket.h>

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
