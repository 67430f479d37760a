/* SPDX-License-Identifier: Apache-2.0 */
#include "web/reader.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/look.h"

/* Followed by the name. */
struct ask {
	enum document_kind kind;
	size_t name_bytes;
};

static bool write_all(int fd, const void *from, size_t bytes)
{
	const char *next = from;

	while (bytes > 0) {
		ssize_t written = send(fd, next, bytes, MSG_NOSIGNAL);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		next += written;
		bytes -= (size_t)written;
	}
	return true;
}

static bool read_all(int fd, void *to, size_t bytes)
{
	char *next = to;

	while (bytes > 0) {
		ssize_t got = read(fd, next, bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		next += got;
		bytes -= (size_t)got;
	}
	return true;
}

/* Until the other process ends. */
static _Noreturn void serve(const char *mount, int fd)
{
	struct document_source source = {.mount = mount};
	struct ask ask;
	bool goes_on = true;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	look_keep_from(fd); /* whoever reads the other end learns of the end of this process */
	while (goes_on && read_all(fd, &ask, sizeof(ask))) {
		struct document document;
		char *name = must(calloc(1, ask.name_bytes + 1));

		goes_on = read_all(fd, name, ask.name_bytes);
		if (goes_on) {
			document_make(&source, ask.kind, name, &document);
			struct reader head = {
				.head = {.status = document.status, .bytes = document.bytes}};
			goes_on = write_all(fd, &head.head, sizeof(head.head)) &&
				  write_all(fd, document.text, document.bytes);
			free(document.text);
		}
		free(name);
	}
	_exit(EXIT_SUCCESS);
}

int reader_start(struct reader *reader, const char *mount)
{
	int ends[2];

	*reader = (struct reader){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid_t child = fork();
	int error = child < 0 ? -errno : 0;
	if (child == 0) {
		close(ends[0]);
		serve(mount, ends[1]);
	}
	close(ends[1]);
	if (error != 0)
		close(ends[0]);
	else
		reader->fd = ends[0];
	return error;
}

bool reader_ask(struct reader *reader, enum document_kind kind, char *name)
{
	struct ask ask = {.kind = kind, .name_bytes = name != NULL ? strlen(name) : 0};

	reader->is_busy = true;
	reader->kind = kind;
	reader->name = name;
	reader->got = 0;
	return write_all(reader->fd, &ask, sizeof(ask)) &&
	       write_all(reader->fd, name, ask.name_bytes);
}

/* As recv(2) of so many bytes; 0: there is nothing now. */
static ssize_t read_some(int fd, void *to, size_t bytes)
{
	ssize_t got = recv(fd, to, bytes, MSG_DONTWAIT);

	if (got > 0)
		return got;
	return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

int reader_take(struct reader *reader, struct document *ret)
{
	size_t head_bytes = sizeof(reader->head);
	ssize_t got = 1;

	while (got > 0 &&
	       (reader->got < head_bytes || reader->got < head_bytes + reader->head.bytes)) {
		if (reader->got < head_bytes)
			got = read_some(reader->fd, (char *)&reader->head + reader->got,
					head_bytes - reader->got);
		else
			got = read_some(reader->fd, reader->text + reader->got - head_bytes,
					head_bytes + reader->head.bytes - reader->got);
		if (got <= 0)
			return (int)got;
		reader->got += (size_t)got;
		if (reader->got == head_bytes)
			reader->text = must(calloc(1, reader->head.bytes + 1));
	}
	*ret = (struct document){reader->head.status, reader->text, reader->head.bytes};
	reader->text = NULL;
	reader->got = 0; /* of one that is asked nothing, its end is told yet */
	reader->is_busy = false;
	return 1;
}
