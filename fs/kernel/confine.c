/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/call_filter.h"

static const int kept[] = {
	/* to unmount, to set the mount's attributes in the next program; a guard mounts fusectl */
	CAP_SYS_ADMIN,
	/* signals of on_lost and on_revoke */
	CAP_KILL,
	/* the folder below the mount, which may be in a folder of another user; files of the
	 * configuration may be so, too */
	CAP_LINUX_IMMUTABLE,
	CAP_FOWNER,
	CAP_DAC_OVERRIDE,
	CAP_DAC_READ_SEARCH,
	/* /proc/PID/syscall and /proc/PID/fdinfo; the filter refuses ptrace(2) itself */
	CAP_SYS_PTRACE,
	/* a guard takes precedence, and stays in memory */
	CAP_SYS_NICE,
	CAP_SYS_RESOURCE,
	CAP_IPC_LOCK,
};

/* Returns 0 or -errno. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
	uint64_t mask = 0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		mask |= UINT64_C(1) << kept[i];
	/* The bound can be lowered only with CAP_SETPCAP. Without, as in the service, it is low. */
	for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++) {
		if ((mask >> number & 1) == 0)
			prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, words) < 0)
		return -errno;
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		words[i].effective &= (uint32_t)(mask >> 32 * i);
		words[i].permitted &= (uint32_t)(mask >> 32 * i);
		words[i].inheritable = 0;
	}
	return syscall(SYS_capset, &header, words) < 0 ? -errno : 0;
}

void confine_self(void)
{
	int error;

	if (geteuid() != 0)
		return;
	error = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
	if (error == 0)
		error = drop_capabilities();
	if (error != 0)
		log_warning("cannot give up rights that are not needed: %s", strerror(-error));
	error = call_filter_set();
	if (error != 0)
		log_warning("system calls are not filtered: %s", strerror(-error));
}
