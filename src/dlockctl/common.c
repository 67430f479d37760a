/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/shown.h"

/* Prints the text as one line: names of locks may have newlines, and worse. */
static void print_line(const char *text)
{
	size_t left = strlen(text);

	flockfile(stderr);
	fputs("dlockctl: ", stderr);
	while (left > 0) {
		int columns;
		size_t length = shown_bytes(text, left, &columns);
		if (length > 0)
			fwrite(text, 1, length, stderr);
		else
			fprintf(stderr, "\\x%02X", (unsigned char)*text);
		length = length > 0 ? length : 1;
		text += length;
		left -= length;
	}
	fputc('\n', stderr);
	funlockfile(stderr);
}

int fail(int status, const char *format, ...)
{
	char *text;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	print_line(length >= 0 ? text : "out of memory");
	if (length >= 0)
		free(text);
	return status;
}

int status_of_errno(int error)
{
	switch (error < 0 ? -error : error) {
	case ENOTCONN:
	case ECONNABORTED:
	case ENODEV:
	case ESHUTDOWN:
	case EHOSTDOWN: /* LOOK_NO_ANSWER */
		return EXIT_NO_MOUNT;
	case ENOENT:
		return EX_NOINPUT;
	case EACCES:
	case EPERM:
		return EX_NOPERM;
	case EIO:
	case ETIMEDOUT:
	case ETIME: /* LOOK_TOO_LATE */
	case EAGAIN:
	case ECONNRESET:
		return EXIT_NO_ANSWER;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case ENOLCK:
		return EX_OSERR;
	default:
		return EX_DATAERR;
	}
}

void *must(void *pointer)
{
	if (pointer == NULL)
		exit(fail(EX_OSERR, "out of memory; end other programs"));
	return pointer;
}

char *must_format(const char *format, ...)
{
	char *text;
	va_list arguments;
	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	return must(length < 0 ? NULL : text);
}

bool parse_seconds(const char *text, long long *ret_ms)
{
	char *end;
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	errno = 0;
	double seconds = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !isfinite(seconds) || seconds > 1e9)
		return false;
	*ret_ms = (long long)ceil(seconds * 1000);
	return true;
}

/* How many milliseconds the unit has; 0: it is none. */
static long long unit_ms(char letter)
{
	switch (letter) {
	case 's':
		return 1000;
	case 'm':
		return 60 * 1000;
	case 'h':
		return 3600 * 1000;
	case 'd':
		return 24 * 3600 * 1000;
	default:
		return 0;
	}
}

bool parse_time(const char *text, long long most_ms, long long *ret_ms)
{
	size_t bytes = strlen(text);
	long long unit = bytes > 0 ? unit_ms(text[bytes - 1]) : 0, ms = 0;
	char *number = must(strndup(text, unit != 0 ? bytes - 1 : bytes));
	bool valid = parse_seconds(number, &ms);

	free(number);
	if (unit == 0)
		unit = 1000;
	if (!valid || ms <= 0 || ms > most_ms / (unit / 1000))
		return false;
	*ret_ms = ms * (unit / 1000);
	return true;
}

bool parse_number(const char *text, long long least, long long most, long long *ret)
{
	char *end;
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (*end != '\0' || errno != 0 || number < least || number > most)
		return false;
	*ret = number;
	return true;
}

long long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}
