/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that is to be made setuid: becomes its owner altogether, says "runs", and "signalled"
 * whenever SIGUSR1 comes.
 */
#include <signal.h>
#include <unistd.h>

static void on_signal(int number)
{
	ssize_t written = write(STDOUT_FILENO, "signalled\n", 10);

	(void)number;
	(void)written;
}

int main(void)
{
	uid_t owner = geteuid();

	if (setresuid(owner, owner, owner) < 0)
		return 1;
	signal(SIGUSR1, on_signal);
	ssize_t written = write(STDOUT_FILENO, "runs\n", 5);
	(void)written;
	for (;;)
		pause();
}
