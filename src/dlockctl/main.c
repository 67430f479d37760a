/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl: the table of commands, and the part of the command line that they share.
 */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/dlockctl.h"

static const char run_more[] =
	"  -x, --exclusive         an exclusive lock (the default)\n"
	"  -s, --shared            a shared lock\n"
	"  -n, --nonblock          do not wait: fail if it is held\n"
	"  -w, --wait SECONDS      wait no longer than that\n"
	"  -E, --conflict-exit-code NUMBER\n"
	"                          the exit status after -n or -w, instead of 1\n"
	"  -v, --verbose           who holds the lock, and the place in the queue, while waiting\n"
	"      --on-lost ACTION    if the lock is lost: term (SIGTERM to the command and its\n"
	"                          children, SIGKILL 5 s later; the default), kill (SIGKILL), or\n"
	"                          ignore (only a message)\n"
	"      --on-revoke ACTION  if somebody asks for it with dlockctl revoke: term (the\n"
	"                          default) or ignore\n"
	"\n"
	"COMMAND finds DLOCK_NAME and DLOCK_TOKEN, the fencing token, in its environment. It is a\n"
	"process group of its own; INT, TERM, HUP and QUIT are passed on to the group, USR1 and "
	"USR2\n"
	"to COMMAND. The lock is released when COMMAND ends, whatever it leaves behind. If "
	"dlockctl\n"
	"itself is killed, COMMAND is killed too, unless --on-lost=ignore. The exit status is "
	"that\n"
	"of COMMAND, or 128 and the number of the signal that ended it.\n";

static const struct command commands[] = {
	{"ls", "[PATTERN]", "the locks that are held or waited for, on all hosts",
	 "PATTERN is a shell pattern, of the whole name or of the first components of it; * "
	 "stands\n"
	 "for no slash.\n",
	 command_ls},
	{"show", "NAME", "who holds a lock and who waits for it, in order", NULL, command_show},
	{"run", "[OPTION...] NAME [--] COMMAND [ARGUMENT...]",
	 "run a command while holding a lock, as flock(1) does", run_more, command_run},
	{"token", "FD", "the fencing token of what is locked through an inherited descriptor", NULL,
	 command_token},
	{"check", "FD", "whether what is locked through an inherited descriptor is still held",
	 NULL, command_check},
	{"wait", "[-w SECONDS] [-v] NAME", "until nobody holds a lock or waits for it",
	 "  -w, --wait SECONDS      no longer than that\n"
	 "  -v, --verbose           who holds the lock meanwhile\n"
	 "\n"
	 "Takes no place in the queue, so somebody else may have the lock again at once.\n",
	 command_wait},
	{"revoke", "NAME", "ask all who hold a lock to give it up",
	 "Their descriptors report POLLPRI. It is up to them what follows.\n", command_revoke},
	{"break", "NAME [--position NUMBER] --yes", "take a lock away from who holds it",
	 "      --position NUMBER   that claim of the queue, instead of the first that is held\n"
	 "      --yes               do it\n"
	 "\n"
	 "The next in the queue gets the lock at once. A holder that works on without looking at\n"
	 "its descriptor does not notice.\n",
	 command_break},
	{"top", "", "the locks, live; q quits", NULL, command_top},
	{"doctor", "", "look for what is wrong with the mount and the machine", NULL,
	 command_doctor},
};

static const char statuses[] =
	"Exit status:\n"
	"   0  done; check: held; wait: free; doctor: no error, perhaps warnings\n"
	"   1  no: held by others, or the time is over (run, wait), nothing is locked (check,\n"
	"      token), an error was found (doctor)\n"
	"  64  wrong arguments\n"
	"  65  what was read, or the descriptor, is not of dlockfs\n"
	"  66  nobody holds or waits for a lock of that name; run: its file cannot be opened\n"
	"  69  run: the command cannot be executed\n"
	"  71  out of memory or processes; run: the store could not be reached in time\n"
	"  72  there is no mount, or it is dead\n"
	"  73  run: the file cannot be created\n"
	"  74  the store does not answer, or the output cannot be written\n"
	"  75  the lock was lost (run, check, token)\n"
	"  77  no permission\n"
	"  78  there are several mounts, and none was chosen\n"
	"For run, any other status is that of the command.\n";

static const char common_help[] =
	"  --mount DIR             the mount, if there are several\n"
	"  --json                  JSON instead of text, where anything is listed\n"
	"  --wide                  full values, also where the terminal is narrower\n"
	"  --color WHEN            auto (on a terminal, unless NO_COLOR is set), always or never\n"
	"  -h, --help              print this; behind a command, its own options\n";

/* Prints the text as one line: names of locks may have newlines. */
static void print_line(const char *text)
{
	flockfile(stderr);
	fputs("dlockctl: ", stderr);
	for (; *text != '\0'; text++) {
		if (iscntrl((unsigned char)*text))
			fprintf(stderr, "\\x%02X", (unsigned char)*text);
		else
			fputc(*text, stderr);
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
		return EXIT_NO_MOUNT;
	case ENOENT:
		return EX_NOINPUT;
	case EACCES:
	case EPERM:
		return EX_NOPERM;
	case EIO:
	case ETIMEDOUT:
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

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static void help(void)
{
	puts("Usage: dlockctl [OPTION...] COMMAND [ARGUMENT...]\n"
	     "\n"
	     "Looks at the locks of a dlockfs mount, uses them in scripts, and steers them.\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		printf("  %s%s%s\n      %s\n", commands[i].name,
		       commands[i].usage[0] != '\0' ? " " : "", commands[i].usage,
		       commands[i].help);
	printf("\nOptions of all commands:\n%s"
	       "\nWithout a command:\n  --version               print the version\n\n%s",
	       common_help, statuses);
}

static void help_command(const struct command *command)
{
	printf("Usage: dlockctl %s %s\n\n%s.\n", command->name, command->usage, command->help);
	if (command->more != NULL)
		printf("\n%s", command->more);
	printf("\nOptions of all commands:\n%s", common_help);
}

static int set_color(struct context *context, const char *when)
{
	static const char *const words[] = {
		[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(words[i], when) == 0) {
			context->color = (enum color)i;
			return -1;
		}
	}
	return fail(EX_USAGE, "--color %s: no such word; expected auto, always or never", when);
}

static int bad_option(int letter, char **argv)
{
	const char *word = argv[optind - 1];
	char short_option[] = {'-', (char)optopt, '\0'};
	bool is_short = optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0;
	return fail(EX_USAGE, "%s: %s; see --help", is_short ? short_option : word,
		    letter == ':' ? "has no argument" : "is no option");
}

int common_option(struct context *context, int letter, char **argv)
{
	switch (letter) {
	case OPTION_MOUNT:
		context->mount = optarg;
		return -1;
	case OPTION_JSON:
		context->json = true;
		return -1;
	case OPTION_WIDE:
		context->wide = true;
		return -1;
	case OPTION_COLOR:
		return set_color(context, optarg);
	case 'h': {
		const struct command *command = find_command(argv[0]);
		if (command != NULL)
			help_command(command);
		else
			help();
		return 0;
	}
	default:
		return bad_option(letter, argv);
	}
}

int check_words(int argc, char **argv, int least, int most)
{
	int words = argc - optind;
	if (words < least)
		return fail(EX_USAGE, "%s: a word is missing; expected: dlockctl %s %s", argv[0],
			    argv[0], find_command(argv[0])->usage);
	if (words > most)
		return fail(EX_USAGE, "%s: one word too many: %s; expected: dlockctl %s %s",
			    argv[0], argv[optind + most], argv[0], find_command(argv[0])->usage);
	return -1;
}

int only_common_options(struct context *context, int argc, char **argv, int least, int most)
{
	static const struct option options[] = {COMMON_OPTIONS};
	int letter, status = -1;
	while (status < 0 && (letter = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		status = common_option(context, letter, argv);
	return status >= 0 ? status : check_words(argc, argv, least, most);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"version", no_argument, NULL, OPTION_OWN},
						COMMON_OPTIONS};
	struct context context = {0};
	int letter, status = -1;

	setlocale(LC_CTYPE, "");
	opterr = 0;
	while (status < 0 && (letter = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (letter == OPTION_OWN) {
			puts("dlockctl " DLOCKFS_VERSION);
			return 0;
		}
		status = common_option(&context, letter, argv);
	}
	if (status >= 0)
		return status;
	if (optind == argc)
		return fail(EX_USAGE, "command: is missing; see dlockctl --help");
	argc -= optind;
	argv += optind;
	const struct command *command = find_command(argv[0]);
	if (command == NULL)
		return fail(EX_USAGE, "%s: is no command; see dlockctl --help", argv[0]);
	optind = 0; /* getopt(3) begins anew */
	return command->run(&context, argc, argv);
}
