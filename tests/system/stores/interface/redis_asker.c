/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks Redis servers by the service of the store (src/stores/redis/service.h), without the store:
 *
 *     redis_asker URL COMMANDS [IDLE-MS [CA [PASSWORD-FILE [USER]]]]
 *
 * COMMANDS is a pipe (mkfifo(1)) with lines: a name for the request, a verb, and its words:
 *
 *     NAME take|renew|give|stamp KEY VALUE TTL-MS
 *     NAME read KEY
 *     NAME forget NAME-OF-A-REQUEST
 *     NAME listen KEY [VALUE]            VALUE: of the dialect
 *     NAME unlisten KEY
 *     NAME describe|trouble|warn|nudge|finish
 *
 * Writes a line for each answer, "NAME ok ..." or "NAME EEXIST ...", and for each event.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/platform.h"
#include "stores/redis/dialect.h"
#include "stores/redis/service.h"

enum { ASKED_MAX = 4096 };

static struct asked {
	struct redis_request request;
	char name[32];
	enum redis_verb verb;
} asked[ASKED_MAX];
static size_t asked_count;
static struct redis_service *service;

static const char *name_of(int error)
{
	return error == 0 ? "ok" : strerrorname_np(-error);
}

static void on_done(struct redis_request *request, const struct redis_answer *answer)
{
	const struct asked *one = (const struct asked *)request;

	printf("%s %s", one->name, name_of(answer->error));
	if (answer->holder != NULL)
		printf(" %.64s", answer->holder);
	if (one->verb == REDIS_READ && answer->error == 0)
		printf(" %s", answer->ttl_ms == REDIS_TTL_NEVER ? "never"
			      : answer->ttl_ms > 0		? "ends"
								: "?");
	if (one->verb == REDIS_STAMP && answer->error == 0)
		printf(" %" PRId64, answer->stamp);
	printf("\n");
}

static void on_connected(void *context, const char *server)
{
	printf("connected %s\n", server);
}

static void on_lost(void *context, const char *why)
{
	printf("lost\nlost %s\n", why);
}

static void on_hint(void *context, const char *key)
{
	printf("hint %s\n", key);
}

static void on_warning(void *context, const char *text)
{
	printf("%s %s\n", (const char *)context, text);
}

static struct asked *find(const char *name)
{
	for (size_t i = 0; i < asked_count; i++) {
		if (strcmp(asked[i].name, name) == 0)
			return &asked[i];
	}
	abort();
}

static void ask(const char *name, enum redis_verb verb, char **words)
{
	struct asked *one = &asked[asked_count++];
	int error;

	if (asked_count == ASKED_MAX)
		abort();
	*one = (struct asked){.request.done = on_done, .verb = verb};
	snprintf(one->name, sizeof(one->name), "%s", name);
	error = redis_ask(service, &one->request, verb, words[0], words[1],
			  words[2] != NULL ? atoll(words[2]) : 0);
	if (error)
		printf("%s refused %s\n", name, name_of(error));
}

static void run(char *line)
{
	static const char *const verbs[] = {"take", "renew", "give", "stamp", "read"};
	char text[4096], *words[8] = {0}, *word;
	size_t count = 0;

	while ((word = strsep(&line, " ")) != NULL && count < 7)
		words[count++] = word;
	if (count < 2)
		abort();
	for (int i = 0; i < 5; i++) {
		if (strcmp(words[1], verbs[i]) == 0) {
			ask(words[0], (enum redis_verb)i, words + 2);
			return;
		}
	}
	if (strcmp(words[1], "forget") == 0)
		redis_forget(&find(words[2])->request);
	else if (strcmp(words[1], "listen") == 0)
		printf("%s %s\n", words[0],
		       name_of(redis_listen(service, words[2],
					    dialect_of(words[3] != NULL ? words[3] : ""))));
	else if (strcmp(words[1], "unlisten") == 0)
		redis_unlisten(service, words[2]);
	else if (strcmp(words[1], "nudge") == 0)
		redis_nudge(service);
	else if (strcmp(words[1], "finish") == 0)
		redis_finish(service, 10000), printf("%s finished\n", words[0]);
	else if (strcmp(words[1], "describe") == 0)
		redis_describe(service, text, sizeof(text)), printf("%s %s\n", words[0], text);
	else if (strcmp(words[1], "warn") == 0)
		redis_warn(service, on_warning, words[0]), printf("%s warned\n", words[0]);
	else if (strcmp(words[1], "trouble") == 0)
		printf("%s %s\n", words[0],
		       redis_trouble(service) != NULL ? redis_trouble(service) : "none");
	else
		abort();
}

/* Runs the lines that have come, all in one turn. */
static void read_commands(int descriptor)
{
	static char data[65536];
	static size_t bytes;
	ssize_t count = read(descriptor, data + bytes, sizeof(data) - bytes - 1);
	char *end;

	bytes += count > 0 ? (size_t)count : 0;
	while ((end = memchr(data, '\n', bytes)) != NULL) {
		*end = '\0';
		run(data);
		bytes -= (size_t)(end + 1 - data);
		memmove(data, end + 1, bytes);
	}
}

int main(int argc, char **argv)
{
	const struct redis_events events = {
		.on_connected = on_connected, .on_lost = on_lost, .on_hint = on_hint};
	struct store_access access = {0};
	struct store_url url;
	char why[512];
	int commands = argc > 2 ? open(argv[2], O_RDWR | O_NONBLOCK) : -1;
	struct redis_options options = {.url = &url, .access = &access, .idle_ms = 5000};
	struct pollfd wanted[2];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (commands < 0 || store_url_parse(argv[1], &url, why, sizeof(why)) != 0)
		return 2;
	if (argc > 3)
		options.idle_ms = atoll(argv[3]);
	access.tls_ca = argc > 4 && *argv[4] ? argv[4] : NULL;
	if (argc > 5 && *argv[5] &&
	    secret_read(argv[5], SECRET_PASSWORD, &access.redis_password.secret, why,
			sizeof(why)) != 0) {
		printf("%s\n", why);
		return 2;
	}
	access.redis_user = argc > 6 ? argv[6] : NULL;
	if (redis_create(&options, &events, NULL, &service) != 0)
		return 1;
	wanted[0] = (struct pollfd){.fd = redis_descriptor(service), .events = POLLIN};
	wanted[1] = (struct pollfd){.fd = commands, .events = POLLIN};
	while (fcntl(commands, F_GETFD) >= 0 &&
	       poll(wanted, 2, redis_is_due(service) ? 0 : -1) >= 0) {
		if (wanted[0].revents != 0 || redis_is_due(service))
			redis_dispatch(service);
		if (wanted[1].revents != 0)
			read_commands(commands);
	}
	return 1;
}
