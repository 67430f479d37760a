/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing the journal. Owns which items there are, and what of them is to be written.
 */
#include "state_journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "state_journal_form.h"

/* Of nearly all requests. */
#define AREA_BYTES_TOUCHED ((size_t)1 << 14)

/* What may lie in a region beside what is worth keeping, before that is written anew. */
#define SLACK_BYTES ((uint64_t)1 << 18)

/* A region that has grown beyond that gives its memory back when it does not count any more. */
#define REGION_BYTES_KEPT ((uint64_t)1 << 20)

/* A buffer is not kept if it has grown beyond that. */
#define BUFFER_BYTES_MAX ((size_t)1 << 20)

/* After a commit that has failed. */
#define RETRY_MS 1000

/* By an item's number, from 1. */
struct entry {
	struct state_item *item; /* NULL: the number is free */
	const struct state_kind *kind;
	uint32_t bytes;	    /* of its record as it was written last */
	uint32_t next_free; /* 0: it is the last one */
};

struct state_journal {
	int descriptor;
	struct head *head;
	size_t head_bytes; /* and the area */
	struct {
		char *start;
		size_t bytes; /* mapped, from its start */
	} regions[2];
	uint64_t handled;
	bool begun;	  /* what is in the file is this journal's */
	bool paused;	  /* a commit has failed: nothing is kept until all is written anew, */
	int64_t retry_ms; /* not before this time */
	bool failed;	  /* nothing is kept any more */
	unsigned int region;
	uint64_t used; /* of that */
	uint64_t live; /* bytes of the latest records of all items */

	struct entry *entries;
	uint32_t entries_count, entries_capacity;
	uint32_t free_number; /* 0: there is none */

	struct state_item **changed;
	uint32_t changed_count, changed_capacity;
	uint32_t *removed;
	uint32_t removed_count, removed_capacity;

	FILE *out; /* into the buffer; NULL: to be made */
	char *buffer;
	size_t buffer_bytes;
};

/* Nothing that is in the file is to be used. */
static void forget(struct state_journal *journal)
{
	atomic_store(&journal->head->current, 0);
}

static void fail(struct state_journal *journal, int error)
{
	if (journal->failed)
		return;
	journal->failed = true;
	forget(journal);
	log_error("the state is not kept any more: %s; a kill of this daemon would lose what is "
		  "locked",
		  strerror(error));
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* All items are known, so the next one that is written in full is complete. */
static void pause_keeping(struct state_journal *journal, int error)
{
	if (!journal->paused)
		log_error("the state is not kept for now: %s; a kill of this daemon would lose "
			  "what is locked",
			  strerror(error));
	journal->paused = true;
	journal->begun = false;
	journal->retry_ms = now_ms() + RETRY_MS;
	forget(journal);
}

/* The array has room for one more element. */
static bool reserve(void **array, uint32_t count, uint32_t *capacity, size_t element_bytes)
{
	if (count < *capacity)
		return true;
	uint32_t wanted = *capacity > 0 ? *capacity * 2 : 64;
	void *grown = reallocarray(*array, wanted, element_bytes);
	if (grown == NULL)
		return false;
	*array = grown;
	*capacity = wanted;
	return true;
}

/* Lets the beginning of the area have its pages, so that the kernel copies a request as a whole
 * also while the process is killed. What it says stays. */
static void touch_area(struct state_journal *journal)
{
	volatile char *area = state_journal_request_area(journal);
	size_t bytes = journal->head_bytes - HEAD_BYTES;

	for (size_t at = 0; at < bytes && at < AREA_BYTES_TOUCHED; at += HEAD_BYTES) {
		char byte = area[at];
		area[at] = byte;
	}
}

int state_journal_create(int descriptor, size_t request_bytes, uint64_t handled,
			 struct state_journal **ret)
{
	struct state_journal *journal = calloc(1, sizeof(*journal));
	int error;

	if (journal == NULL)
		return -ENOMEM;
	assert(request_bytes <= AREA_BYTES_MAX);
	journal->head_bytes = HEAD_BYTES + request_bytes;
	if (ftruncate(descriptor, (off_t)region_start(2)) < 0 ||
	    fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, HEAD_BYTES + AREA_BYTES_TOUCHED) < 0)
		goto failed;
	void *mapped =
		mmap(NULL, journal->head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (mapped == MAP_FAILED)
		goto failed;
	journal->head = mapped;
	touch_area(journal);
	journal->descriptor = descriptor;
	journal->handled = handled;
	if (strncmp(journal->head->format, STATE_JOURNAL_FORMAT, sizeof(journal->head->format)) !=
	    0) {
		forget(journal);
		memcpy(journal->head->format, STATE_JOURNAL_FORMAT, sizeof(STATE_JOURNAL_FORMAT));
	}
	journal->head->request_bytes = (uint32_t)request_bytes;
	journal->region = atomic_load(&journal->head->current) & 1;
	*ret = journal;
	return 0;
failed:
	error = -errno;
	free(journal);
	return error;
}

static void free_buffer(struct state_journal *journal)
{
	if (journal->out != NULL)
		fclose(journal->out);
	free(journal->buffer);
	journal->out = NULL;
	journal->buffer = NULL;
}

void state_journal_destroy(struct state_journal *journal)
{
	if (journal == NULL)
		return;
	free_buffer(journal);
	munmap(journal->head, journal->head_bytes);
	for (int i = 0; i < 2; i++) {
		if (journal->regions[i].start != NULL)
			munmap(journal->regions[i].start, journal->regions[i].bytes);
	}
	close(journal->descriptor);
	free(journal->entries);
	free(journal->changed);
	free(journal->removed);
	free(journal);
}

void *state_journal_request_area(const struct state_journal *journal)
{
	return (char *)journal->head + HEAD_BYTES;
}

int state_journal_descriptor(const struct state_journal *journal)
{
	return journal->descriptor;
}

void state_journal_end(struct state_journal *journal)
{
	journal->failed = true;
	forget(journal);
}

void state_journal_settle(struct state_journal *journal)
{
	atomic_store(&journal->head->attempts, 0);
}

bool state_journal_has_failed(const struct state_journal *journal)
{
	return journal->failed || journal->paused;
}

/* Items */

/* A number for the item. Returns false without memory. */
static bool enter(struct state_journal *journal, struct state_item *item)
{
	uint32_t number = journal->free_number;

	if (number != 0) {
		journal->free_number = journal->entries[number - 1].next_free;
	} else {
		if (!reserve((void **)&journal->entries, journal->entries_count,
			     &journal->entries_capacity, sizeof(*journal->entries)))
			return false;
		number = ++journal->entries_count;
	}
	journal->entries[number - 1] = (struct entry){.item = item};
	item->number = number;
	return true;
}

void state_journal_mark(struct state_journal *journal, struct state_item *item,
			const struct state_kind *kind)
{
	if (journal == NULL || journal->failed || item->changed != 0)
		return;
	if (item->number == 0 && !enter(journal, item)) {
		fail(journal, ENOMEM);
		return;
	}
	journal->entries[item->number - 1].kind = kind;
	if (!reserve((void **)&journal->changed, journal->changed_count, &journal->changed_capacity,
		     sizeof(*journal->changed))) {
		pause_keeping(journal, ENOMEM);
		return;
	}
	journal->changed[journal->changed_count++] = item;
	item->changed = journal->changed_count;
}

void state_journal_remove(struct state_journal *journal, struct state_item *item)
{
	if (journal == NULL || item->number == 0)
		return;
	uint32_t number = item->number, changed = item->changed;
	*item = (struct state_item){0};
	if (journal->failed)
		return;
	if (changed != 0) {
		struct state_item *last = journal->changed[--journal->changed_count];
		if (changed <= journal->changed_count) {
			journal->changed[changed - 1] = last;
			last->changed = changed;
		}
	}
	struct entry *entry = &journal->entries[number - 1];
	if (entry->bytes > 0) {
		if (reserve((void **)&journal->removed, journal->removed_count,
			    &journal->removed_capacity, sizeof(*journal->removed)))
			journal->removed[journal->removed_count++] = number;
		else
			pause_keeping(journal, ENOMEM);
		journal->live -= entry->bytes;
	}
	*entry = (struct entry){.next_free = journal->free_number};
	journal->free_number = number;
}

bool state_journal_is_changed(const struct state_journal *journal)
{
	return journal->changed_count > 0 || journal->removed_count > 0;
}

/* Writing */

/* The stream's first byte is the first of the buffer again. */
static bool begin_buffer(struct state_journal *journal)
{
	if (journal->out != NULL) {
		rewind(journal->out);
		return true;
	}
	journal->out = open_memstream(&journal->buffer, &journal->buffer_bytes);
	if (journal->out == NULL)
		return false;
	__fsetlocking(journal->out, FSETLOCKING_BYCALLER);
	return true;
}

/* The item's lines; how many bytes those have is filled in by measure(). */
static void put_item(struct state_journal *journal, const struct state_item *item)
{
	struct entry *entry = &journal->entries[item->number - 1];
	struct record record = {.number = item->number, .place = entry->kind->place(item)};
	off_t start = ftello(journal->out);

	fwrite(&record, sizeof(record), 1, journal->out);
	entry->kind->save(item, journal->out);
	journal->live -= entry->bytes;
	entry->bytes = (uint32_t)(ftello(journal->out) - start);
	journal->live += entry->bytes;
}

/* Behind the transaction's head: each item's record says how long it is. */
static void measure(struct state_journal *journal, size_t start, struct state_item *const *items,
		    uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bytes = journal->entries[items[i]->number - 1].bytes;
		struct record record;

		memcpy(&record, journal->buffer + start, sizeof(record));
		record.bytes = bytes - (uint32_t)sizeof(record);
		memcpy(journal->buffer + start, &record, sizeof(record));
		start += bytes;
	}
}

/* So much of the region is mapped, and has its memory: without that, writing there would end the
 * process. Returns 0 or -errno. */
static int map_region(struct state_journal *journal, unsigned int region, uint64_t bytes)
{
	size_t before = journal->regions[region].bytes;
	size_t wanted = (bytes + bytes / 4 + SLACK_BYTES) & ~(size_t)(SLACK_BYTES / 4 - 1);
	char *start = journal->regions[region].start;

	if (bytes <= before)
		return 0;
	if (fallocate(journal->descriptor, FALLOC_FL_KEEP_SIZE, (off_t)region_start(region),
		      (off_t)wanted) < 0)
		return -errno;
	if (start == NULL)
		start = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, journal->descriptor,
			     (off_t)region_start(region));
	else
		start = mremap(start, before, wanted, MREMAP_MAYMOVE);
	if (start == MAP_FAILED)
		return -errno;
	journal->regions[region].start = start;
	journal->regions[region].bytes = wanted;
	return 0;
}

/* Gives the memory back. */
static void drop_region(struct state_journal *journal, unsigned int region)
{
	if (journal->regions[region].start != NULL)
		munmap(journal->regions[region].start, journal->regions[region].bytes);
	journal->regions[region].start = NULL;
	journal->regions[region].bytes = 0;
	/* At worst it takes memory. */
	fallocate(journal->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)region_start(region), (off_t)REGION_BYTES);
}

/* Puts the buffer behind what counts in the region, and lets it count. */
static int publish(struct state_journal *journal, unsigned int region, uint64_t used)
{
	int error = map_region(journal, region, used + journal->buffer_bytes);
	if (error != 0)
		return error;
	memcpy(journal->regions[region].start + used, journal->buffer, journal->buffer_bytes);
	journal->region = region;
	journal->used = used + journal->buffer_bytes;
	atomic_store(&journal->head->current, journal->used * 2 + region);
	return 0;
}

/* The transaction of these items and all else that is to be told, in the buffer. */
static int format(struct state_journal *journal, struct state_item *const *items, uint32_t count,
		  const uint32_t *removed, uint32_t removed_count, const struct iovec *answers,
		  size_t answer_count)
{
	struct transaction head = {.handled = journal->handled};

	if (!begin_buffer(journal))
		return -ENOMEM;
	fwrite(&head, sizeof(head), 1, journal->out);
	for (uint32_t i = 0; i < removed_count; i++) {
		struct record record = {.number = removed[i]};
		fwrite(&record, sizeof(record), 1, journal->out);
	}
	for (uint32_t i = 0; i < count; i++)
		put_item(journal, items[i]);
	for (size_t i = 0; i < answer_count; i++) {
		struct record record = {.bytes = (uint32_t)answers[i].iov_len};
		fwrite(&record, sizeof(record), 1, journal->out);
		fwrite(answers[i].iov_base, 1, answers[i].iov_len, journal->out);
	}
	if (fflush(journal->out) != 0 || ferror(journal->out) != 0)
		return -ENOMEM;
	head.bytes = journal->buffer_bytes - sizeof(head);
	memcpy(journal->buffer, &head, sizeof(head));
	measure(journal, sizeof(head) + removed_count * sizeof(struct record), items, count);
	return 0;
}

/* All items, to the other region. */
static int write_anew(struct state_journal *journal, const struct iovec *answers, size_t count)
{
	struct state_item **items = calloc((size_t)journal->entries_count + 1, sizeof(*items));
	uint32_t items_count = 0;
	unsigned int former = journal->region;
	uint64_t former_used = journal->used;

	if (items == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < journal->entries_count; i++) {
		if (journal->entries[i].item != NULL)
			items[items_count++] = journal->entries[i].item;
	}
	int error = format(journal, items, items_count, NULL, 0, answers, count);
	free(items);
	if (error == 0)
		error = publish(journal, !former, 0);
	if (journal->buffer_bytes > BUFFER_BYTES_MAX)
		free_buffer(journal);
	if (error != 0)
		return error;
	if (!journal->begun || former_used > REGION_BYTES_KEPT)
		drop_region(journal, former);
	journal->begun = true;
	return 0;
}

static int write_changes(struct state_journal *journal, const struct iovec *answers, size_t count)
{
	if (!journal->begun || journal->used > 2 * journal->live + SLACK_BYTES)
		return write_anew(journal, answers, count);
	int error = format(journal, journal->changed, journal->changed_count, journal->removed,
			   journal->removed_count, answers, count);
	return error == 0 ? publish(journal, journal->region, journal->used) : error;
}

void state_journal_commit(struct state_journal *journal, uint64_t handled,
			  const struct iovec *answers, size_t count)
{
	if (handled != 0)
		journal->handled = handled;
	if (journal->failed ||
	    (journal->begun && count == 0 && !state_journal_is_changed(journal)) ||
	    (journal->paused && now_ms() < journal->retry_ms))
		return;
	int error = write_changes(journal, answers, count);
	if (error != 0) {
		free_buffer(journal);
		pause_keeping(journal, -error);
		return;
	}
	if (journal->paused)
		log_info("the state is kept again");
	journal->paused = false;
	for (uint32_t i = 0; i < journal->changed_count; i++)
		journal->changed[i]->changed = 0;
	journal->changed_count = 0;
	journal->removed_count = 0;
}
