/* SPDX-License-Identifier: Apache-2.0
 *
 * For LD_PRELOAD: a program whose argv[0] is that of TEST_LATE begins when there is a file
 * TEST_LATE_UNTIL, as on a machine that is too busy to load it before.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void begin_late(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	const char *late = getenv("TEST_LATE"), *until = getenv("TEST_LATE_UNTIL");

	if (argc < 1 || late == NULL || until == NULL || strcmp(argv[0], late) != 0)
		return;
	while (access(until, F_OK) != 0)
		nanosleep(&pause, NULL);
}
