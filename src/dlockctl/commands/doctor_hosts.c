/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl doctor makes of the mount's file hosts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/commands/doctor.h"
#include "dlockctl/hosts.h"
#include "dlockctl/look.h"
#include "dlockctl/text.h"

struct said {
	struct doctor *doctor;
	const char *where, *host;
};

static void say_difference(void *context, const char *setting, const char *there, const char *here)
{
	const struct said *said = context;
	char *name = text_printable(setting), *value = text_printable(there);

	doctor_say(said->doctor, RESULT_WARNING, "hosts",
		   "%son %s %s is %s, here %s: it has to be the same on all hosts", said->where,
		   said->host, name, there != NULL ? value : "not set",
		   here != NULL ? here : "not set");
	free(value);
	free(name);
}

/* Returns whether the host's settings differ. */
static bool check_host(struct doctor *doctor, const struct host_store *store,
		       const struct host *host, const char *where)
{
	char *name = text_printable(host->name);
	const struct said said = {doctor, where, name};
	size_t before = doctor->counts[RESULT_WARNING];
	bool differs = host_differs(store, host);

	if (differs)
		host_each_difference(store, host, say_difference, (void *)&said);
	if (differs && before == doctor->counts[RESULT_WARNING])
		doctor_say(doctor, RESULT_WARNING, "hosts",
			   "%s%s has other settings than this host; compare their configurations",
			   where, name);
	free(name);
	return differs;
}

static void check_store(struct doctor *doctor, const struct host_store *store, const char *where)
{
	char *words = host_store_words(store), *printable = text_printable(words);
	bool differs = false;

	for (size_t i = 0; i < store->count; i++)
		differs = check_host(doctor, store, &store->list[i], where) || differs;
	if (store->error[0] != '\0')
		doctor_say(doctor, RESULT_WARNING, "hosts", "%snot known: %s", where, store->error);
	else if (host_store_self(store) == NULL)
		doctor_say(doctor, RESULT_WARNING, "hosts",
			   "%sthis host is not among those that use %s; see the log of dlockfs",
			   where, printable);
	else if (store->count == 1)
		doctor_say(doctor, RESULT_WARNING, "hosts",
			   "%sno other host uses this root, %s; if there are others, compare the "
			   "url in [store], its path too, with theirs",
			   where, printable);
	else if (!differs)
		doctor_say(doctor, RESULT_OK, "hosts", "%s%zu use %s, with the same settings",
			   where, store->count, printable);
	free(printable);
	free(words);
}

/* A mount of an older version has no such file. */
void doctor_check_hosts(struct doctor *doctor, const char *mount)
{
	struct hosts hosts;
	int error = hosts_read(mount, &hosts);

	if (error != 0 && error != -ENOENT)
		doctor_say(doctor, RESULT_WARNING, "hosts", "not known: %s", look_words(error));
	for (size_t i = 0; i < hosts.count; i++) {
		const struct host_store *store = &hosts.list[i];
		char *where = store->prefix[0] != '\0' ? must_format("%s: ", store->prefix)
						       : must(strdup(""));
		char *printable = text_printable(where);

		if (store->is_told)
			check_store(doctor, store, printable);
		free(printable);
		free(where);
	}
	hosts_finish(&hosts);
}
