/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlockctl/inside.h"
#include "dlockctl/look.h"
#include "dlockctl/text.h"

#define READ_BYTES     65536
#define TEXT_BYTES_MAX (256 * 1024 * 1024) /* longer than any queue */
#define ROUNDS_MAX     10 /* one more only if the tree changes right between two calls */

static int read_all(int fd, char **ret_text, size_t *ret_bytes)
{
	char *text = NULL;
	size_t used = 0, room = 0;
	int error = 0;

	for (;;) {
		if (room - used < READ_BYTES + 1) {
			room = room * 2 + READ_BYTES + 1;
			text = must(realloc(text, room));
		}
		ssize_t got = read(fd, text + used, READ_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			error = -errno;
		else
			used += (size_t)got;
		if (got <= 0)
			break;
		if (used > TEXT_BYTES_MAX) {
			error = -EFBIG;
			break;
		}
	}
	if (error != 0) {
		free(text);
		return error;
	}
	text[used] = '\0';
	*ret_text = text;
	*ret_bytes = used;
	return 0;
}

static int open_file(const char *mount, const char *name)
{
	int fd;
	do
		fd = inside_open(mount, name, O_RDONLY | O_NOCTTY, 0);
	while (fd == -EINTR);
	return fd;
}

/* Opens a file by open_anew(), which returns a descriptor or -errno, and reads all of it. After
 * ESTALE it opens the file again: another process of dlockfs has gone on with the mount, and does
 * not know the open file. In the child of a look, as all that follows up to tree_read(). */
static int read_opened(int (*open_anew)(const void *what), const void *what, char **ret_text,
		       size_t *ret_bytes)
{
	int error = -ESTALE;
	for (int round = 0; round < ROUNDS_MAX && error == -ESTALE; round++) {
		int fd = open_anew(what);
		error = fd < 0 ? fd : read_all(fd, ret_text, ret_bytes);
		if (fd >= 0)
			close(fd);
	}
	return error;
}

/* A file of the tree. */
struct tree_file {
	const char *mount;
	char *name; /* below that */
};

static int open_tree_file(const void *what)
{
	const struct tree_file *file = what;
	return open_file(file->mount, file->name);
}

static int ask_file(const void *file, char **ret_text, size_t *ret_bytes)
{
	return read_opened(open_tree_file, file, ret_text, ret_bytes);
}

static int open_below(const struct place *place, const char *suffix)
{
	char *name = must_format(".dlockfs/locks/%s%s", place->name, suffix);
	int fd = open_file(place->mount, name);
	free(name);
	return fd;
}

static bool is_directory(int fd)
{
	struct stat buffer;
	return fd >= 0 && fstat(fd, &buffer) == 0 && S_ISDIR(buffer.st_mode);
}

/* A lock with others below it is a directory, and its own queue a file in that directory. The first
 * lock below may come, or the last one go, between two attempts. */
int tree_open_queue(const struct place *place)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		int fd = open_below(place, "/.queue");
		if (fd != -ENOTDIR)
			return fd;
		fd = open_below(place, "");
		if (!is_directory(fd))
			return fd;
		close(fd);
	}
	return -EAGAIN;
}

static int open_queue(const void *place)
{
	return tree_open_queue(place);
}

/* Whether the mount shows queues at all. */
static bool has_locks(const struct place *place)
{
	int fd = inside_open(place->mount, ".dlockfs/locks", O_PATH, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A lock that nobody holds or wants has no file: the text is empty then. */
static int ask_queue(const void *what, char **ret_text, size_t *ret_bytes)
{
	int error = read_opened(open_queue, what, ret_text, ret_bytes);

	if ((error != -ENOENT && error != -ENOTDIR) || !has_locks(what))
		return error;
	*ret_text = NULL;
	*ret_bytes = 0;
	return 0;
}

int tree_read(const char *mount, const char *file, char **ret_text, size_t *ret_bytes)
{
	struct tree_file what = {.mount = mount, .name = must_format(".dlockfs/%s", file)};
	int error = look(mount, ask_file, &what, ret_text, ret_bytes);
	free(what.name);
	return error;
}

int tree_queue(const struct place *place, struct queues *queues)
{
	char *text;
	size_t bytes;

	*queues = (struct queues){0};
	int error = look(place->mount, ask_queue, place, &text, &bytes);
	if (error != 0)
		return error;
	queues_parse(text, bytes, queues);
	free(text);
	return 0;
}

int tree_queues(const char *mount, struct queues *queues)
{
	char *text;
	size_t bytes;

	*queues = (struct queues){0};
	int error = tree_read(mount, "queues", &text, &bytes);
	if (error != 0)
		return error;
	queues_parse(text, bytes, queues);
	free(text);
	return 0;
}

int tree_fail(const char *mount, const char *what, int error)
{
	int status = status_of_errno(error);
	if (error == -ENOENT)
		return fail(
			EXIT_NO_MOUNT,
			"%s: there is no .dlockfs/%s; expected a mount of this version of dlockfs",
			mount, what);
	if (error == LOOK_NO_ANSWER)
		return fail(status,
			    "%s: the mount does not answer within %d s; see: dlockctl doctor",
			    mount, LOOK_LIMIT_MS / 1000);
	if (status == EXIT_NO_MOUNT)
		return fail(status, "%s: the mount is dead: %s; start dlockfs again", mount,
			    strerror(-error));
	if (status == EXIT_NO_ANSWER)
		return fail(status, "%s: the store does not answer: %s; see: dlockctl doctor", what,
			    strerror(-error));
	if (status == EX_NOPERM)
		return fail(status, "%s: %s; another user may", what, strerror(-error));
	return fail(status, "%s/.dlockfs: %s: %s; see: dlockctl doctor", mount, what,
		    strerror(-error));
}

bool tree_line_is(const struct tree_line *line, const char *key)
{
	return line->key_bytes == strlen(key) && memcmp(line->key, key, line->key_bytes) == 0;
}

bool tree_next_line(const char **text, struct tree_line *ret)
{
	while (**text != '\0' && **text != '\n') {
		const char *line = *text, *end = strchrnul(line, '\n');
		const char *equals = memchr(line, '=', (size_t)(end - line));

		*text = *end != '\0' ? end + 1 : end;
		if (equals == NULL)
			continue;
		*ret = (struct tree_line){line, equals + 1, (size_t)(equals - line),
					  (size_t)(end - equals - 1)};
		return true;
	}
	return false;
}

char *tree_value(const char *text, const char *key)
{
	struct tree_line line;

	while (tree_next_line(&text, &line)) {
		if (tree_line_is(&line, key))
			return must(strndup(line.value, line.value_bytes));
	}
	return NULL;
}

char *tree_word(const char *line, const char *key)
{
	char *wanted = must_format(" %s=", key);
	const char *found = strstr(line, wanted);
	const char *value = found != NULL ? found + strlen(wanted) : "";
	free(wanted);
	return must(strndup(value, strcspn(value, " ")));
}

const char *tree_next_block(const char *text)
{
	const char *found = strstr(text, "\n\n");
	return found != NULL ? found + 2 : NULL;
}

static int wanted_queue(const struct place *place, struct queues *queues)
{
	int error = tree_queue(place, queues);
	if (error == 0 && (queues->count == 0 || queues->list[0].count == 0))
		return fail(EX_NOINPUT, "%s: nobody holds it or waits for it; see: dlockctl ls",
			    place->name);
	return error == 0
		       ? 0
		       : tree_fail(place->mount, error == -ENOENT ? "locks" : place->name, error);
}

int tree_act(const struct context *context, const char *name,
	     int (*act)(const struct place *place, const struct queues *queues, void *data),
	     void *data)
{
	struct place place;
	struct queues queues = {0};

	int status = place_find_queue(context, name, &place);
	if (status == 0)
		status = wanted_queue(&place, &queues);
	if (status == 0)
		status = act(&place, &queues, data);
	queues_finish(&queues);
	place_finish(&place);
	return status;
}

static size_t warn_of_silent_stores(const struct queues *queues)
{
	size_t count = 0;
	for (size_t i = 0; i < queues->count; i++) {
		const struct queue *queue = &queues->list[i];
		if (!queue_is_silent_store(queue))
			continue;
		count++;
		if (strcmp(queue->name, "/") != 0)
			fail(0,
			     "%s: its store does not answer, so no locks of it are shown; see: "
			     "dlockctl doctor",
			     queue->name);
		else
			fail(0, "the main store does not answer, so no locks of it are shown; see: "
				"dlockctl doctor");
	}
	return count;
}

int warn_of_bad_lines(const struct queues *queues)
{
	size_t silent = warn_of_silent_stores(queues);
	size_t unreadable = queues->unreadable > silent ? queues->unreadable - silent : 0;

	if (queues->bad_lines > 0)
		fail(0,
		     "left out %zu line%s of the mount that dlockctl does not understand; "
		     "expected the same version of dlockfs",
		     queues->bad_lines, text_plural(queues->bad_lines));
	if (unreadable > 0)
		fail(0,
		     "%zu lock%s cannot be looked at, by the rights that the servers give or for "
		     "another reason; the message of dlockfs says which",
		     unreadable, text_plural(unreadable));
	return silent > 0 ? EXIT_NO_ANSWER : 0;
}
