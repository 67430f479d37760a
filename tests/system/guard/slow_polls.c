/* SPDX-License-Identifier: Apache-2.0
 *
 * For LD_PRELOAD: a daemon that takes a millisecond to wake each poll(2), as one with very many
 * holders, or on a machine that is very busy. It is written by writev(2) to the kernel.
 */
#include <linux/fuse.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) ssize_t writev(int file, const struct iovec *parts,
						      int count)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct fuse_out_header header = {.unique = 1};

	if (count > 0 && parts[0].iov_len == sizeof(header))
		memcpy(&header, parts[0].iov_base, sizeof(header));
	if (header.unique == 0 && header.error == FUSE_NOTIFY_POLL)
		nanosleep(&pause, NULL);
	return syscall(SYS_writev, file, parts, count);
}
