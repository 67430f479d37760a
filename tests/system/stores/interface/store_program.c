/* SPDX-License-Identifier: Apache-2.0 */
#include "store_program.h"

#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_fixture.h"

extern char **environ;

const char *run_program(const char *const *argv, const char *input, size_t bytes, bool may_fail)
{
	static char output[65536];
	posix_spawn_file_actions_t actions;
	int in[2], out[2], status;
	size_t count = 0;
	ssize_t got;
	pid_t child;

	assert_int_equal(pipe(in) | pipe(out), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	posix_spawn_file_actions_addclose(&actions, in[1]);
	assert_int_equal(
		posix_spawnp(&child, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	assert_int_equal(write(in[1], input, bytes), bytes);
	close(in[1]);
	while ((got = read(out[0], output + count, sizeof(output) - 1 - count)) > 0)
		count += (size_t)got;
	output[count] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status != 0 && !may_fail)
		fail_msg("%s %s %s: %s", argv[0], argv[1], argv[2], output);
	return output;
}

void ask_script(const char *what)
{
	char answer[16];

	dprintf(3, "%s\n", what);
	assert_true(read(4, answer, sizeof(answer)) > 0);
}
