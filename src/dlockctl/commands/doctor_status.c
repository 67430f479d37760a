/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl doctor makes of the mount's file status.
 */
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/commands/doctor.h"
#include "dlockctl/look.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

#define FULL_PERCENT 80	    /* of the quota: from there on it is time to do something */
#define NAMES_MANY   100000 /* a list of them has some megabytes, which not every client reads */

/* What the status of a store says; NULL: nothing. */
static const char *value_of(const json_t *status, const char *key)
{
	return json_string_value(json_object_get(status, key));
}

static bool value_is(const json_t *status, const char *key, const char *word)
{
	const char *value = value_of(status, key);
	return value != NULL && strcmp(value, word) == 0;
}

static bool value_has(const json_t *status, const char *key, const char *part)
{
	const char *value = value_of(status, key);
	return value != NULL && strstr(value, part) != NULL;
}

/* A number of the status; -1: it has none. */
static long long number_of(const json_t *status, const char *key)
{
	const char *value = value_of(status, key);
	long long number;

	return value != NULL && parse_number(value, 0, LLONG_MAX, &number) ? number : -1;
}

static void check_session(struct doctor *doctor, const json_t *status, const char *where)
{
	const char *session = value_of(status, "session"), *store = value_of(status, "store");
	const char *lease = value_of(status, "lease_left_ms");

	if (session == NULL)
		doctor_say(doctor, RESULT_WARNING, "session",
			   "%sthe status does not say whether there is one; expected a mount of "
			   "this version of dlockfs",
			   where);
	else if (strcmp(session, "connected") == 0)
		doctor_say(doctor, RESULT_OK, "session", "%sconnected%s%s%s", where,
			   lease != NULL ? ", the lease lasts " : "", lease != NULL ? lease : "",
			   lease != NULL ? " ms" : "");
	else
		doctor_say(doctor, RESULT_ERROR, "session",
			   "%s%s: nothing is granted; see whether the servers can be reached: %s",
			   where, session, store != NULL ? store : "those of the url");
}

static void check_moratorium(struct doctor *doctor, const json_t *status, const char *where)
{
	const char *line = value_of(status, "moratorium");
	bool set_back = line != NULL && strncmp(line, "set_back", strlen("set_back")) == 0;

	if (line != NULL)
		doctor_say(doctor, set_back ? RESULT_ERROR : RESULT_WARNING, "moratorium",
			   "%sthe store has %s: nothing is granted for now (%s)", where,
			   set_back ? "gone back to an earlier state" : "a root that is new", line);
}

static void check_draining(struct doctor *doctor, const json_t *status)
{
	if (value_is(status, "draining", "yes"))
		doctor_say(doctor, RESULT_WARNING, "drain",
			   "this host grants nothing new, until: dlockctl undrain");
}

static void check_store(struct doctor *doctor, const json_t *status, const char *where)
{
	const char *store = value_of(status, "store"), *session = value_of(status, "session");
	bool connected = session == NULL || strcmp(session, "connected") == 0;

	if (store != NULL && strncmp(store, "local", 5) == 0)
		doctor_say(doctor, RESULT_WARNING, "store",
			   "%sthe locks are of this host only; to share them, set url = "
			   "zookeeper://... or etcd://... in [store%s] of the configuration%s",
			   where, where[0] != '\0' ? " \"prefix\"" : "",
			   where[0] != '\0' ? "" : ", or mount with --store and that");
	else if (store != NULL && value_of(status, "store_error") != NULL)
		doctor_say(doctor, RESULT_ERROR, "store", "%s%s; see the log of dlockfs", where,
			   store);
	else if (store != NULL && connected) /* else check_session() names it */
		doctor_say(doctor, RESULT_OK, "store", "%s%s", where, store);
}

/* What the servers are told to do that locks may suffer from. */
static void check_warnings(struct doctor *doctor, const char *text, const char *where)
{
	struct tree_line line;

	while (tree_next_line(&text, &line)) {
		if (tree_line_is(&line, "store_warning"))
			doctor_say(doctor, RESULT_WARNING, "store", "%s%.*s", where,
				   (int)line.value_bytes, line.value);
	}
}

/* Other programs' locks by the same names are the least of them: locks of one host have none. */
static void check_abilities(struct doctor *doctor, const json_t *status, const char *where)
{
	static const char *const needed[] = {"queue", "shared", "ranges", "stamps"};
	const char *abilities = value_of(status, "abilities");
	bool all = true;

	for (size_t i = 0; abilities != NULL && i < sizeof(needed) / sizeof(*needed); i++)
		all = all && strstr(abilities, needed[i]) != NULL;
	if (abilities != NULL)
		doctor_say(doctor, all ? RESULT_OK : RESULT_WARNING, "abilities",
			   "%sthe store has %s%s", where, abilities,
			   all ? "" : "; calls that need another fail with ENOLCK");
}

/* Lock files. */
static void check_files(struct doctor *doctor, const json_t *status, const char *where)
{
	const char *files = value_of(status, "files");

	if (files != NULL && strcmp(files, "0") != 0)
		doctor_say(doctor, RESULT_OK, "files", "%sthis host has made %s lock file%s", where,
			   files, strcmp(files, "1") == 0 ? "" : "s");
}

static void check_fenced(struct doctor *doctor, const json_t *status, const char *where)
{
	const char *fenced = value_of(status, "fenced");

	if (fenced != NULL && strcmp(fenced, "0") != 0)
		doctor_say(doctor, RESULT_WARNING, "fenced",
			   "%s%s open file%s lost a lock, and programs still have them open; end "
			   "those",
			   where, fenced, strcmp(fenced, "1") == 0 ? " has" : "s have");
}

/* What the database is without what is free in it says whether a compaction would help. */
static void check_database(struct doctor *doctor, const json_t *status, const char *where)
{
	long long bytes = number_of(status, "database_bytes");
	long long used = number_of(status, "database_used_bytes");
	long long quota = number_of(status, "database_quota_bytes");
	const char *of = value_has(status, "database_quota", "default")
				 ? "etcd's default quota (this server does not tell its own)"
				 : "its quota";
	long long full = quota / 100 * FULL_PERCENT;

	if (bytes < 0 || quota < 0)
		return;
	if (bytes < full)
		doctor_say(doctor, RESULT_OK, "space", "%sthe database has %lld of %lld MiB, %s",
			   where, bytes >> 20, quota >> 20, of);
	else if (used >= full)
		doctor_say(doctor, RESULT_WARNING, "space",
			   "%sthe database has %lld of %lld MiB, %s, and %lld of them are in use: "
			   "when it is full nothing can be locked on any host; compact it now "
			   "(etcdctl compact), and set auto-compaction-mode: periodic and a short "
			   "auto-compaction-retention in all members",
			   where, bytes >> 20, quota >> 20, of, used >> 20);
	else
		doctor_say(doctor, RESULT_WARNING, "space",
			   "%sthe file of the database has %lld of %lld MiB, %s, but only %lld of "
			   "them are in use: it is compacted, and may become smaller by etcdctl "
			   "defrag, one member after the other",
			   where, bytes >> 20, quota >> 20, of, used >> 20);
}

static void check_space(struct doctor *doctor, const json_t *status, const char *where)
{
	long long names = number_of(status, "root_names");

	if (value_has(status, "database_alarms", "NOSPACE"))
		doctor_say(doctor, RESULT_ERROR, "space",
			   "%sthe alarm NOSPACE is on: nothing can be locked on any host; etcdctl "
			   "compact, etcdctl defrag for each member, etcdctl alarm disarm",
			   where);
	if (value_has(status, "database_alarms", "CORRUPT"))
		doctor_say(doctor, RESULT_ERROR, "space",
			   "%sthe alarm CORRUPT is on: members do not agree about what is locked; "
			   "replace the member that etcdctl alarm list names",
			   where);
	check_database(doctor, status, where);
	if (names >= NAMES_MANY)
		doctor_say(doctor, RESULT_WARNING, "space",
			   "%s%lld znodes stand directly below the root; see that the servers "
			   "remove idle containers",
			   where, names);
	else if (names >= 0)
		doctor_say(doctor, RESULT_OK, "space",
			   "%s%lld znodes stand directly below the root; of all znodes only the "
			   "servers tell the number: srvr",
			   where, names);
}

static void say_numbers_end(struct doctor *doctor, const char *where, const char *line)
{
	char *name = text_decode(line, strcspn(line, " "));
	char *number = tree_word(line, "number"), *calls = tree_word(line, "held_back");
	char *awaits = tree_word(line, "awaits"), *since = tree_word(line, "since");
	char age[TEXT_AGE_BYTES] = "";
	const char *end = strcmp(awaits, "claims") == 0 ? "the claims in its queue are gone"
			  : strcmp(awaits, "lock_delay") == 0
				  ? "its lock_delay is over"
				  : "the servers start them anew; locks below it may be in use";

	text_age(time(NULL) - strtoll(since, NULL, 10), age);
	doctor_say(doctor, RESULT_WARNING, "numbers",
		   "%s%s: the numbers of its claims come to an end (%s, for %s), %s calls are held "
		   "back until %s; see: dlockctl show",
		   where, name, number, age, calls, end);
	free(name);
	free(number);
	free(calls);
	free(awaits);
	free(since);
}

static void check_numbers(struct doctor *doctor, const char *text, const char *where)
{
	struct tree_line line;

	while (tree_next_line(&text, &line)) {
		if (tree_line_is(&line, "numbers_end")) {
			char *value = must(strndup(line.value, line.value_bytes));
			say_numbers_end(doctor, where, value);
			free(value);
		}
	}
}

/* Hosts that are not configured alike. */
static void check_mixed(struct doctor *doctor, const char *text, const char *where)
{
	struct tree_line line;

	while (tree_next_line(&text, &line)) {
		if (!tree_line_is(&line, "differs"))
			continue;
		char *name = text_decode(line.value, line.value_bytes);
		doctor_say(doctor, RESULT_WARNING, "hosts",
			   "%s%s: another host has another recipe or number of slots; set them "
			   "alike on all hosts, the log says which",
			   where, name);
		free(name);
	}
}

/* Programs that take the file itself for the lock. */
static void check_brief_opens(struct doctor *doctor, const json_t *status)
{
	const char *line = value_of(status, "brief_open");

	if (line == NULL)
		return;
	char *name = text_decode(line, strcspn(line, " "));
	char *pid = tree_word(line, "pid"), *command = tree_word(line, "command");
	char *shown = text_decode(command, strlen(command)), *count = tree_word(line, "count");
	doctor_say(doctor, RESULT_WARNING, "style",
		   "%s: process %s (%s) has made the file by an exclusive open and closed it at "
		   "once, which released the lock (%s such opens); if the file itself is to be the "
		   "lock, set style = file",
		   name, pid, shown, count);
	free(name);
	free(pid);
	free(command);
	free(shown);
	free(count);
}

/* Who tells the holders when the daemon cannot. */
static void check_guard(struct doctor *doctor, const json_t *status)
{
	static const char *const words[] = {"realtime", "spared", "locked"};
	static const char *const lacks[] = {
		"others that want the processor may run before it",
		"the kernel may end it when memory is short",
		"parts of it may be in the swap",
	};
	const char *guard = value_of(status, "guard");

	if (guard != NULL && strstr(guard, "watches") == NULL)
		doctor_say(doctor, RESULT_WARNING, "guard",
			   "there is none: if dlockfs hangs, nobody tells holders in time; see the "
			   "log of dlockfs");
	else if (guard != NULL)
		doctor_say(doctor, RESULT_OK, "guard", "%s", guard);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (value_has(status, "guard", "watches") && !value_has(status, "guard", words[i]))
			doctor_say(doctor, RESULT_WARNING, "guard",
				   "not %s: %s, and if dlockfs hangs then, holders are told late; "
				   "start it as its service does",
				   words[i], lacks[i]);
	}
}

/* "dlockfs (997)", or the number alone; to be freed. */
static char *user_words(long long uid)
{
	const struct passwd *user = uid == (uid_t)uid ? getpwuid((uid_t)uid) : NULL;

	return user != NULL ? must_format("%s (%lld)", user->pw_name, uid)
			    : must_format("%lld", uid);
}

/* What a server would have that took the daemon over. */
static void check_rights(struct doctor *doctor, const json_t *status)
{
	long long uid = number_of(status, "uid");
	bool filtered = value_has(status, "call_filter", "yes");

	if (uid == 0)
		doctor_say(doctor, RESULT_WARNING, "rights",
			   "dlockfs runs as root: whoever took it over by what servers send would "
			   "have this host; make the user dlockfs, as the package does, or set "
			   "user in [mount], and stop and start dlockfs");
	else if (uid > 0) {
		char *user = user_words(uid);
		doctor_say(doctor, RESULT_OK, "rights", "dlockfs runs as user %s%s", user,
			   filtered ? ", with a filter of system calls" : "");
		free(user);
	}
	if (value_has(status, "call_filter", "no"))
		doctor_say(doctor, RESULT_WARNING, "rights",
			   "dlockfs has no filter of system calls: it was built without "
			   "libseccomp, or the kernel has none; see the log of dlockfs");
}

/* Who has the rights of root that the daemon has given up. */
static void check_warden(struct doctor *doctor, const json_t *status)
{
	const char *warden = value_of(status, "warden");

	if (warden != NULL && strcmp(warden, "answers") == 0)
		doctor_say(doctor, RESULT_OK, "warden", "it answers");
	else if (warden != NULL)
		doctor_say(doctor, RESULT_WARNING, "warden",
			   "dlockfs-warden %s: the guard sends signals in its place; no key of "
			   "root alone can be read, and no version takes over; %s",
			   strcmp(warden, "ended") == 0 ? "has ended" : "does not answer",
			   strcmp(warden, "ended") == 0
				   ? "start dlockfs again (its service keeps all locks)"
				   : "see whether it is stopped, or the host too busy");
}

static void say_silent(struct doctor *doctor, const struct tree_line *line)
{
	char *value = must(strndup(line->value, line->value_bytes));
	char *seconds = tree_word(value, "for_s"), age[TEXT_AGE_BYTES] = "";

	value[strcspn(value, " ")] = '\0';
	text_age(strtoll(seconds, NULL, 10), age);
	doctor_say(doctor, RESULT_WARNING, "peers",
		   "the host at %s has not answered for %s: see that it listens there, and that "
		   "firewalls let UDP pass to and fro; until then locks go on to it and from it by "
		   "the servers",
		   value, age);
	free(seconds);
	free(value);
}

/* Whether hosts tell each other. */
static void check_peers(struct doctor *doctor, const json_t *status, const char *text)
{
	const char *address = value_of(status, "peers"), *wrong = value_of(status, "peers_error");
	const char *answer = value_of(status, "peers_answer");
	struct tree_line line;

	if (address != NULL && wrong != NULL)
		doctor_say(doctor, RESULT_WARNING, "peers",
			   "cannot listen at %s (%s): locks go from host to host by the servers "
			   "alone; see whether the address is one of this host, and free",
			   address, wrong);
	else if (address != NULL)
		doctor_say(doctor, RESULT_OK, "peers",
			   "listens at %s; hosts that have answered: %s", address,
			   answer != NULL ? answer : "0");
	while (tree_next_line(&text, &line)) {
		if (tree_line_is(&line, "peer_silent"))
			say_silent(doctor, &line);
	}
}

void doctor_check_status(struct doctor *doctor, const struct probe *probe, const json_t *first,
			 const json_t *others)
{
	size_t store = 0;

	if (!probe->file_answered) {
		doctor_say(doctor, RESULT_ERROR, "status",
			   "no answer within %d s; start dlockfs again", LOOK_LIMIT_MS / 1000);
		return;
	}
	if (probe->file_error != 0) {
		doctor_say(doctor, RESULT_ERROR, "status",
			   ".dlockfs/status: %s; expected a mount of this version of dlockfs",
			   strerror(-probe->file_error));
		return;
	}
	for (const char *text = probe->text; text != NULL; text = tree_next_block(text)) {
		const json_t *status = store == 0 ? first : json_array_get(others, store - 1);
		const char *prefix = value_of(status, "prefix");
		/* "cron: " in front of lines about the store below that prefix. */
		char *where = prefix != NULL ? must_format("%s: ", prefix) : must(strdup(""));

		check_store(doctor, status, where);
		check_warnings(doctor, text, where);
		check_abilities(doctor, status, where);
		check_session(doctor, status, where);
		check_moratorium(doctor, status, where);
		check_fenced(doctor, status, where);
		check_files(doctor, status, where);
		check_space(doctor, status, where);
		check_numbers(doctor, text, where);
		check_mixed(doctor, text, where);
		free(where);
		store++;
	}
	check_draining(doctor, first);
	check_brief_opens(doctor, first);
	check_rights(doctor, first);
	check_guard(doctor, first);
	check_warden(doctor, first);
	check_peers(doctor, first, probe->text);
	if (value_is(first, "exclusive_open_waits", "no"))
		doctor_say(doctor, RESULT_WARNING, "kernel",
			   "exclusive open does not wait here, it fails with EEXIST; use Linux 5.7 "
			   "or later");
}
