/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

bool order_read(char *line, int size)
{
	return fgets(line, size, stdin) != NULL;
}

bool order_is(const char *line, const char *verb)
{
	size_t length = strlen(verb);

	return strncmp(line, verb, length) == 0 && strchr(" \n", line[length]);
}

long order_number(const char *line, const char *key, long otherwise)
{
	size_t length = strlen(key);

	for (const char *word = strchr(line, ' '); word; word = strchr(word, ' ')) {
		word++;
		if (strncmp(word, key, length) == 0 && word[length] == '=')
			return strtol(word + length + 1, NULL, 10);
	}
	return otherwise;
}

void record_print(int client, const struct record *record)
{
	printf("%d %c %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", client, record->kind,
	       record->asked, record->granted, record->releasing, record->released);
}

void order_done(void)
{
	printf("\n");
	fflush(stdout);
}
