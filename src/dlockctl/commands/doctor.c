/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl doctor: finds what is wrong with the mount and with this machine.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "dlockctl/below.h"
#include "dlockctl/commands/commands.h"
#include "dlockctl/commands/doctor.h"
#include "dlockctl/look.h"
#include "dlockctl/output.h"
#include "dlockctl/probe.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

#define YEAR_2024	1704067200
#define DIRECTORIES_MAX 100 /* that are looked at */

/* The worst that was found. */
static enum result worst(const struct doctor *doctor)
{
	return doctor->counts[RESULT_ERROR] > 0	    ? RESULT_ERROR
	       : doctor->counts[RESULT_WARNING] > 0 ? RESULT_WARNING
						    : RESULT_OK;
}

/* Returns the status if the mount cannot be used, else 0. */
static int check_mount(struct doctor *doctor, const char *mount, const struct probe *probe)
{
	if (!probe->mount_answered) {
		doctor_say(doctor, RESULT_ERROR, "mount",
			   "%s does not answer within %d s; end its dlockfs and start it again",
			   mount, LOOK_LIMIT_MS / 1000);
		return EXIT_NO_MOUNT;
	}
	if (probe->mount_error != 0) {
		doctor_say(doctor, RESULT_ERROR, "mount", "%s: %s; start dlockfs again", mount,
			   strerror(-probe->mount_error));
		return status_of_errno(probe->mount_error) == EX_NOPERM ? EX_NOPERM : EXIT_NO_MOUNT;
	}
	doctor_say(doctor, RESULT_OK, "mount", "%s answers", mount);
	return 0;
}

/* No lock depends on this clock, but the ages that people see do. */
static void check_clock(struct doctor *doctor)
{
	struct timex clock = {0};
	int state = adjtimex(&clock);

	if (time(NULL) < YEAR_2024)
		doctor_say(doctor, RESULT_ERROR, "clock",
			   "the clock is years behind; ages of locks are wrong, set it");
	else if (state == TIME_ERROR || (clock.status & STA_UNSYNC) != 0)
		doctor_say(doctor, RESULT_WARNING, "clock",
			   "nobody synchronises the clock; ages of locks may be wrong, locks are "
			   "not affected");
	else
		doctor_say(doctor, RESULT_OK, "clock", "synchronised");
}

/* The number in a file of /proc/sys; -1 if this kernel does not have it. */
static long read_number(const char *path)
{
	long number = -1;
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return -1;
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number;
}

static void check_kernel(struct doctor *doctor, const struct probe *probe)
{
	static const char *const timeouts[] = {"max_request_timeout", "default_request_timeout"};
	size_t before = doctor->counts[RESULT_OK] + doctor->counts[RESULT_WARNING] +
			doctor->counts[RESULT_ERROR];

	for (size_t i = 0; i < sizeof(timeouts) / sizeof(*timeouts); i++) {
		char *path = must_format("/proc/sys/fs/fuse/%s", timeouts[i]);
		long seconds = read_number(path);
		if (seconds > 0)
			doctor_say(doctor, RESULT_ERROR, "kernel",
				   "fs.fuse.%s is %ld: a call that waits so long ends the whole "
				   "mount; set it to 0",
				   timeouts[i], seconds);
		free(path);
	}
	if ((probe->mode & S_ISVTX) != 0 && read_number("/proc/sys/fs/protected_regular") > 0)
		doctor_say(doctor, RESULT_ERROR, "kernel",
			   "the root of the mount is sticky, and fs.protected_regular then refuses "
			   "files of other users; chmod -t it");
	if (before == doctor->counts[RESULT_OK] + doctor->counts[RESULT_WARNING] +
			      doctor->counts[RESULT_ERROR])
		doctor_say(doctor, RESULT_OK, "kernel", "no harmful setting");
}

static char *command_of(long pid)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
	FILE *file = fopen(path, "re");
	if (file != NULL) {
		if (fgets(text, sizeof(text), file) != NULL)
			text[strcspn(text, "\n")] = '\0';
		fclose(file);
	}
	return must(strdup(text));
}

/* A lock of proc_locks(5), of this host. */
struct local_lock {
	long pid;
	ino_t inode;
};

/* Reads the next lock on the device that is held: "1: FLOCK  ADVISORY  WRITE 4711 00:2f:1 0 EOF".
 * Returns false at the end of the list. */
static bool next_lock(FILE *locks, dev_t device, struct local_lock *ret)
{
	unsigned int device_major, device_minor;
	unsigned long long inode;
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (locks != NULL && !found && getline(&line, &room, locks) > 0) {
		found = sscanf(line, "%*d: %*[A-Z] %*s %*s %ld %x:%x:%llu", &ret->pid,
			       &device_major, &device_minor, &inode) == 4 &&
			device_major == major(device) && device_minor == minor(device);
		ret->inode = found ? (ino_t)inode : 0;
	}
	free(line);
	return found;
}

/* Locks on files of the mount are not in that list. So a lock on the mount's device is on a
 * directory, and of this host only. */
static void check_directories(struct doctor *doctor, const struct probe *probe)
{
	FILE *locks = fopen("/proc/locks", "re");
	struct local_lock lock;
	size_t found = 0;

	for (; next_lock(locks, probe->device, &lock); found++) {
		char *command = command_of(lock.pid);
		doctor_say(doctor, RESULT_WARNING, "directories",
			   "process %ld %s has locked a directory of the mount: that lock is of "
			   "this host only; lock a file",
			   lock.pid, command);
		free(command);
	}
	if (locks != NULL && found == 0)
		doctor_say(doctor, RESULT_OK, "directories", "none is locked");
	if (locks != NULL)
		fclose(locks);
}

/* Those who have locked something below the mount. */
static size_t check_locks_below(struct doctor *doctor, const struct below *below)
{
	FILE *locks = fopen("/proc/locks", "re");
	struct local_lock lock;
	size_t found = 0;

	while (next_lock(locks, below->device, &lock)) {
		const char *name = below_name(below, lock.inode);
		if (name == NULL)
			continue;
		char *command = command_of(lock.pid);
		doctor_say(doctor, RESULT_ERROR, "below",
			   "process %ld %s has locked %s in the folder below the mount, and "
			   "excludes nobody in the mount; end it",
			   lock.pid, command, strcmp(name, ".") == 0 ? "a directory" : name);
		free(command);
		found++;
	}
	if (locks != NULL)
		fclose(locks);
	return found;
}

/* Without the mount, programs get to the folder below it. */
static void check_below(struct doctor *doctor, const char *mount)
{
	struct below below;

	if (!below_read(mount, &below))
		return;
	size_t locks = check_locks_below(doctor, &below);
	if (below.protection == BELOW_WRITABLE)
		doctor_say(doctor, RESULT_WARNING, "below",
			   "without the mount programs can lock files in %s, on this host only; "
			   "unmount it, and chattr +i it",
			   mount);
	else if (locks == 0)
		doctor_say(doctor, RESULT_OK, "below",
			   "without the mount nobody%s can lock files in its folder",
			   below.protection == BELOW_READ_ONLY ? " but root" : "");
	below_finish(&below);
}

/* The kernel locks a directory while a name is made, and while the directory is read: a process
 * that stalls in there keeps everybody out, also those who would open a lock for the first time.
 * Returns whether the directory was reached; *ret_text is what probe_names() says, or NULL. */
static bool check_names_in(struct doctor *doctor, const char *mount, const char *name,
			   char **ret_text, size_t *ret_bytes)
{
	int error = probe_names(mount, name, ret_text, ret_bytes);
	char *directory = must_format("%s%s%s", mount, name[0] != '\0' ? "/" : "", name);

	if (error == LOOK_NO_ANSWER)
		doctor_say(doctor, RESULT_ERROR, "names",
			   "nobody can make a name in %s: a process that stalls there keeps the "
			   "kernel's lock of the directory; find it with ps -eo "
			   "pid,stat,wchan:30,args, and end what it waits for",
			   directory);
	else if (error != 0 && error != -EACCES && error != -EROFS)
		doctor_say(doctor, RESULT_WARNING, "names", "no name can be made in %s: %s",
			   directory, look_words(error));
	free(directory);
	return error == 0;
}

/* Of directories of directories, only the names count that are in use: they are not looked at. */
static void check_names(struct doctor *doctor, const char *mount)
{
	size_t before = doctor->counts[RESULT_WARNING] + doctor->counts[RESULT_ERROR], bytes = 0;
	char *names = NULL;
	bool may = check_names_in(doctor, mount, "", &names, &bytes);
	const char *name = names;

	for (size_t i = 0; may && i < DIRECTORIES_MAX && name < names + bytes; i++) {
		char *text = NULL;
		size_t more;
		check_names_in(doctor, mount, name, &text, &more);
		free(text);
		name += strlen(name) + 1;
	}
	if (may && before == doctor->counts[RESULT_WARNING] + doctor->counts[RESULT_ERROR])
		doctor_say(doctor, RESULT_OK, "names", "can be made");
	free(names);
}

/* Makes an object of one store's lines in the status. */
static json_t *status_json(const char *text)
{
	json_t *object = must(json_object());
	struct tree_line line;

	while (text != NULL && tree_next_line(&text, &line)) {
		char *key = must(strndup(line.key, line.key_bytes));
		char *value = must(strndup(line.value, line.value_bytes));
		json_object_set_new(object, key, text_json(value));
		free(key);
		free(value);
	}
	return object;
}

/* Makes an array of the stores below a prefix. */
static json_t *stores_json(const char *text)
{
	json_t *stores = must(json_array());
	while (text != NULL && (text = tree_next_block(text)) != NULL)
		json_array_append_new(stores, status_json(text));
	return stores;
}

/* Else the hosts cannot be asked for, which would take its time. */
static bool is_connected(const json_t *status)
{
	const char *session = json_string_value(json_object_get(status, "session"));

	return session != NULL && strcmp(session, "connected") == 0;
}

static int examine(struct doctor *doctor, const struct place *place)
{
	const char *mount = place->mount;
	struct probe probe;
	int error = probe_mount(mount, "status", &probe);
	if (error != 0)
		return fail(EX_OSERR, "doctor: no process can be started: %s; end other programs",
			    strerror(-error));
	json_t *first = status_json(probe.text), *others = stores_json(probe.text);
	int status = check_mount(doctor, mount, &probe);
	if (status == 0) {
		doctor_check_status(doctor, &probe, first, others);
		doctor_check_config(doctor, place, &probe, first, 1 + json_array_size(others));
		if (is_connected(first))
			doctor_check_hosts(doctor, mount);
		check_directories(doctor, &probe);
		check_names(doctor, mount);
		check_below(doctor, mount);
	}
	check_kernel(doctor, &probe);
	check_clock(doctor);
	if (status == 0 && worst(doctor) == RESULT_ERROR)
		status = EXIT_NO;
	if (doctor->context->json) {
		int failed = print_json(
			must(json_pack("{s:o, s:s, s:O, s:O, s:O}", "mount", text_json(mount),
				       "result", doctor_words[worst(doctor)], "checks",
				       doctor->checks, "status", first, "stores", others)));
		status = failed != 0 ? failed : status;
	}
	json_decref(first);
	json_decref(others);
	free(probe.text);
	return status;
}

int command_doctor(struct context *context, int argc, char **argv)
{
	struct doctor doctor = {.context = context};
	struct place place;

	int status = only_common_options(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0) {
		doctor.checks = must(json_array());
		status = examine(&doctor, &place);
		json_decref(doctor.checks);
	}
	place_finish(&place);
	return status;
}
