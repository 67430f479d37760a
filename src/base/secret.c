/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the memory of secrets, and the rules for the files that hold them. Any thread.
 */
#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/off_limits.h"
#include "base/opener.h"

struct secret {
	size_t bytes;			 /* of the lines, each with its NUL */
	char text[SECRET_BYTES_MAX + 2]; /* room for a byte too many, and for the last NUL */
};

/* mmap(2) gives whole pages. mlock(2) may be forbidden. */
static struct secret *create(void)
{
	struct secret *secret = mmap(NULL, sizeof(*secret), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (secret == MAP_FAILED)
		return NULL;
	madvise(secret, sizeof(*secret), MADV_DONTDUMP);
	mlock(secret, sizeof(*secret));
	return secret;
}

void secret_destroy(struct secret *secret)
{
	if (secret == NULL)
		return;
	explicit_bzero(secret, sizeof(*secret));
	munmap(secret, sizeof(*secret));
}

static int fail(const char *file, int error, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "%s: %s, expected a plain file of mode 0600", file,
		 strerror(error));
	return -error;
}

static int check_file(const char *file, int descriptor, char *why, size_t why_bytes)
{
	struct stat stat;

	if (fstat(descriptor, &stat) < 0)
		return fail(file, errno, why, why_bytes);
	if (!S_ISREG(stat.st_mode))
		snprintf(why, why_bytes, "%s: not a plain file, expected one", file);
	else if (stat.st_uid != 0 && stat.st_uid != geteuid())
		snprintf(why, why_bytes, "%s: it belongs to user %u, expected root or user %u",
			 file, stat.st_uid, geteuid());
	else if (stat.st_mode & (S_IRWXG | S_IRWXO))
		snprintf(why, why_bytes, "%s: its mode %04o lets others use it, expected 0600",
			 file, stat.st_mode & 07777);
	else
		return 0;
	return -EACCES;
}

static int read_text(struct secret *secret, const char *file, int descriptor, char *why,
		     size_t why_bytes)
{
	ssize_t got = 1;

	while (got != 0 && secret->bytes <= SECRET_BYTES_MAX) {
		got = read(descriptor, secret->text + secret->bytes,
			   SECRET_BYTES_MAX + 1 - secret->bytes);
		if (got < 0 && errno != EINTR)
			return fail(file, errno, why, why_bytes);
		secret->bytes += got > 0 ? (size_t)got : 0;
	}
	if (secret->bytes > SECRET_BYTES_MAX) {
		snprintf(why, why_bytes, "%s: it is too long, expected at most %d bytes", file,
			 SECRET_BYTES_MAX);
		return -EINVAL;
	}
	if (secret->bytes > 0 && secret->text[secret->bytes - 1] != '\n')
		secret->text[secret->bytes++] = '\n';
	return 0;
}

static bool has_control(const char *line, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == '\x7f')
			return true;
	}
	return false;
}

/* What is wrong with a line, or NULL. */
static const char *judge(const char *line, size_t bytes, enum secret_form form)
{
	const char *colon = memchr(line, ':', bytes);

	if (bytes == 0)
		return "an empty line";
	if (has_control(line, bytes))
		return "a control character";
	if (form == SECRET_PASSWORD)
		return NULL;
	if (colon == NULL)
		return "no colon";
	if (colon == line)
		return "no user";
	return colon == line + bytes - 1 ? "no password" : NULL;
}

/* Checks the lines, and ends each with a NUL. */
static int split(struct secret *secret, const char *file, enum secret_form form, char *why,
		 size_t why_bytes)
{
	const char *expected = form == SECRET_DIGEST ? "user:password" : "one line with a password";
	char *line = secret->text, *end = secret->text + secret->bytes;
	const char *wrong = line == end ? "nothing in it" : NULL;
	int number = 1;

	while (wrong == NULL && line < end) {
		size_t bytes = (size_t)((char *)memchr(line, '\n', (size_t)(end - line)) - line);

		wrong = judge(line, bytes, form);
		if (wrong == NULL && number > 1 && form == SECRET_PASSWORD)
			wrong = "a second line";
		line[bytes] = '\0';
		line += bytes + 1;
		number += wrong == NULL;
	}
	if (wrong == NULL)
		return 0;
	snprintf(why, why_bytes, "%s:%d: %s, expected %s", file, number, wrong, expected);
	return -EINVAL;
}

/* Returns a descriptor or -errno. */
static int open_file(const char *file, char *why, size_t why_bytes)
{
	int descriptor, error;

	if (off_limits_refuses(file, why, why_bytes))
		return -EINVAL;
	descriptor = opener_open(file, O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0)
		return fail(file, errno, why, why_bytes);
	error = check_file(file, descriptor, why, why_bytes);
	if (!error)
		return descriptor;
	close(descriptor);
	return error;
}

int secret_check_file(const char *file, char *why, size_t why_bytes)
{
	int descriptor = open_file(file, why, why_bytes);

	if (descriptor < 0)
		return descriptor;
	close(descriptor);
	return 0;
}

int secret_read(const char *file, enum secret_form form, struct secret **ret, char *why,
		size_t why_bytes)
{
	int descriptor = open_file(file, why, why_bytes), error = 0;
	struct secret *secret;

	if (descriptor < 0)
		return descriptor;
	secret = create();
	if (secret == NULL)
		error = fail(file, ENOMEM, why, why_bytes);
	if (!error)
		error = read_text(secret, file, descriptor, why, why_bytes);
	if (!error)
		error = split(secret, file, form, why, why_bytes);
	close(descriptor);
	if (error)
		secret_destroy(secret);
	else
		*ret = secret;
	return error;
}

int secret_make(const char *password, size_t bytes, struct secret **ret)
{
	struct secret *secret;

	if (bytes > SECRET_BYTES_MAX || judge(password, bytes, SECRET_PASSWORD) != NULL)
		return -EINVAL;
	secret = create();
	if (secret == NULL)
		return -ENOMEM;
	memcpy(secret->text, password, bytes);
	secret->text[bytes] = '\0';
	secret->bytes = bytes + 1;
	*ret = secret;
	return 0;
}

struct secret *secret_copy(const struct secret *secret)
{
	struct secret *copy = secret != NULL ? create() : NULL;

	if (copy != NULL)
		memcpy(copy, secret, sizeof(*copy));
	return copy;
}

void secret_lock(const struct secret *secret)
{
	if (secret != NULL)
		mlock(secret, sizeof(*secret));
}

const char *secret_next(const struct secret *secret, const char *line)
{
	const char *next = line != NULL ? line + strlen(line) + 1 : secret->text;

	return next < secret->text + secret->bytes ? next : NULL;
}

bool secret_equal(const struct secret *a, const struct secret *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
}
