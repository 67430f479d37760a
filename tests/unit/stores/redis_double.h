/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of a Redis server, for tests: takes commands in RESP, answers them as it is told, and
 * notes them. One connection at a time; nothing blocks.
 */
#ifndef DLOCKFS_REDIS_DOUBLE_H
#define DLOCKFS_REDIS_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>

enum { REDIS_DOUBLE_RULES_MAX = 8 };

struct redis_double {
	int listener, client; /* -1: none */
	unsigned port;
	const char *info; /* the answer to INFO */
	bool is_closed;	  /* takes no connection, and ends the one that there is */
	bool is_waiting;  /* by a WAIT that is not answered: takes no command */
	/* How commands that begin so are answered, instead of as usual; NULL: not at all. */
	struct {
		const char *command, *answer;
	} rules[REDIS_DOUBLE_RULES_MAX];
	unsigned connections;
	char commands[16384]; /* each in a line, its words divided by blanks; scripts as SCRIPT */
	char in[65536];
	size_t in_bytes;
};

void redis_double_open(struct redis_double *server);
void redis_double_close(struct redis_double *server);

/* Sets, or with `answer` as the command takes back, how a command is answered. */
void redis_double_rule(struct redis_double *server, const char *command, const char *answer);
void redis_double_no_rule(struct redis_double *server, const char *command);

/* Answers the WAIT, and goes on. */
void redis_double_end_wait(struct redis_double *server, const char *answer);

/* Takes what has come, and answers it. */
void redis_double_turn(struct redis_double *server);

/* Sends any bytes. */
void redis_double_send(struct redis_double *server, const char *data, size_t bytes);

#endif
