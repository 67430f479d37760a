/* SPDX-License-Identifier: Apache-2.0
 *
 * What the GNU C library has, and other C libraries or its older versions lack. Where the C library
 * has it, this header adds nothing. Any thread.
 */
#ifndef DLOCKFS_BASE_PLATFORM_H
#define DLOCKFS_BASE_PLATFORM_H

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc 2.36 */
#if __has_include(<sys/pidfd.h>)
#include <sys/pidfd.h>
#else
static inline int pidfd_open(pid_t pid, unsigned int flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int pidfd_send_signal(int pidfd, int number, siginfo_t *info, unsigned int flags)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, number, info, flags);
}
#endif

/* glibc 2.34 */
#ifndef HAVE_CLOSE_RANGE
static inline int close_range(unsigned int first, unsigned int last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}
#endif

/* glibc 2.30 */
#ifndef HAVE_TGKILL
static inline int tgkill(pid_t process, pid_t thread, int number)
{
	return (int)syscall(SYS_tgkill, process, thread, number);
}
#endif

/* The name of an error, such as "EIO": with the C library's function the same, as far as
 * platform.c knows it; of others "EUNKNOWN". */
const char *platform_error_name(int error);

/* The name of a signal without "SIG", such as "TERM"; of those without one "RT" or "UNKNOWN". */
const char *platform_signal_name(int number);

/* glibc 2.32 */
#ifndef HAVE_STRERRORNAME_NP
#define strerrorname_np platform_error_name
#endif
#ifndef HAVE_SIGABBREV_NP
#define sigabbrev_np platform_signal_name
#endif

#endif
