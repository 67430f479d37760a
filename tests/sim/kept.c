/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/journal.h"

/* What is left of a stream. */
static char *read_all(FILE *in)
{
	char *text = NULL;
	size_t capacity = 0;
	ssize_t bytes = getdelim(&text, &capacity, '\0', in);

	if (bytes < 0) {
		free(text);
		return strdup("");
	}
	return text;
}

char *kept_read(int descriptor, char *why, size_t why_bytes)
{
	static const char end[] = "end\n";
	struct state_journal_content content;
	size_t length;
	char *text;

	if (state_journal_load(descriptor, &content, why, why_bytes) < 0)
		return NULL;
	text = read_all(content.text);
	state_journal_content_finish(&content);
	if (text == NULL)
		abort();
	length = strlen(text);
	if (length < strlen(end) || strcmp(text + length - strlen(end), end) != 0) {
		snprintf(why, why_bytes, "it has no end");
		free(text);
		return NULL;
	}
	text[length - strlen(end)] = '\0';
	return text;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a text, sorted. */
static char **sort_lines(char *text, size_t *ret_count)
{
	size_t count = 0, capacity = 1;
	char **lines, *line;

	for (const char *at = text; *at != '\0'; at++)
		capacity += *at == '\n';
	lines = calloc(capacity, sizeof(*lines));
	if (lines == NULL)
		abort();
	while ((line = strsep(&text, "\n")) != NULL)
		if (*line != '\0')
			lines[count++] = line;
	qsort(lines, count, sizeof(*lines), compare);
	*ret_count = count;
	return lines;
}

bool kept_is_same(char *kept, char *known, char *why, size_t why_bytes)
{
	size_t kept_count, known_count, i = 0;
	char **kept_lines = sort_lines(kept, &kept_count);
	char **known_lines = sort_lines(known, &known_count);
	bool same = kept_count == known_count;

	while (i < kept_count && i < known_count && strcmp(kept_lines[i], known_lines[i]) == 0)
		i++;
	same &= i == kept_count;
	if (!same)
		snprintf(why, why_bytes, "kept is \"%s\", known is \"%s\"",
			 i < kept_count ? kept_lines[i] : "",
			 i < known_count ? known_lines[i] : "");
	free(kept_lines);
	free(known_lines);
	return same;
}
