/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/warden.h"

#ifndef AT_STATX_DONT_SYNC
#define AT_STATX_DONT_SYNC 0x4000
#endif

/* Returns false if the file does not tell, as it is closed by now. */
static bool read_inode(int folder, const char *name, uint64_t *ret)
{
	char text[512];
	int file = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = file >= 0 ? read(file, text, sizeof(text) - 1) : -1;

	if (file >= 0)
		close(file);
	text[bytes > 0 ? bytes : 0] = '\0';
	const char *inode = strstr(text, "\nino:");
	if (inode == NULL)
		return false;
	*ret = strtoull(inode + strlen("\nino:"), NULL, 10);
	return true;
}

/* The kernel folds a number that has more bits than its own (fuse_squash_ino()). */
static bool is_same(uint64_t found, uint64_t inode)
{
	return found == inode ||
	       (sizeof(long) < sizeof(inode) && found == (uint32_t)(inode ^ inode >> 32));
}

bool descriptors_show(pid_t pid, uint64_t inode, size_t *looks)
{
	const struct dirent *entry;
	char path[64];
	size_t told = 0;
	uint64_t found;
	bool has = false;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	DIR *folder = opendir(path);
	while (folder != NULL && !has && *looks > 0 && (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		(*looks)--;
		if (!read_inode(dirfd(folder), entry->d_name, &found))
			continue;
		told++;
		has = is_same(found, inode);
	}
	if (folder != NULL)
		closedir(folder);
	return has || told == 0 || *looks == 0;
}

bool descriptors_have(pid_t pid, uint64_t inode, size_t *looks)
{
	const struct warden_request request = {
		.kind = WARDEN_HAS_FILE,
		.pid = pid,
		.inode = inode,
		.looks = *looks,
	};
	struct warden_answer answer;

	if (warden_socket() < 0)
		return descriptors_show(pid, inode, looks);
	if (warden_ask(&request, NULL, NULL, 0, &answer, NULL) != 0)
		return true;
	*looks = answer.looks < *looks ? (size_t)answer.looks : *looks;
	return answer.result != 0;
}

/* AT_STATX_DONT_SYNC has no file system asked, as that of the daemon, which waits for this. */
bool descriptors_have_of(pid_t pid, unsigned int device)
{
	const struct dirent *entry;
	struct statx attr;
	char path[64];
	size_t seen = 0;
	bool has = false;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *folder = opendir(path);
	if (folder == NULL && errno == EACCES)
		return true;
	while (folder != NULL && !has && seen <= DESCRIPTORS_LOOKS &&
	       (entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		seen++;
		has = syscall(SYS_statx, dirfd(folder), entry->d_name, AT_STATX_DONT_SYNC,
			      STATX_TYPE, &attr) == 0
			      ? attr.stx_dev_major == 0 && attr.stx_dev_minor == device
			      : errno == EACCES;
	}
	if (folder != NULL)
		closedir(folder);
	return has || (folder != NULL && seen == 0) || seen > DESCRIPTORS_LOOKS;
}
