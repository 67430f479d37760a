/* SPDX-License-Identifier: Apache-2.0
 *
 * Mounts that propagate to other namespaces, as those of services, get there with the options that
 * they have at that moment. So those of libfuse, which has no such option, are made with it.
 */
#include "kernel/nosymfollow.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/mount_point.h"
#include "kernel/warden.h"

/* Linux 5.10, and mount_setattr(2) of 5.14 */
#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif
#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* Replaces the C library's function for all libraries of the process. */
__attribute__((visibility("default"))) int mount(const char *source, const char *target,
						 const char *type, unsigned long flags,
						 const void *data)
{
	if (type != NULL && strncmp(type, "fuse", strlen("fuse")) == 0)
		flags |= MS_NOSYMFOLLOW;
	return (int)syscall(SYS_mount, source, target, type, flags, data);
}

bool nosymfollow_set(const char *mountpoint)
{
	const struct {
		uint64_t set, clear, propagation, user_namespace;
	} attributes = {.set = MOUNT_ATTR_NOSYMFOLLOW};

	const struct warden_request request = {.kind = WARDEN_NO_LINKS};

	if (mount_point_has_option(mountpoint, "nosymfollow"))
		return true;
	if (warden_socket() >= 0)
		return warden_do(&request) == 0;
	return syscall(SYS_mount_setattr, AT_FDCWD, mountpoint,
		       AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, &attributes, sizeof(attributes)) == 0;
}

bool nosymfollow_leads_away(const char *target)
{
	return strchr(target, '/') != NULL || strcmp(target, "..") == 0;
}
