/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl: the tool for people and scripts. It talks to a mount through its files and ioctls only,
 * and knows nothing of the store or of the daemon.
 *
 * commands/ has the commands, each a file of its own, and main.c with the table of them. What they
 * share is in this folder, which knows none of them. A command gets its own words in argv, its name
 * first, and returns the exit status. Every error is one line on stderr: "dlockctl: what: why; what
 * would be right".
 */
#ifndef DLOCKCTL_H
#define DLOCKCTL_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <sysexits.h>

/* Exit statuses, besides those of sysexits(3); the table is in commands/main.c. */
enum {
	EXIT_NO = 1, /* the answer is no: held by others, nothing locked, an error found */
	EXIT_NO_MOUNT = EX_OSFILE, /* no mount, or a dead one */
	EXIT_NO_ANSWER = EX_IOERR, /* the store does not answer */
	EXIT_LOST = EX_TEMPFAIL,   /* the lock was lost */
	EXIT_AMBIGUOUS = EX_CONFIG,
};

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* The options that every command has. */
struct context {
	const struct command *command; /* NULL in front of it */
	const char *mount;	       /* --mount, or NULL */
	const char *store, *config;    /* --store and --config: without a mount; or NULL */
	enum color color;
	bool json;
	bool wide;
};

struct command {
	const char *name;
	const char *usage; /* the words after the name */
	const char *help;  /* one line */
	const char *more;  /* further lines of --help, or NULL */
	int (*run)(struct context *context, int argc, char **argv);
};

/* For the table of long options of a command. */
enum {
	OPTION_MOUNT = 1000,
	OPTION_STORE,
	OPTION_CONFIG,
	OPTION_JSON,
	OPTION_WIDE,
	OPTION_COLOR,
	OPTION_OWN
};
#define COMMON_OPTIONS                                                                             \
	{"mount", required_argument, NULL, OPTION_MOUNT},                                          \
		{"store", required_argument, NULL, OPTION_STORE},                                  \
		{"config", required_argument, NULL, OPTION_CONFIG},                                \
		{"json", no_argument, NULL, OPTION_JSON},                                          \
		{"wide", no_argument, NULL, OPTION_WIDE},                                          \
		{"color", required_argument, NULL, OPTION_COLOR},                                  \
		{"help", no_argument, NULL, 'h'},                                                  \
	{                                                                                          \
		NULL, 0, NULL, 0                                                                   \
	}

/* What is printed about them by --help. */
extern const char common_help[];

/* Handles an option that the command itself does not know, as getopt_long(3) returned it. Returns
 * -1 to go on, or the status to end with: a common option with a wrong value, -h, or an unknown
 * option. */
int common_option(struct context *context, int letter, char **argv);

/* Whether --store or --config is given. */
bool is_of_store(const struct context *context);

/* Checks that the command may have them, if they are given. Returns -1 or EX_USAGE. */
int check_store_options(const struct context *context);

/* Parses the options of a command that has only the common ones. From least to most words must be
 * left then, from argv[optind] on. Returns -1, or the status to end with. */
int only_common_options(struct context *context, int argc, char **argv, int least, int most);

/* Checks the number of words left. Returns -1 or EX_USAGE. */
int check_words(const struct context *context, int argc, char **argv, int least, int most);

/* Writes the line of an error, and returns the status. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The status for an errno from a file of a mount. */
int status_of_errno(int error);

/* Returns the pointer. If it is NULL, memory is used up, and the program ends with EX_OSERR. */
void *must(void *pointer);
char *must_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds, with a fraction if need be, as milliseconds. */
bool parse_seconds(const char *text, long long *ret_ms);

/* A time above 0, as in "90s", "5m", "1h", "1d" or, in seconds, "2.5", as milliseconds. */
bool parse_time(const char *text, long long most_ms, long long *ret_ms);

/* A number from least to most, nothing behind it. */
bool parse_number(const char *text, long long least, long long most, long long *ret);

/* CLOCK_MONOTONIC. */
long long now_ms(void);

#endif
