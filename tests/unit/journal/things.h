/* SPDX-License-Identifier: Apache-2.0
 *
 * Things with a value each, for tests to keep in a journal. To be included after cmocka.h.
 */
#ifndef TEST_JOURNAL_THINGS_H
#define TEST_JOURNAL_THINGS_H

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "journal/journal.h"

#define AREA_BYTES 8192

struct thing {
	struct state_item item;
	uint64_t place;
	uint64_t value; /* 0: no line is saved */
	size_t padding; /* so many more bytes */
};

static unsigned long saves;

static const struct thing *thing_of(const struct state_item *item)
{
	return (const struct thing *)((const char *)item - offsetof(struct thing, item));
}

static struct state_place place(const struct state_item *item)
{
	return (struct state_place){{STATE_PLACE_INODE, thing_of(item)->place}};
}

static void save(const struct state_item *item, FILE *out)
{
	const struct thing *thing = thing_of(item);

	saves++;
	if (thing->value != 0)
		fprintf(out, "%llu=%llu%*s\n", (unsigned long long)thing->place,
			(unsigned long long)thing->value, (int)thing->padding, "");
}

static const struct state_kind kind = {.place = place, .save = save};

static int new_file(void)
{
	int descriptor = memfd_create("test", MFD_CLOEXEC);
	assert_true(descriptor >= 0);
	return descriptor;
}

static struct state_journal *create(int descriptor, uint64_t handled)
{
	struct state_journal *journal;
	assert_true(state_journal_create(dup(descriptor), AREA_BYTES, handled, &journal) == 0);
	return journal;
}

/* The file is no journal, for the reason that has this part. */
static void expect_refused(int descriptor, int error, const char *part)
{
	struct state_journal_content content;
	char why[256] = "";

	assert_true(state_journal_load(descriptor, &content, why, sizeof(why)) == error);
	assert_true(strstr(why, part) != NULL);
}

#endif
