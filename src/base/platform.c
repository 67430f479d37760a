/* SPDX-License-Identifier: Apache-2.0 */
#include "base/platform.h"

#include <errno.h>
#include <stddef.h>

#define NAMED(error) [error] = #error
#define SIGNAL(name) [SIG##name] = #name

/* clang-format off */
static const char *const errors[] = {
	NAMED(EPERM), NAMED(ENOENT), NAMED(ESRCH), NAMED(EINTR), NAMED(EIO), NAMED(ENXIO), NAMED(E2BIG),
	NAMED(EBADF), NAMED(EAGAIN), NAMED(ENOMEM), NAMED(EACCES), NAMED(EFAULT), NAMED(EBUSY),
	NAMED(EEXIST), NAMED(ENODEV), NAMED(ENOTDIR), NAMED(EISDIR), NAMED(EINVAL), NAMED(ENFILE),
	NAMED(EMFILE), NAMED(ENOTTY), NAMED(EFBIG), NAMED(ENOSPC), NAMED(EROFS), NAMED(EMLINK),
	NAMED(EPIPE), NAMED(ERANGE), NAMED(EDEADLK), NAMED(ENAMETOOLONG), NAMED(ENOLCK), NAMED(ENOSYS),
	NAMED(ENOTEMPTY), NAMED(ELOOP), NAMED(ENODATA), NAMED(ETIME), NAMED(EPROTO), NAMED(EBADMSG),
	NAMED(EOVERFLOW), NAMED(EILSEQ), NAMED(EUSERS), NAMED(EMSGSIZE), NAMED(EOPNOTSUPP),
	NAMED(EAFNOSUPPORT), NAMED(EADDRINUSE), NAMED(EADDRNOTAVAIL), NAMED(ENETDOWN),
	NAMED(ENETUNREACH), NAMED(ECONNABORTED), NAMED(ECONNRESET), NAMED(ENOBUFS), NAMED(EISCONN),
	NAMED(ENOTCONN), NAMED(ESHUTDOWN), NAMED(ETIMEDOUT), NAMED(ECONNREFUSED), NAMED(EHOSTDOWN),
	NAMED(EHOSTUNREACH), NAMED(EALREADY), NAMED(EINPROGRESS), NAMED(ESTALE), NAMED(EDQUOT),
	NAMED(ECANCELED), NAMED(EKEYREJECTED), NAMED(EOWNERDEAD), NAMED(ENOTRECOVERABLE),
};

static const char *const signals[] = {
	SIGNAL(HUP), SIGNAL(INT), SIGNAL(QUIT), SIGNAL(ILL), SIGNAL(TRAP), SIGNAL(ABRT), SIGNAL(BUS),
	SIGNAL(FPE), SIGNAL(KILL), SIGNAL(USR1), SIGNAL(SEGV), SIGNAL(USR2), SIGNAL(PIPE), SIGNAL(ALRM),
	SIGNAL(TERM), SIGNAL(STKFLT), SIGNAL(CHLD), SIGNAL(CONT), SIGNAL(STOP), SIGNAL(TSTP),
	SIGNAL(TTIN), SIGNAL(TTOU), SIGNAL(URG), SIGNAL(XCPU), SIGNAL(XFSZ), SIGNAL(VTALRM),
	SIGNAL(PROF), SIGNAL(WINCH), SIGNAL(POLL), SIGNAL(PWR), SIGNAL(SYS),
};
/* clang-format on */

static const char *find(const char *const *names, size_t count, int number)
{
	return number > 0 && (size_t)number < count && names[number] != NULL ? names[number] : NULL;
}

const char *platform_error_name(int error)
{
	const char *name = find(errors, sizeof(errors) / sizeof(errors[0]), error);
	return name != NULL ? name : "EUNKNOWN";
}

const char *platform_signal_name(int number)
{
	const char *name = find(signals, sizeof(signals) / sizeof(signals[0]), number);
	return name != NULL ? name : number >= SIGRTMIN ? "RT" : "UNKNOWN";
}
