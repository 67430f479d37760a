/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded into a daemon: it stands still right before it wakes another process or thread by an
 * eventfd(2), once, when the first byte of the file STOPPED_WAKE is '1'. The byte is '2' then, and
 * the daemon goes on when it is another one. A daemon that grants a lock first wakes its guard.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile char *word;

__attribute__((constructor)) static void begin(void)
{
	const char *file = getenv("STOPPED_WAKE");
	int descriptor = file != NULL ? open(file, O_RDWR | O_CLOEXEC) : -1;

	if (descriptor < 0)
		return;
	word = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (word == MAP_FAILED)
		word = NULL;
	close(descriptor);
}

__attribute__((visibility("default"))) ssize_t write(int descriptor, const void *bytes,
						     size_t count)
{
	if (count == sizeof(uint64_t) && word != NULL && *word == '1' && gettid() == getpid() &&
	    *(const uint64_t *)bytes == 1) {
		*word = '2';
		while (*word == '2')
			;
	}
	return syscall(SYS_write, descriptor, bytes, count);
}
