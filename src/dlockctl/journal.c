/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/dlockctl.h"

/* systemd's src/libsystemd/sd-journal/journal-def.h, HEADER_SIGNATURE */
static const char signature[] = "LPKSHHRH";

bool journal_is_file(const char *path)
{
	char begin[sizeof(signature) - 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_one = fd >= 0 && pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) &&
		      memcmp(begin, signature, sizeof(begin)) == 0;

	if (fd >= 0)
		close(fd);
	return is_one;
}

#ifdef HAVE_LIBSYSTEMD

#include <systemd/sd-journal.h>

/* The users of services, as systemd's UIDS-GIDS.md has them: no person is one of these. */
enum { SYSTEM_UID_MAX = 999, DYNAMIC_UID_MIN = 61184, DYNAMIC_UID_MAX = 65519 };

enum { ENTRIES_MAX = 1000000 };

/* The value of the field in the present entry, cut to fit; empty if there is none. */
static void read_field(sd_journal *journal, const char *field, char *to, size_t to_bytes)
{
	const void *data;
	size_t bytes, skip = strlen(field) + 1;

	*to = '\0';
	if (sd_journal_get_data(journal, field, &data, &bytes) == 0 && bytes > skip)
		snprintf(to, to_bytes, "%.*s", (int)(bytes - skip), (const char *)data + skip);
}

static bool is_trusted(sd_journal *journal)
{
	char text[32];
	long long uid;

	read_field(journal, "_UID", text, sizeof(text));
	return parse_number(text, 0, UINT32_MAX, &uid) &&
	       (uid <= SYSTEM_UID_MAX || uid == (long long)getuid() ||
		(uid >= DYNAMIC_UID_MIN && uid <= DYNAMIC_UID_MAX));
}

static bool is_grant(sd_journal *journal)
{
	char event[16];

	read_field(journal, "DLOCKFS_AUDIT", event, sizeof(event));
	return strcmp(event, "granted") == 0 && is_trusted(journal);
}

/* Goes back from the end until so many grants were passed. Returns a number above 0 if there is an
 * entry; 0; or -errno. */
static int go_back(sd_journal *journal, size_t count)
{
	int result = sd_journal_seek_tail(journal), entries = 0;

	while (result >= 0 && count > 0 && entries < ENTRIES_MAX) {
		result = sd_journal_previous(journal);
		if (result <= 0)
			break;
		entries++;
		count -= is_grant(journal);
	}
	if (result == 0 && entries > 0 && sd_journal_seek_head(journal) >= 0)
		result = sd_journal_next(journal);
	return result;
}

static int add_entry(sd_journal *journal, struct grants *grants)
{
	char message[8192];
	uint64_t time_us;

	if (!is_trusted(journal))
		return 0;
	read_field(journal, "MESSAGE", message, sizeof(message));
	if (sd_journal_get_realtime_usec(journal, &time_us) < 0 || time_us > INT64_MAX)
		return grants_add_line(grants, message, -1) ? 0 : -EMFILE;
	return grants_add_line(grants, message, (int64_t)time_us) ? 0 : -EMFILE;
}

/* A value may have any bytes, whose number is said. */
static int match(sd_journal *journal, const char *field, const char *value)
{
	char *text = must_format("%s=%s", field, value);
	int error = sd_journal_add_match(journal, text, strlen(text));

	free(text);
	return error;
}

static int read_entries(sd_journal *journal, const char *mount, size_t count, struct grants *grants)
{
	int error = match(journal, "DLOCKFS_LOCK", grants->lock);

	if (error >= 0 && mount != NULL)
		error = match(journal, "DLOCKFS_MOUNTPOINT", mount);
	int found = error >= 0 ? go_back(journal, count) : error;
	while (found > 0) {
		error = add_entry(journal, grants);
		found = error == 0 ? sd_journal_next(journal) : error;
	}
	sd_journal_close(journal);
	return found;
}

int journal_read_own(const char *mount, struct grants *grants)
{
	sd_journal *journal;
	int error = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);

	return error < 0 ? error : read_entries(journal, mount, grants->limit, grants);
}

int journal_read_files(const char **paths, struct grants *grants)
{
	sd_journal *journal;
	int error = sd_journal_open_files(&journal, paths, 0);

	return error < 0 ? error : read_entries(journal, NULL, SIZE_MAX, grants);
}

#else

int journal_read_own(const char *mount, struct grants *grants)
{
	(void)mount;
	(void)grants;
	return -ENOTSUP;
}

int journal_read_files(const char **paths, struct grants *grants)
{
	(void)paths;
	(void)grants;
	return -ENOTSUP;
}

#endif
