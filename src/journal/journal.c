/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the journal. Owns the list of items, and which of them are to be written.
 */
#include "journal/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "journal/form.h"

/* Of nearly all requests. */
#define AREA_BYTES_TOUCHED ((size_t)1 << 14)

/* How much longer the log may be than twice the latest records. */
#define SLACK_BYTES ((uint64_t)1 << 17)

/* The log gives its memory back in pieces, which are multiples of pages. */
#define RELEASE_BYTES ((uint64_t)1 << 16)

/* A buffer is not kept if it has grown beyond that. */
#define BUFFER_BYTES_MAX ((size_t)1 << 20)

/* After a commit that has failed. */
#define RETRY_MS 1000

/* The entry of an item's number. The entries are a ring, by the age of their latest records. Number
 * 0 is no item's: it closes the ring, newer than the newest and older than the oldest. */
struct entry {
	struct state_item *item; /* NULL: the number is free */
	const struct state_kind *kind;
	uint64_t at;	       /* of its latest record, in the file */
	uint32_t bytes;	       /* of that; 0: there is none, and it is not in the ring */
	uint32_t older, newer; /* `newer` of a free number: the next free one; 0: it is the last */
};

struct state_journal {
	int descriptor;
	struct head *head;
	size_t head_bytes; /* head and area */
	uint64_t handled;
	bool begun;  /* the file has content of this journal */
	bool paused; /* a commit has failed: nothing is kept until everything is written anew, */
	int64_t retry_ms;  /* not before this time */
	bool failed;	   /* nothing is kept any more */
	uint64_t end;	   /* of what was written */
	uint64_t serial;   /* of the latest extent */
	uint64_t released; /* up to there the log takes no memory */
	uint64_t live;	   /* bytes of the latest records of all items */

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

/* Frees the memory of the log up to `end`, in whole pieces. If that fails, the memory is freed
 * later.
 */
static void release(struct state_journal *journal, uint64_t end)
{
	uint64_t start = journal->released;

	end -= end % RELEASE_BYTES;
	if (end > start &&
	    fallocate(journal->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
		      (off_t)(end - start)) == 0)
		journal->released = end;
}

/* Nothing in the log counts any more. */
static void forget(struct state_journal *journal)
{
	atomic_store(&journal->head->current, 0);
	release(journal, LOG_END);
	journal->released = journal->end - journal->end % RELEASE_BYTES;
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

/* All items stay known, so that the next commit can write them all. */
static void pause_keeping(struct state_journal *journal, int error)
{
	if (!journal->paused)
		log_error("the state is not kept for now: %s; a kill of this daemon would lose "
			  "what is locked",
			  strerror(error));
	journal->paused = true;
	journal->begun = false;
	journal->retry_ms = clock_awake_ms() + RETRY_MS;
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

/* Makes sure that the beginning of the area has its pages, so that the kernel copies a whole
 * request even if the process is killed meanwhile. Does not change the content. */
static void touch_area(struct state_journal *journal)
{
	volatile char *area = state_journal_request_area(journal);
	size_t bytes = journal->head_bytes - HEAD_BYTES;

	for (size_t at = 0; at < bytes && at < AREA_BYTES_TOUCHED; at += HEAD_BYTES) {
		char byte = area[at];
		area[at] = byte;
	}
}

/* Begins behind the content of the file, which counts until the first commit. */
static void begin_log(struct state_journal *journal)
{
	struct head *head = journal->head;
	int current = 0;

	journal->released = LOG_START;
	journal->end = LOG_START;
	if (strncmp(head->format, STATE_JOURNAL_FORMAT, sizeof(head->format)) == 0)
		current = state_journal_find_extent(head);
	if (current > 0) {
		const struct extent *extent = &head->extents[current - 1];
		atomic_store(&head->current, (unsigned int)current);
		journal->end = extent->end;
		journal->serial = extent->serial;
		release(journal, extent->start);
		return;
	}
	forget(journal);
	/* Their serials begin anew, too. */
	memset(head->extents, 0, sizeof(head->extents));
	memcpy(head->format, STATE_JOURNAL_FORMAT, sizeof(STATE_JOURNAL_FORMAT));
}

int state_journal_create(int descriptor, size_t request_bytes, uint64_t handled,
			 struct state_journal **ret)
{
	struct state_journal *journal = calloc(1, sizeof(*journal));
	int error;

	if (journal == NULL || !reserve((void **)&journal->entries, 0, &journal->entries_capacity,
					sizeof(*journal->entries))) {
		free(journal);
		return -ENOMEM;
	}
	journal->entries[0] = (struct entry){0};
	journal->entries_count = 1;
	assert(request_bytes <= AREA_BYTES_MAX);
	journal->head_bytes = HEAD_BYTES + request_bytes;
	if (ftruncate(descriptor, (off_t)LOG_END) < 0 ||
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
	begin_log(journal);
	*ret = journal;
	return 0;
failed:
	error = -errno;
	free(journal->entries);
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

void state_journal_set_deadline(struct state_journal *journal, int64_t time_ms)
{
	if (journal != NULL)
		atomic_store((_Atomic int64_t *)(void *)((char *)journal->head + DEADLINE_OFFSET),
			     time_ms != INT64_MAX ? time_ms : 0);
}

bool state_journal_has_failed(const struct state_journal *journal)
{
	return journal->failed || journal->paused;
}

/* Items */

static void enter_ring(struct state_journal *journal, uint32_t number)
{
	struct entry *none = journal->entries, *entry = &journal->entries[number];

	entry->newer = 0;
	entry->older = none->older;
	journal->entries[none->older].newer = number;
	none->older = number;
}

static void leave_ring(struct state_journal *journal, uint32_t number)
{
	const struct entry *entry = &journal->entries[number];

	journal->entries[entry->older].newer = entry->newer;
	journal->entries[entry->newer].older = entry->older;
}

/* A number for the item. Returns false without memory. */
static bool enter(struct state_journal *journal, struct state_item *item)
{
	uint32_t number = journal->free_number;

	if (number != 0) {
		journal->free_number = journal->entries[number].newer;
	} else {
		if (!reserve((void **)&journal->entries, journal->entries_count,
			     &journal->entries_capacity, sizeof(*journal->entries)))
			return false;
		number = journal->entries_count++;
	}
	journal->entries[number] = (struct entry){.item = item};
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
	journal->entries[item->number].kind = kind;
	if (!reserve((void **)&journal->changed, journal->changed_count, &journal->changed_capacity,
		     sizeof(*journal->changed))) {
		pause_keeping(journal, ENOMEM);
		return;
	}
	journal->changed[journal->changed_count++] = item;
	item->changed = journal->changed_count;
}

void state_journal_visit(const struct state_visit *visit, struct state_item *item,
			 const struct state_kind *kind)
{
	if (visit->out != NULL)
		kind->save(item, visit->out);
	else
		state_journal_mark(visit->journal, item, kind);
}

void state_journal_remove(struct state_journal *journal, struct state_item *item)
{
	if (journal == NULL || item->number == 0)
		return;
	if (journal->failed) {
		*item = (struct state_item){0};
		return;
	}
	uint32_t number = item->number, changed = item->changed;
	if (changed != 0) {
		struct state_item *last = journal->changed[--journal->changed_count];
		if (changed <= journal->changed_count) {
			journal->changed[changed - 1] = last;
			last->changed = changed;
		}
	}
	struct entry *entry = &journal->entries[number];
	if (entry->bytes > 0) {
		leave_ring(journal, number);
		if (reserve((void **)&journal->removed, journal->removed_count,
			    &journal->removed_capacity, sizeof(*journal->removed)))
			journal->removed[journal->removed_count++] = number;
		else
			pause_keeping(journal, ENOMEM);
		journal->live -= entry->bytes;
	}
	*entry = (struct entry){.newer = journal->free_number};
	journal->free_number = number;
	*item = (struct state_item){0};
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

/* Writes the item's lines; seal() fills in their length. */
static void put_item(struct state_journal *journal, struct state_item *item)
{
	struct entry *entry = &journal->entries[item->number];
	struct record record = {.number = item->number, .place = entry->kind->place(item)};
	off_t start = ftello(journal->out);

	fwrite(&record, sizeof(record), 1, journal->out);
	entry->kind->save(item, journal->out);
	if (entry->bytes > 0)
		leave_ring(journal, item->number);
	enter_ring(journal, item->number);
	journal->live -= entry->bytes;
	entry->bytes = (uint32_t)(ftello(journal->out) - start);
	entry->at = journal->end + (uint64_t)start;
	journal->live += entry->bytes;
}

static void put_all_items(struct state_journal *journal)
{
	for (uint32_t i = 1; i < journal->entries_count; i++) {
		if (journal->entries[i].item != NULL)
			put_item(journal, journal->entries[i].item);
	}
}

static void put_changes(struct state_journal *journal)
{
	for (uint32_t i = 0; i < journal->removed_count; i++) {
		struct record record = {.number = journal->removed[i]};
		fwrite(&record, sizeof(record), 1, journal->out);
	}
	for (uint32_t i = 0; i < journal->changed_count; i++)
		put_item(journal, journal->changed[i]);
}

static void put_answers(struct state_journal *journal, const struct iovec *answers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct record record = {.bytes = (uint32_t)answers[i].iov_len};
		fwrite(&record, sizeof(record), 1, journal->out);
		fwrite(answers[i].iov_base, 1, answers[i].iov_len, journal->out);
	}
}

/* Writes old items again, so that the log can begin later. While the log is too long, each
 * transaction gets as many bytes of the oldest items as it has otherwise, and up to one item more.
 * Once these are as many bytes as all items have, no earlier record counts any more: so the log
 * grows by no more than that meanwhile. */
static void put_oldest(struct state_journal *journal)
{
	uint64_t bytes = (uint64_t)ftello(journal->out), moved = 0;

	while (moved < bytes) {
		const struct entry *entry = &journal->entries[journal->entries->newer];
		uint64_t length = journal->end + bytes + moved - entry->at;
		if (entry->item == NULL || length <= 2 * journal->live + SLACK_BYTES ||
		    entry->at >= journal->end)
			return;
		put_item(journal, entry->item);
		moved += entry->bytes;
	}
}

/* Fills in the length and the checksum of each record. Records of items begin at `items_start`. */
static void seal(struct state_journal *journal, size_t items_start)
{
	struct record record;

	for (size_t at = 0; at < journal->buffer_bytes; at += sizeof(record) + record.bytes) {
		char *start = journal->buffer + at;
		memcpy(&record, start, sizeof(record));
		if (at >= items_start && record.number != 0)
			record.bytes =
				journal->entries[record.number].bytes - (uint32_t)sizeof(record);
		record.checksum = state_journal_sum_record(&record, start + sizeof(record),
							   journal->end + at);
		memcpy(start, &record, sizeof(record));
	}
}

/* Writes the transaction into the buffer. */
static int format(struct state_journal *journal, const struct iovec *answers, size_t count)
{
	size_t items_start = 0;

	if (!begin_buffer(journal))
		return -ENOMEM;
	if (journal->begun) {
		put_changes(journal);
		items_start = journal->removed_count * sizeof(struct record);
	} else {
		put_all_items(journal);
	}
	put_answers(journal, answers, count);
	put_oldest(journal);
	if (fflush(journal->out) != 0 || ferror(journal->out) != 0)
		return -ENOMEM;
	seal(journal, items_start);
	return 0;
}

/* Appends the buffer to the log. */
static int append(struct state_journal *journal)
{
	for (size_t written = 0; written < journal->buffer_bytes;) {
		ssize_t bytes =
			pwrite(journal->descriptor, journal->buffer + written,
			       journal->buffer_bytes - written, (off_t)(journal->end + written));
		if (bytes < 0 && errno != EINTR)
			return -errno;
		if (bytes > 0)
			written += (size_t)bytes;
	}
	return 0;
}

/* Makes the appended transaction count. */
static void publish(struct state_journal *journal)
{
	unsigned int next = atomic_load(&journal->head->current) % EXTENTS + 1;
	struct extent *extent = &journal->head->extents[next - 1];

	extent->latest = journal->end;
	journal->end += journal->buffer_bytes;
	extent->end = journal->end;
	extent->start = extent->latest;
	if (journal->live > 0 && journal->entries[journal->entries->newer].at < extent->start)
		extent->start = journal->entries[journal->entries->newer].at;
	extent->handled = journal->handled;
	extent->serial = ++journal->serial;
	extent->request_bytes = journal->head_bytes - HEAD_BYTES;
	extent->checksum = state_journal_sum_extent(extent);
	atomic_store(&journal->head->current, next);
	/* To free much at once would take long. A piece is always more than was written. */
	uint64_t piece_end = journal->released + RELEASE_BYTES + journal->buffer_bytes;
	release(journal, extent->start < piece_end ? extent->start : piece_end);
}

static int write_transaction(struct state_journal *journal, const struct iovec *answers,
			     size_t count)
{
	int error = format(journal, answers, count);

	if (error == 0)
		error = append(journal);
	if (error == 0)
		publish(journal);
	if (error != 0 || journal->buffer_bytes > BUFFER_BYTES_MAX)
		free_buffer(journal);
	return error;
}

void state_journal_commit(struct state_journal *journal, uint64_t handled,
			  const struct iovec *answers, size_t count)
{
	if (handled != 0)
		journal->handled = handled;
	if (journal->failed ||
	    (journal->begun && count == 0 && !state_journal_is_changed(journal)) ||
	    (journal->paused && clock_awake_ms() < journal->retry_ms))
		return;
	int error = write_transaction(journal, answers, count);
	if (error != 0) {
		pause_keeping(journal, -error);
		return;
	}
	if (journal->paused)
		log_info("the state is kept again");
	journal->begun = true;
	journal->paused = false;
	for (uint32_t i = 0; i < journal->changed_count; i++)
		journal->changed[i]->changed = 0;
	journal->changed_count = 0;
	journal->removed_count = 0;
}
