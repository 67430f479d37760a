/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

static uint64_t kept_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

/* The bound can be lowered only with CAP_SETPCAP. Without, as in the service, it is low. */
static void drop_bound(uint64_t mask)
{
	for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++) {
		if ((mask >> number & 1) == 0)
			prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
	}
}

/* Drops all that are not in the mask. Returns 0 or -errno. */
static int drop_capabilities(uint64_t mask)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	drop_bound(mask);
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
		error = drop_capabilities(kept_mask());
	if (error != 0)
		log_warning("cannot give up rights that are not needed: %s", strerror(-error));
	error = call_filter_set(true);
	if (error != 0)
		log_warning("system calls are not filtered: %s", strerror(-error));
}

static const struct passwd *find_account(const char *name)
{
	const struct passwd *account = getpwnam(name);
	char *end;

	if (account != NULL)
		return account;
	unsigned long number = strtoul(name, &end, 10);
	return *end == '\0' ? getpwuid((uid_t)number) : NULL;
}

int confine_find_user(const char *name, struct confine_user *ret)
{
	const struct passwd *account = find_account(name);

	if (account == NULL)
		return -ENOENT;
	ret->uid = account->pw_uid;
	ret->gid = account->pw_gid;
	ret->group_count = CONFINE_GROUPS_MAX;
	if (getgrouplist(account->pw_name, ret->gid, ret->groups, &ret->group_count) < 0)
		ret->group_count = CONFINE_GROUPS_MAX; /* of those that there are */
	return 0;
}

bool confine_may_change_user(void)
{
	const uint64_t needed = UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];

	return geteuid() == 0 && syscall(SYS_capget, &header, words) == 0 &&
	       (words[0].effective & needed) == needed;
}

static int change_user(const struct confine_user *user)
{
	if (setgroups((size_t)user->group_count, user->groups) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0)
		return -errno;
	drop_bound(0); /* while there is the capability to do that */
	if (setresuid(user->uid, user->uid, user->uid) < 0)
		return -errno;
	int error = drop_capabilities(0);
	/* Its own files in /proc stay its own. */
	if (error == 0 &&
	    (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0))
		error = -errno;
	return error;
}

int confine_to_user(const struct confine_user *user, char *why, size_t why_bytes)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* for which CAP_IPC_LOCK has stood so far */
	int error = change_user(user);
	if (error != 0) {
		snprintf(why, why_bytes, "going on as user %u: %s", user->uid, strerror(-error));
		return error;
	}
	error = call_filter_set(false);
	if (error != 0)
		log_warning("system calls are not filtered: %s", strerror(-error));
	return 0;
}
