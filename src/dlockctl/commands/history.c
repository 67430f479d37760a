/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl history: who has held a lock, by the audit of this host, or of several.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/grants.h"
#include "dlockctl/journal.h"
#include "dlockctl/mount.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"

enum { COUNT_DEFAULT = 20, COUNT_MAX = 1000, LINE_BYTES = 8192 };

#define SECOND_US INT64_C(1000000)

/* What is shown: the last `count` grants. */
struct shown {
	const char *name, *mount; /* NULL: of files */
	struct grant **list;
	size_t count;
};

/* To read */

/* A line longer than the buffer is none of the audit. */
static int read_lines(FILE *file, struct grants *grants)
{
	char line[LINE_BYTES];
	bool begins = true;

	while (fgets(line, sizeof(line), file) != NULL) {
		if (begins && !grants_add_line(grants, line, -1))
			return -EMFILE;
		begins = strchr(line, '\n') != NULL;
	}
	return ferror(file) ? -EIO : 0;
}

static bool is_compressed(FILE *file)
{
	int byte = fgetc(file);

	if (byte != EOF)
		ungetc(byte, file);
	return byte == 0x1f || byte == 0x28 || byte == 0xfd; /* gzip, zstd, xz */
}

static int fail_read(const char *what, int error)
{
	if (error == -EMFILE)
		return fail(EX_DATAERR, "%s: has the lines of more than %d hosts; expected fewer",
			    what, GRANTS_HOSTS_MAX);
	if (error == -ENOTSUP)
		return fail(EX_UNAVAILABLE,
			    "%s: this dlockctl was built without libsystemd, and reads no "
			    "journals; expected files of text, as journalctl -o short-unix "
			    "prints them",
			    what);
	return fail(error == -EACCES || error == -EPERM ? EX_NOPERM : EX_NOINPUT,
		    "%s: cannot be read: %s; expected a log that has the audit, or - for stdin",
		    what, strerror(-error));
}

static int read_text(const char *path, struct grants *grants)
{
	bool is_stdin = strcmp(path, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(path, "re");
	int error = 0, status = 0;

	if (file == NULL)
		return fail_read(path, -errno);
	if (is_compressed(file))
		status = fail(EX_DATAERR,
			      "%s: is compressed; expected text, as in: zcat FILE | dlockctl "
			      "history NAME -",
			      path);
	else
		error = read_lines(file, grants);
	if (!is_stdin)
		fclose(file);
	return error != 0 ? fail_read(path, error) : status;
}

/* Of one host the older file comes first. */
static int read_files(char **paths, struct grants *grants)
{
	const char **journals = NULL;
	size_t count = 0;
	int status = 0;

	for (; *paths != NULL && status == 0; paths++) {
		if (!journal_is_file(*paths)) {
			status = read_text(*paths, grants);
			continue;
		}
		journals = must(reallocarray(journals, count + 2, sizeof(*journals)));
		journals[count++] = *paths;
		journals[count] = NULL;
	}
	int error = status == 0 && count > 0 ? journal_read_files(journals, grants) : 0;
	if (error != 0)
		status = fail_read(journals[0], error);
	free(journals);
	return status;
}

/* To show */

static char *time_text(int64_t us)
{
	time_t seconds = (time_t)(us / SECOND_US);
	struct tm parts;
	char text[64] = "";

	if (us >= 0 && localtime_r(&seconds, &parts) != NULL)
		strftime(text, sizeof(text), "%F %T", &parts);
	return must(strdup(text));
}

static char *length_text(int64_t us)
{
	char text[TEXT_AGE_BYTES] = "";

	if (us >= 0 && us < 10 * SECOND_US)
		return must_format("%" PRId64 ".%03" PRId64 "s", us / SECOND_US,
				   us % SECOND_US / 1000);
	if (us >= 0)
		text_age(us / SECOND_US, text);
	return must(strdup(text));
}

static char *number_text(int64_t number)
{
	return number >= 0 ? must_format("%" PRId64, number) : must(strdup(""));
}

static char *user_text(int64_t uid)
{
	const struct passwd *user = uid >= 0 && uid <= UINT32_MAX ? getpwuid((uid_t)uid) : NULL;

	return user != NULL ? text_printable(user->pw_name) : number_text(uid);
}

static char *end_text(const struct grant *grant)
{
	static const char *const words[] = {
		[GRANT_GOES_ON] = "", [GRANT_RELEASED] = "released", [GRANT_LOST] = "lost"};
	char *why = text_printable(grant->why);
	char *text = must_format("%s%s%s", words[grant->end], *why != '\0' ? ": " : "", why);

	free(why);
	return text;
}

static void add_row(struct table *table, const struct grant *grant)
{
	table_add(table, time_text(grant->since_us), HUE_NONE);
	table_add(table, length_text(grant->held_us), HUE_NONE);
	table_add(table, end_text(grant), grant->end == GRANT_LOST ? HUE_RED : HUE_NONE);
	table_add(table, text_printable(grant->host), HUE_NONE);
	table_add(table, number_text(grant->pid), HUE_NONE);
	table_add(table, user_text(grant->uid), HUE_NONE);
	table_add(table, text_printable(grant->command), HUE_NONE);
	table_add(table, text_printable(grant->mode), HUE_NONE);
	table_add(table, text_printable(grant->kind), HUE_NONE);
	table_add(table, text_printable(grant->range), HUE_NONE);
	table_add(table, length_text(grant->waited_us), HUE_NONE);
	table_add(table,
		  grant->token != 0 ? must_format("%" PRIu64, grant->token) : must(strdup("")),
		  HUE_NONE);
}

static void print_table(const struct shown *shown, const struct context *context)
{
	bool ranges = false;
	for (size_t i = 0; i < shown->count; i++)
		ranges = ranges || *shown->list[i]->range != '\0';
	const struct column columns[] = {
		{.title = "SINCE"},
		{.title = "HELD", .right = true},
		{.title = "ENDED"},
		{.title = "HOST", .least = 8},
		{.title = "PID", .right = true},
		{.title = "USER", .least = 4},
		{.title = "COMMAND", .least = 7},
		{.title = "MODE"},
		{.title = "KIND"},
		{.title = "RANGE", .least = 6, .hidden = !ranges},
		{.title = "WAITED", .right = true},
		{.title = "TOKEN", .right = true},
	};
	struct table table;

	table_begin(&table, columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < shown->count; i++)
		add_row(&table, shown->list[i]);
	table_print(&table, context);
	table_finish(&table);
}

static json_t *seconds_json(int64_t us)
{
	return must(us >= 0 ? json_real((double)us / 1e6) : json_null());
}

static json_t *text_or_null(const char *text)
{
	return *text != '\0' ? text_json(text) : must(json_null());
}

static json_t *number_or_null(int64_t number)
{
	return must(number >= 0 ? json_integer(number) : json_null());
}

static json_t *grant_json(const struct grant *grant)
{
	static const char *const words[] = {[GRANT_RELEASED] = "released", [GRANT_LOST] = "lost"};
	json_t *ended = grant->end != GRANT_GOES_ON ? json_string(words[grant->end]) : json_null();

	return must(json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:b}",
		"host", text_json(grant->host), "pid", number_or_null(grant->pid), "uid",
		number_or_null(grant->uid), "command", text_or_null(grant->command), "kind",
		text_or_null(grant->kind), "mode", text_or_null(grant->mode), "range",
		text_or_null(grant->range), "since", seconds_json(grant->since_us), "until",
		seconds_json(grant->until_us), "held", seconds_json(grant->held_us), "waited",
		seconds_json(grant->waited_us), "ended", must(ended), "why",
		text_or_null(grant->why), "token",
		grant->token != 0 ? number_or_null((int64_t)grant->token) : must(json_null()),
		"by_clock", grant->by_clock));
}

static int print_list(const struct shown *shown)
{
	json_t *list = must(json_array());

	for (size_t i = 0; i < shown->count; i++) {
		if (json_array_append_new(list, grant_json(shown->list[i])) != 0)
			must(NULL);
	}
	return print_json(must(json_pack("{s:o, s:o, s:o}", "mount",
					 text_or_null(shown->mount != NULL ? shown->mount : ""),
					 "name", text_json(shown->name), "grants", list)));
}

static void warn_of_clocks(const struct shown *shown)
{
	size_t count = 0;

	for (size_t i = 0; i < shown->count; i++)
		count += shown->list[i]->by_clock;
	if (count > 0)
		fail(0,
		     "%s: %zu of %zu grants have no fencing token, as nobody asked for it or the "
		     "store has none: these stand among those of other hosts by the clocks",
		     shown->name, count, shown->count);
}

static int show(struct grants *grants, size_t most, struct shown *shown,
		const struct context *context)
{
	size_t count;
	struct grant **order = grants_order(grants, &count);
	int status = 0;

	shown->count = count < most ? count : most;
	shown->list = order + count - shown->count;
	if (context->json)
		status = print_list(shown);
	else
		print_table(shown, context);
	warn_of_clocks(shown);
	free(order);
	return status;
}

static int fail_empty(const char *name, const char *mount)
{
	if (mount == NULL)
		return fail(EX_NOINPUT,
			    "%s: no line of the audit in these files names it; expected logs of "
			    "hosts that have audit = yes",
			    name);
	return fail(EX_NOINPUT,
		    "%s: this host's journal has no line of the audit about it that you may read; "
		    "expected audit = yes in [mount], and root or a member of systemd-journal",
		    name);
}

static int read_own(const struct context *context, const char *name, struct place *place,
		    struct grants *grants, size_t count)
{
	int status = place_find(context, name, place);

	if (status != 0)
		return status;
	grants_begin(grants, place->name, count);
	int error = journal_read_own(place->mount, grants);
	return error != 0 && error != -ENOENT ? fail_read("the journal", error) : 0;
}

int command_history(struct context *context, int argc, char **argv)
{
	static const struct option options[] = {{"count", required_argument, NULL, 'n'},
						COMMON_OPTIONS};
	struct place place = {0};
	struct grants grants = {0};
	long long count = COUNT_DEFAULT;
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, ":hn:", options, NULL)) != -1) {
		if (letter != 'n')
			status = common_option(context, letter, argv);
		else if (!parse_number(optarg, 1, COUNT_MAX, &count))
			status = fail(EX_USAGE, "-n %s: expected a number of grants from 1 to %d",
				      optarg, COUNT_MAX);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 1, INT_MAX);
	if (status >= 0)
		return status;
	struct shown shown = {.name = argv[optind]};
	if (optind + 1 < argc) {
		grants_begin(&grants, shown.name, (size_t)count);
		status = read_files(argv + optind + 1, &grants);
	} else {
		status = read_own(context, shown.name, &place, &grants, (size_t)count);
		shown.name = place.name;
		shown.mount = place.mount;
	}
	if (status == 0 && grants.lines == 0)
		status = fail_empty(shown.name, shown.mount);
	else if (status == 0)
		status = show(&grants, (size_t)count, &shown, context);
	grants_finish(&grants);
	place_finish(&place);
	return status;
}
