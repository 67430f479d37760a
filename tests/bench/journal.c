/* SPDX-License-Identifier: Apache-2.0
 *
 * journal [COMMITS]: how long the commits of a daemon's journal take, and how large its file gets,
 * by how many claims there are. A commit is what taking or releasing a lock writes: one claim goes,
 * another comes, three change, all of the few that are in use; and the kernel is answered.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "journal/journal.h"
#include "journal/text.h"

#define COMMITS	      200000
#define CHANGES	      3
#define ANSWER_BYTES  120
#define REQUEST_BYTES 4096

/* Of the claims one in so many is in use. */
#define IDLE 100

struct claim {
	struct state_item item; /* first */
	uint64_t number;
	uint64_t changes;
};

static struct state_place place(const struct state_item *item)
{
	const struct claim *claim = (const struct claim *)item;
	return (struct state_place){{STATE_PLACE_SHARD, claim->number}};
}

static void save(const struct state_item *item, FILE *out)
{
	const struct claim *claim = (const struct claim *)item;

	state_begin(out, "claim");
	state_text(out, "state", "held");
	state_text(out, "kind", "exclusive");
	state_text(out, "name", "_c_5cf3a1b0-7d52-4f0e-9b1e-6a7c8d9e0f11-exclusive-0000000042");
	state_unsigned(out, "file", claim->number);
	state_number(out, "kept", 0);
	state_number(out, "pid", 4711);
	state_unsigned(out, "uid", 1000);
	state_text(out, "command", "backup");
	state_unsigned(out, "token", claim->changes);
	state_end(out);
}

static const struct state_kind kind = {place, save};

/* Of this thread alone: whatever else runs takes no part in it. */
static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

	return (first > second) - (first < second);
}

static uint64_t file_bytes(const struct state_journal *journal)
{
	struct stat attr;

	if (fstat(state_journal_descriptor(journal), &attr) < 0) {
		perror("fstat");
		exit(1);
	}
	return (uint64_t)attr.st_blocks * 512;
}

static uint64_t text_bytes(const struct state_journal *journal)
{
	struct state_journal_content content;
	char why[256];

	if (state_journal_load(state_journal_descriptor(journal), &content, why, sizeof(why)) < 0) {
		fprintf(stderr, "journal: %s\n", why);
		exit(1);
	}
	uint64_t bytes = 0;
	while (fgetc(content.text) != EOF)
		bytes++;
	state_journal_content_finish(&content);
	return bytes;
}

static void change(struct state_journal *journal, struct claim *claims, size_t in_use)
{
	struct claim *claim = &claims[(size_t)rand() % in_use];

	state_journal_remove(journal, &claim->item);
	state_journal_mark(journal, &claim->item, &kind);
	for (int i = 0; i < CHANGES; i++) {
		claim = &claims[(size_t)rand() % in_use];
		claim->changes++;
		state_journal_mark(journal, &claim->item, &kind);
	}
}

static void measure(size_t count, size_t commits)
{
	static char text[ANSWER_BYTES];
	const struct iovec answer = {.iov_base = text, .iov_len = sizeof(text)};
	struct state_journal *journal;
	struct claim *claims = calloc(count, sizeof(*claims));
	int64_t *times_ns = calloc(commits, sizeof(*times_ns)), sum_ns = 0;
	uint64_t largest = 0;
	int descriptor = memfd_create("journal", MFD_CLOEXEC);

	if (claims == NULL || times_ns == NULL || descriptor < 0 ||
	    state_journal_create(descriptor, REQUEST_BYTES, 0, &journal) < 0) {
		perror("journal");
		exit(1);
	}
	for (size_t i = 0; i < count; i++) {
		claims[i].number = i;
		state_journal_mark(journal, &claims[i].item, &kind);
	}
	state_journal_commit(journal, 0, NULL, 0);
	for (size_t i = 0; i < commits; i++) {
		change(journal, claims, count / IDLE);
		int64_t begin_ns = now_ns();
		state_journal_commit(journal, i + 1, &answer, 1);
		times_ns[i] = now_ns() - begin_ns;
		sum_ns += times_ns[i];
		if (i % 100 == 0) {
			uint64_t bytes = file_bytes(journal);
			largest = bytes > largest ? bytes : largest;
		}
	}
	qsort(times_ns, commits, sizeof(*times_ns), compare);
	printf("%8zu %9.1f %9.1f %9.1f %9.1f %9.1f %9.2f %9.2f\n", count,
	       (double)sum_ns / 1e3 / (double)commits, (double)times_ns[commits / 2] / 1e3,
	       (double)times_ns[commits / 100 * 99] / 1e3,
	       (double)times_ns[commits / 10000 * 9999] / 1e3, (double)times_ns[commits - 1] / 1e3,
	       (double)text_bytes(journal) / (1 << 20), (double)largest / (1 << 20));
	state_journal_destroy(journal);
	free(claims);
	free(times_ns);
}

int main(int argc, char **argv)
{
	size_t commits = argc > 1 ? strtoul(argv[1], NULL, 10) : COMMITS;

	if (argc > 2 || commits == 0) {
		fprintf(stderr, "usage: journal [COMMITS]\n");
		return 2;
	}
	printf("%8s %9s %9s %9s %9s %9s %9s %9s\n", "claims", "mean us", "median", "p99", "p99.99",
	       "longest", "text MiB", "file MiB");
	for (size_t count = 1000; count <= 100000; count *= 10)
		measure(count, commits);
	return 0;
}
