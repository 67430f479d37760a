/* SPDX-License-Identifier: Apache-2.0 */
#include "redis_double.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

void redis_double_open(struct redis_double *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(address);

	*server = (struct redis_double){.client = -1, .info = "redis_version:7.0.15\r\n"};
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->listener, 8), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &bytes), 0);
	server->port = ntohs(address.sin_port);
}

static void hang_up(struct redis_double *server)
{
	if (server->client >= 0)
		close(server->client);
	server->client = -1;
	server->in_bytes = 0;
	server->is_waiting = false;
}

void redis_double_close(struct redis_double *server)
{
	hang_up(server);
	close(server->listener);
}

void redis_double_no_rule(struct redis_double *server, const char *command)
{
	for (size_t i = 0; i < REDIS_DOUBLE_RULES_MAX; i++) {
		if (server->rules[i].command != NULL &&
		    strcmp(server->rules[i].command, command) == 0)
			server->rules[i].command = NULL;
	}
}

void redis_double_rule(struct redis_double *server, const char *command, const char *answer)
{
	size_t i = 0;

	redis_double_no_rule(server, command);
	while (server->rules[i].command != NULL)
		assert_true(++i < REDIS_DOUBLE_RULES_MAX);
	server->rules[i].command = command;
	server->rules[i].answer = answer;
}

void redis_double_send(struct redis_double *server, const char *data, size_t bytes)
{
	while (bytes > 0 && server->client >= 0) {
		ssize_t count = send(server->client, data, bytes, MSG_NOSIGNAL);

		if (count < 0)
			return;
		data += count;
		bytes -= (size_t)count;
	}
}

static void answer(struct redis_double *server, const char *command)
{
	static const struct {
		const char *command, *answer;
	} usual[] = {
		{"AUTH", "+OK\r\n"},   {"SET", "+OK\r\n"},    {"GETRANGE", "$0\r\n\r\n"},
		{"PTTL", ":1000\r\n"}, {"PING", "+PONG\r\n"}, {"SUBSCRIBE", ""},
		{"UNSUBSCRIBE", ""},   {"EVAL", ":1\r\n"},    {"DEL", ":1\r\n"},
		{"PUBLISH", ":0\r\n"}, {"WAIT", ":1\r\n"},
	};
	char text[1024];

	for (size_t i = 0; i < REDIS_DOUBLE_RULES_MAX; i++) {
		const char *of = server->rules[i].command;

		if (of == NULL || strncmp(command, of, strlen(of)) != 0)
			continue;
		if (server->rules[i].answer != NULL)
			redis_double_send(server, server->rules[i].answer,
					  strlen(server->rules[i].answer));
		else
			server->is_waiting = strncmp(command, "WAIT", 4) == 0;
		return;
	}
	if (strcmp(command, "INFO") == 0) {
		snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(server->info), server->info);
		redis_double_send(server, text, strlen(text));
		return;
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++) {
		if (strncmp(command, usual[i].command, strlen(usual[i].command)) == 0) {
			redis_double_send(server, usual[i].answer, strlen(usual[i].answer));
			return;
		}
	}
	fail_msg("unknown command: %s", command);
}

/* Reads a number behind a byte, up to the line's end. Returns what is behind it; NULL: not all has
 * come. */
static char *read_number(char *at, char *end, char first, long *number)
{
	char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);

	if (line_end == NULL)
		return NULL;
	assert_int_equal(*at, first);
	*number = strtol(at + 1, NULL, 10);
	return line_end + 2;
}

/* Takes one command out of what has come. Returns whether there was one. */
static bool take(struct redis_double *server)
{
	char *at = server->in, *end = server->in + server->in_bytes, line[4096];
	size_t used = 0;
	long words, bytes;

	line[0] = '\0';
	at = read_number(at, end, '*', &words);
	for (long i = 0; at != NULL && i < words; i++) {
		const char *word;

		at = read_number(at, end, '$', &bytes);
		if (at == NULL || end - at < bytes + 2)
			return false;
		word = memmem(at, (size_t)bytes, "redis.call", 10) != NULL ? "SCRIPT" : at;
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%.*s",
					 i > 0 ? " " : "", word == at ? (int)bytes : 6, word);
		assert_true(used < sizeof(line));
		at += bytes + 2;
	}
	if (at == NULL)
		return false;
	server->in_bytes = (size_t)(end - at);
	memmove(server->in, at, server->in_bytes);
	assert_true(strlen(server->commands) + used + 2 < sizeof(server->commands));
	strcat(strcat(server->commands, line), "\n");
	answer(server, line);
	return true;
}

void redis_double_turn(struct redis_double *server)
{
	ssize_t count;

	if (server->is_closed) {
		int refused = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);

		if (refused >= 0)
			close(refused);
		hang_up(server);
		return;
	}
	if (server->client < 0) {
		server->client =
			accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		server->connections += server->client >= 0;
	}
	if (server->client < 0)
		return;
	count = recv(server->client, server->in + server->in_bytes,
		     sizeof(server->in) - server->in_bytes, 0);
	if (count == 0)
		hang_up(server);
	server->in_bytes += count > 0 ? (size_t)count : 0;
	while (server->client >= 0 && !server->is_waiting && take(server))
		;
}

void redis_double_end_wait(struct redis_double *server, const char *text)
{
	assert_true(server->is_waiting);
	server->is_waiting = false;
	redis_double_send(server, text, strlen(text));
}
