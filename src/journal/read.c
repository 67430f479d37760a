/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the journal of a daemon that has ended. Whatever the file contains, reading ends, with an
 * error or without.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "journal/form.h"

/* Of the content's stream. */
#define TEXT_BUFFER_BYTES ((size_t)1 << 16)

/* A record of an item. */
struct piece {
	struct state_place place;
	uint32_t number;
	uint32_t bytes;
	const char *text;
};

uint64_t state_journal_sum_record(const struct record *record, const char *text, uint64_t at)
{
	struct record sealed = *record;

	sealed.checksum = 0;
	return XXH3_64bits_withSeed(text, record->bytes,
				    XXH3_64bits_withSeed(&sealed, sizeof(sealed), at));
}

uint64_t state_journal_sum_extent(const struct extent *extent)
{
	return XXH3_64bits(extent, offsetof(struct extent, checksum));
}

static bool verifies(const struct extent *extent)
{
	return extent->checksum == state_journal_sum_extent(extent);
}

int state_journal_find_extent(const struct head *head)
{
	unsigned int current = atomic_load(&head->current);

	if (current == 0)
		return 0;
	if (current > EXTENTS || !verifies(&head->extents[current - 1]))
		return -EBADMSG;
	unsigned int other = current % EXTENTS + 1;
	bool later = head->extents[other - 1].serial > head->extents[current - 1].serial;
	return (int)(later && verifies(&head->extents[other - 1]) ? other : current);
}

/* What is read of a file. Its text is not copied: the content's stream reads it out of the mapping.
 */
struct text {
	char *mapping;
	size_t mapped_bytes;
	struct piece *pieces; /* in the order of writing; later the latest of each item, in that of
				 their places */
	size_t piece_count;
	size_t at, offset; /* what is read next: from that offset of that piece on */
};

struct loading {
	struct state_journal_content *content;
	struct text *text;
	const char *log; /* the part that counts, in the mapping, */
	uint64_t start;	 /* and its offset in the file */
	uint64_t bytes;
	const char *latest;    /* transaction */
	struct iovec *answers; /* into the log */
	size_t answer_count, answer_capacity;
};

static int read_all(int descriptor, void *bytes, size_t count, uint64_t offset)
{
	char *at = bytes;

	while (count > 0) {
		ssize_t got = pread(descriptor, at, count, (off_t)offset);
		if (got == 0)
			return -EINVAL;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0) {
			at += got;
			count -= (size_t)got;
			offset += (uint64_t)got;
		}
	}
	return 0;
}

static int read_head(int descriptor, struct head *head)
{
	struct stat attr;

	if (fstat(descriptor, &attr) < 0)
		return -errno;
	if (attr.st_size < HEAD_BYTES)
		return -ENODATA;
	int error = read_all(descriptor, head, sizeof(*head), 0);
	if (error != 0)
		return error;
	if (strncmp(head->format, STATE_JOURNAL_FORMAT, sizeof(head->format)) != 0)
		return -EINVAL;
	return 0;
}

/* Reads the record at *offset, with its text, and moves *offset behind it. Returns 1; 0 at the end;
 * -EBADMSG.
 */
static int next_record(const struct loading *loading, uint64_t *offset, struct record *record,
		       const char **text)
{
	uint64_t left = loading->bytes - *offset;

	if (left == 0)
		return 0;
	if (left < sizeof(*record))
		return -EBADMSG;
	memcpy(record, loading->log + *offset, sizeof(*record));
	if (left - sizeof(*record) < record->bytes)
		return -EBADMSG;
	*text = loading->log + *offset + sizeof(*record);
	*offset += sizeof(*record) + record->bytes;
	return 1;
}

/* Checks that everything is as it was written. Returns how many records of items there are, or
 * -EBADMSG. */
static int64_t count_records(const struct loading *loading)
{
	struct record record;
	const char *text;
	uint64_t offset = 0;
	int64_t count = 0;
	int more;

	while ((more = next_record(loading, &offset, &record, &text)) > 0) {
		uint64_t at = loading->start + offset - record.bytes - sizeof(record);
		if (record.checksum != state_journal_sum_record(&record, text, at))
			return -EBADMSG;
		count += record.number != 0;
	}
	return more < 0 ? more : count;
}

static int note_answer(struct loading *loading, const char *text, size_t bytes)
{
	if (loading->answer_count == loading->answer_capacity) {
		size_t wanted = loading->answer_capacity > 0 ? loading->answer_capacity * 2 : 16;
		struct iovec *grown =
			reallocarray(loading->answers, wanted, sizeof(*loading->answers));
		if (grown == NULL)
			return -ENOMEM;
		loading->answers = grown;
		loading->answer_capacity = wanted;
	}
	loading->answers[loading->answer_count++] =
		(struct iovec){.iov_base = (char *)text, .iov_len = bytes};
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const struct piece *first = a, *second = b;

	if (first->number != second->number)
		return first->number < second->number ? -1 : 1;
	return first->text < second->text ? -1 : 1;
}

/* Keeps only the latest piece of each item. */
static void drop_former(struct loading *loading)
{
	struct text *text = loading->text;
	struct piece *pieces = text->pieces;
	size_t kept = 0;

	qsort(pieces, text->piece_count, sizeof(*pieces), compare_numbers);
	for (size_t i = 0; i < text->piece_count; i++) {
		if (i + 1 == text->piece_count || pieces[i].number != pieces[i + 1].number)
			pieces[kept++] = pieces[i];
	}
	text->piece_count = kept;
}

static int read_records(struct loading *loading)
{
	struct text *pieces = loading->text;
	struct record record;
	const char *text;
	uint64_t offset = 0;
	int64_t count = count_records(loading);
	int error = 0;

	if (count < 0)
		return (int)count;
	pieces->pieces = calloc((size_t)count + 1, sizeof(*pieces->pieces));
	if (pieces->pieces == NULL)
		return -ENOMEM;
	while (error == 0 && next_record(loading, &offset, &record, &text) > 0) {
		if (record.number != 0)
			pieces->pieces[pieces->piece_count++] = (struct piece){
				.place = record.place,
				.number = record.number,
				.bytes = record.bytes,
				.text = text,
			};
		else if (text > loading->latest)
			error = note_answer(loading, text, record.bytes);
	}
	if (error == 0)
		drop_former(loading);
	return error;
}

static int compare_places(const void *a, const void *b)
{
	const struct piece *first = a, *second = b;

	for (size_t i = 0; i < 4; i++) {
		uint64_t at = first->place.at[i], other = second->place.at[i];
		if (at != other)
			return at < other ? -1 : 1;
	}
	return (first->number > second->number) - (first->number < second->number);
}

static ssize_t read_text(void *cookie, char *to, size_t bytes)
{
	struct text *text = cookie;
	size_t done = 0;

	while (done < bytes && text->at < text->piece_count) {
		const struct piece *piece = &text->pieces[text->at];
		size_t more = piece->bytes - text->offset;
		if (more > bytes - done)
			more = bytes - done;
		memcpy(to + done, piece->text + text->offset, more);
		done += more;
		text->offset += more;
		if (text->offset < piece->bytes)
			break;
		text->at++;
		text->offset = 0;
	}
	return (ssize_t)done;
}

static void text_free(struct text *text)
{
	if (text->mapping != NULL)
		munmap(text->mapping, text->mapped_bytes);
	free(text->pieces);
	free(text);
}

static int close_text(void *cookie)
{
	text_free(cookie);
	return 0;
}

/* Opens the content's stream, which owns the text from then on. */
static int open_text(struct loading *loading)
{
	static const cookie_io_functions_t io = {.read = read_text, .close = close_text};
	struct text *text = loading->text;

	qsort(text->pieces, text->piece_count, sizeof(*text->pieces), compare_places);
	text->pieces[text->piece_count++] = (struct piece){.text = "end\n", .bytes = 4};
	loading->content->text = fopencookie(text, "r", io);
	if (loading->content->text == NULL)
		return -ENOMEM;
	loading->text = NULL;
	setvbuf(loading->content->text, NULL, _IOFBF, TEXT_BUFFER_BYTES);
	return 0;
}

static int copy_answers(struct loading *loading)
{
	struct state_journal_content *content = loading->content;

	content->answers = calloc(loading->answer_count + 1, sizeof(*content->answers));
	if (content->answers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < loading->answer_count; i++) {
		struct iovec *answer = &content->answers[i];
		answer->iov_base = malloc(loading->answers[i].iov_len + 1);
		if (answer->iov_base == NULL)
			return -ENOMEM;
		content->answer_count++;
		answer->iov_len = loading->answers[i].iov_len;
		memcpy(answer->iov_base, loading->answers[i].iov_base, answer->iov_len);
	}
	return 0;
}

/* The part of the log that counts, by the head. */
static int find_extent(int descriptor, const struct head *head, struct extent *ret)
{
	int current = state_journal_find_extent(head);
	struct stat attr;

	if (current <= 0)
		return current < 0 ? current : -ENODATA;
	const struct extent *extent = &head->extents[current - 1];
	/* The file takes at least as many blocks as were written; the rest of it takes none. */
	if (extent->start < LOG_START || extent->start > extent->end || extent->end > LOG_END ||
	    extent->latest > extent->end || fstat(descriptor, &attr) < 0 ||
	    (uint64_t)attr.st_size < extent->end ||
	    (uint64_t)attr.st_blocks * 512 < extent->end - extent->start ||
	    extent->request_bytes > AREA_BYTES_MAX)
		return -EBADMSG;
	*ret = *extent;
	return 0;
}

/* Maps the part of the log that counts. */
static int map_log(int descriptor, struct loading *loading)
{
	struct text *text = loading->text;
	size_t before = loading->start % HEAD_BYTES;

	text->mapped_bytes = before + loading->bytes;
	if (loading->bytes == 0)
		return 0;
	void *mapping = mmap(NULL, text->mapped_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE,
			     descriptor, (off_t)(loading->start - before));
	if (mapping == MAP_FAILED)
		return -errno;
	text->mapping = mapping;
	loading->log = text->mapping + before;
	return 0;
}

static int load(int descriptor, struct loading *loading)
{
	struct state_journal_content *content = loading->content;
	struct head head;
	struct extent extent;
	int error = read_head(descriptor, &head);

	if (error == 0)
		error = find_extent(descriptor, &head, &extent);
	if (error != 0)
		return error;
	loading->start = extent.start;
	loading->bytes = extent.end - extent.start;
	content->request = malloc((size_t)extent.request_bytes + 1);
	loading->text = calloc(1, sizeof(*loading->text));
	if (loading->text == NULL || content->request == NULL)
		return -ENOMEM;
	error = map_log(descriptor, loading);
	if (error != 0)
		return error;
	loading->latest = loading->log;
	if (extent.latest > extent.start)
		loading->latest += extent.latest - extent.start;
	content->handled = extent.handled;
	content->request_bytes = extent.request_bytes;
	error = read_all(descriptor, content->request, content->request_bytes, HEAD_BYTES);
	if (error == 0)
		error = read_records(loading);
	if (error == 0)
		error = copy_answers(loading);
	return error == 0 ? open_text(loading) : error;
}

int state_journal_load(int descriptor, struct state_journal_content *ret, char *why,
		       size_t why_bytes)
{
	struct loading loading = {.content = ret};

	*ret = (struct state_journal_content){0};
	int error = load(descriptor, &loading);
	if (loading.text != NULL)
		text_free(loading.text);
	free(loading.answers);
	if (error == 0)
		return 0;
	state_journal_content_finish(ret);
	snprintf(why, why_bytes, "what another process has kept cannot be read: %s",
		 error == -EINVAL    ? "expected the form of version " DLOCKFS_VERSION
		 : error == -EBADMSG ? "a checksum does not match"
		 : error == -ENODATA ? "there is nothing"
				     : strerror(-error));
	return error;
}

void state_journal_content_finish(struct state_journal_content *content)
{
	if (content->text != NULL)
		fclose(content->text);
	free(content->request);
	for (size_t i = 0; i < content->answer_count; i++)
		free(content->answers[i].iov_base);
	free(content->answers);
	*content = (struct state_journal_content){0};
}

/* Adds to a number in the head, and returns it; or -errno. */
static int add(int descriptor, size_t offset, unsigned int more)
{
	char *head = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

	if (head == MAP_FAILED)
		return -errno;
	int number = (int)(atomic_fetch_add((atomic_uint *)(head + offset), more) + more);
	munmap(head, HEAD_BYTES);
	return number;
}

int state_journal_count_attempt(int descriptor)
{
	return add(descriptor, offsetof(struct head, attempts), 1);
}

int state_journal_count_guard(int descriptor)
{
	return add(descriptor, offsetof(struct head, guards), 1);
}

int state_journal_guards(int descriptor)
{
	return add(descriptor, offsetof(struct head, guards), 0);
}
