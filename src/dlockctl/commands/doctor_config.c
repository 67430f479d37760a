/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl doctor makes of the configuration: as the mount has it, as it is on the disk, and
 * of the servers that it names. Those are asked by `dlockfs --ask`, with what the daemon was
 * started with, for whoever calls doctor: dlockctl itself knows neither the file's form nor
 * servers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlockctl/commands/doctor.h"
#include "dlockctl/inside.h"
#include "dlockctl/look.h"
#include "dlockctl/program.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

#define CHECK "configuration"

#define ASK_LIMIT_MS 4000 /* for each store, of which dlockfs takes 3000 to wait */

/* As of a status. */
static const char *value_of(const json_t *status, const char *key)
{
	return json_string_value(json_object_get(status, key));
}

/* What was made in the mount */

static void check_mode(struct doctor *doctor, const struct probe *probe, const json_t *status)
{
	const char *mode = value_of(status, "mode");
	unsigned long meant = mode != NULL ? strtoul(mode, NULL, 8) : 0;

	if (mode != NULL && (probe->mode & 07777) != meant)
		doctor_say(doctor, RESULT_WARNING, "mode",
			   "the root of the mount has the mode %04o, and mode in [mount] is %s: "
			   "others may lock than it says; chmod it",
			   (unsigned)(probe->mode & 07777), mode);
	else if (mode != NULL)
		doctor_say(doctor, RESULT_OK, "mode", "%s, as in [mount]", mode);
}

struct wanted {
	const char *mount, *status;
};

/* The names in the status that are no directories of the mount, a line each. In the child of a
 * look. */
static int ask_missing(const void *what, char **ret_text, size_t *ret_bytes)
{
	const struct wanted *wanted = what;
	const char *status = wanted->status;
	struct tree_line line;
	FILE *out = must(open_memstream(ret_text, ret_bytes));

	while (tree_next_line(&status, &line)) {
		if (!tree_line_is(&line, "directory"))
			continue;
		char *name = text_decode(line.value, line.value_bytes);
		int fd = inside_open(wanted->mount, name, O_PATH | O_DIRECTORY, 0);
		if (fd == -ENOENT || fd == -ENOTDIR)
			fprintf(out, "directory=%.*s\n", (int)line.value_bytes, line.value);
		if (fd >= 0)
			close(fd);
		free(name);
	}
	fclose(out);
	return 0;
}

static void check_made(struct doctor *doctor, const char *mount, const char *status)
{
	const struct wanted wanted = {mount, status};
	char *missing = NULL;
	size_t bytes;
	struct tree_line line;

	if (look(mount, ask_missing, &wanted, &missing, &bytes) != 0)
		return;
	for (const char *text = missing; tree_next_line(&text, &line);) {
		char *name = text_decode(line.value, line.value_bytes);
		doctor_say(
			doctor, RESULT_WARNING, "directories",
			"%s is gone, which directories in [mount] names; a reload of dlockfs makes "
			"it again",
			name);
		free(name);
	}
	free(missing);
}

/* The file */

/* Says what is wrong with the file, and whether it is the one that is in use. */
static void check_file(struct doctor *doctor, const char *file, const char *time)
{
	struct stat attr;
	char now[64];

	if (stat(file, &attr) != 0) {
		doctor_say(doctor, errno == ENOENT ? RESULT_ERROR : RESULT_WARNING, CHECK,
			   "%s: %s; what was read of it before is in use", file, strerror(errno));
		return;
	}
	snprintf(now, sizeof(now), "%lld.%09ld", (long long)attr.st_mtim.tv_sec,
		 attr.st_mtim.tv_nsec);
	if (time != NULL && strcmp(now, time) != 0)
		doctor_say(doctor, RESULT_WARNING, CHECK,
			   "%s was written after dlockfs had read it, and what was read before is "
			   "in use; systemctl reload dlockfs (or SIGHUP), and see what it says",
			   file);
}

/* dlockfs --ask */

struct arguments {
	char **list; /* NULL behind the last */
	size_t count;
};

static void add_argument(struct arguments *arguments, const char *text)
{
	arguments->list = must(reallocarray(arguments->list, arguments->count + 2, sizeof(char *)));
	arguments->list[arguments->count++] = must(strdup(text));
	arguments->list[arguments->count] = NULL;
}

/* With --ask behind the name of the program. */
static void read_arguments(struct arguments *arguments, const char *pid)
{
	char *path = must_format("/proc/%s/cmdline", pid), *text = NULL;
	size_t room = 0;
	FILE *file = fopen(path, "re");

	while (file != NULL && getdelim(&text, &room, '\0', file) > 0) {
		add_argument(arguments, text);
		if (arguments->count == 1)
			add_argument(arguments, "--ask");
	}
	if (file != NULL)
		fclose(file);
	free(text);
	free(path);
}

/* By its whole name: of a relative one nobody knows from where it counts. The last one counts. */
static void add_config(struct arguments *arguments, const char *file)
{
	char *option = must_format("--config=%s", file);

	add_argument(arguments, option);
	free(option);
}

static bool are_of_dlockfs(const struct arguments *arguments)
{
	const char *name = arguments->count > 0 ? arguments->list[0] : "";
	const char *slash = strrchr(name, '/');

	name = slash != NULL ? slash + 1 : name;
	return strcmp(name, "dlockfs") == 0 || strcmp(name, "mount.fuse.dlockfs") == 0;
}

/* "ok: servers: ...", as dlockfs writes it, or an error of its own. Returns whether it was one. */
static bool say_line(struct doctor *doctor, const char *line)
{
	static const char well[] = "ok: servers: ", sick[] = "error: servers: ";
	static const char wrong[] = "dlockfs: error: ", amiss[] = "dlockfs: warning: ";
	bool is_wrong = strncmp(line, wrong, strlen(wrong)) == 0;
	bool is_refused = geteuid() != 0 && strstr(line, strerror(EACCES)) != NULL;

	if (strncmp(line, well, strlen(well)) == 0)
		doctor_say(doctor, RESULT_OK, "servers", "%s", line + strlen(well));
	else if (strncmp(line, sick, strlen(sick)) == 0)
		doctor_say(doctor, RESULT_ERROR, "servers", "%s", line + strlen(sick));
	else if (is_wrong && is_refused)
		doctor_say(doctor, RESULT_WARNING, CHECK,
			   "not looked at, nor its servers: %s; run dlockctl doctor as root",
			   line + strlen(wrong));
	else if (is_wrong)
		doctor_say(doctor, RESULT_ERROR, CHECK,
			   "%s; a start or a reload would fail, what is in use stays",
			   line + strlen(wrong));
	else if (strncmp(line, amiss, strlen(amiss)) == 0)
		doctor_say(doctor, RESULT_WARNING, CHECK, "%s", line + strlen(amiss));
	return is_wrong;
}

static void say_lines(struct doctor *doctor, char *text, const char *file)
{
	bool is_wrong = false;

	for (char *line = strsep(&text, "\n"); line != NULL; line = strsep(&text, "\n"))
		is_wrong = say_line(doctor, line) || is_wrong;
	if (!is_wrong && file != NULL)
		doctor_say(doctor, RESULT_OK, CHECK, "%s has no error", file);
}

static void ask(struct doctor *doctor, const char *pid, const char *file, int limit_ms)
{
	struct arguments arguments = {0};
	char *text = NULL;
	int status = -ESRCH;

	read_arguments(&arguments, pid);
	if (file != NULL)
		add_config(&arguments, file);
	if (are_of_dlockfs(&arguments))
		status = program_run("dlockfs", (const char *const *)arguments.list, limit_ms,
				     &text);
	if (status >= 0)
		say_lines(doctor, text, file);
	else
		doctor_say(doctor, RESULT_WARNING, CHECK, "not looked at, nor its servers: %s",
			   status == -ESRCH ? "the process of the mount is not to be seen from here"
			   : status == -ENOENT ? "there is no program dlockfs in PATH"
					       : strerror(-status));
	for (size_t i = 0; i < arguments.count; i++)
		free(arguments.list[i]);
	free(arguments.list);
	free(text);
}

void doctor_check_config(struct doctor *doctor, const struct place *place,
			 const struct probe *probe, const json_t *status, size_t stores)
{
	const char *file = value_of(status, "config"), *pid = value_of(status, "pid");
	char *path = file != NULL ? text_decode(file, strlen(file)) : NULL;

	check_mode(doctor, probe, status);
	if (probe->text != NULL)
		check_made(doctor, place->mount, probe->text);
	if (path != NULL)
		check_file(doctor, path, value_of(status, "config_time"));
	if (pid != NULL && place->is_foreign)
		doctor_say(doctor, RESULT_WARNING, CHECK,
			   "not looked at, nor its servers: another user has mounted");
	else if (pid != NULL)
		ask(doctor, pid, path, ASK_LIMIT_MS * (int)stores);
	free(path);
}
