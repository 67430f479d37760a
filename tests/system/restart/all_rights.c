/* SPDX-License-Identifier: Apache-2.0
 *
 * For LD_PRELOAD: a daemon of root gives up nothing, as those did that knew no other user. What it
 * executes does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

int seccomp_load(void *filter);

__attribute__((constructor)) static void begin(void)
{
	if (strcmp(program_invocation_short_name, "dlockfs") == 0) /* and not what starts it */
		unsetenv("LD_PRELOAD");
}

EXPORT int prctl(int option, ...)
{
	int (*next)(int option, ...);
	unsigned long arguments[4];
	va_list list;

	if (option == PR_CAPBSET_DROP || option == PR_SET_NO_NEW_PRIVS)
		return 0;
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		arguments[i] = va_arg(list, unsigned long);
	va_end(list);
	*(void **)&next = dlsym(RTLD_NEXT, "prctl");
	return next(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

EXPORT long syscall(long number, ...)
{
	long (*next)(long number, ...);
	long arguments[6];
	va_list list;

	if (number == SYS_capset)
		return 0;
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
		    arguments[5]);
}

EXPORT int seccomp_load(void *filter)
{
	(void)filter;
	return 0;
}
