/* SPDX-License-Identifier: Apache-2.0 */
#include "view/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

#define LOCK_KEY "lock="

/* A position in a text: the lines of one lock, the first of which names it. */
struct cursor {
	const char *lock;
	const char *end;      /* of these lines */
	const char *text_end; /* of all */
	char *path;	      /* of the lock; NULL: at the end of the text */
};

/* The value that ends at a space or at the end of the line, as escape_write() has written it. */
static char *decode(const char *value, const char *end)
{
	const char *space = memchr(value, ' ', (size_t)(end - value));
	const char *newline = memchr(value, '\n', (size_t)((space ? space : end) - value));
	size_t bytes = (size_t)((newline ? newline : space ? space : end) - value);
	char *path = malloc(bytes + 1);

	if (path != NULL)
		escape_decode_lenient(path, bytes + 1, value, bytes);
	return path;
}

static const char *find_next_lock(const char *lock, const char *end)
{
	const char *found = memmem(lock, (size_t)(end - lock), "\n" LOCK_KEY, strlen(LOCK_KEY) + 1);
	return found != NULL ? found + 1 : end;
}

/* Moves on to the lines of the next lock. */
static int go_on(struct cursor *cursor)
{
	free(cursor->path);
	cursor->path = NULL;
	cursor->lock = cursor->end;
	if (cursor->lock == cursor->text_end)
		return 0;
	cursor->end = find_next_lock(cursor->lock, cursor->text_end);
	cursor->path = decode(cursor->lock + strlen(LOCK_KEY), cursor->end);
	return cursor->path != NULL ? 0 : -ENOMEM;
}

static struct cursor *find_first(struct cursor *cursors, size_t count)
{
	struct cursor *first = NULL;

	for (size_t i = 0; i < count; i++) {
		if (cursors[i].path != NULL &&
		    (first == NULL || strcmp(cursors[i].path, first->path) < 0))
			first = &cursors[i];
	}
	return first;
}

int view_merge(const struct view_text *texts, size_t count,
	       size_t (*find)(const void *context, const char *path), const void *context,
	       FILE *out)
{
	struct cursor *cursors = calloc(count, sizeof(*cursors)), *first;
	int error = cursors != NULL ? 0 : -ENOMEM;

	for (size_t i = 0; error == 0 && i < count; i++) {
		cursors[i].end = texts[i].text != NULL ? texts[i].text : "";
		cursors[i].text_end = cursors[i].end + texts[i].bytes;
		error = go_on(&cursors[i]);
	}
	while (error == 0 && (first = find_first(cursors, count)) != NULL) {
		if (find(context, first->path) == (size_t)(first - cursors))
			fwrite(first->lock, 1, (size_t)(first->end - first->lock), out);
		error = go_on(first);
	}
	for (size_t i = 0; cursors != NULL && i < count; i++)
		free(cursors[i].path);
	free(cursors);
	return error;
}
