/* SPDX-License-Identifier: Apache-2.0
 *
 * A journal that is not as it was written: what was kept is refused, never read as something else.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "journal/things.h"

/* What is kept, as one text: the lines, the answers, and which request was handled. NULL: it is
 * refused, and that is said. */
static char *content_text(int descriptor)
{
	struct state_journal_content content;
	char why[256] = "", *text = NULL;
	size_t bytes;

	if (state_journal_load(descriptor, &content, why, sizeof(why)) != 0) {
		assert_true(strstr(why, "what another process has kept cannot be read: ") == why);
		return NULL;
	}
	FILE *out = open_memstream(&text, &bytes);
	assert_non_null(out);
	for (int byte; (byte = fgetc(content.text)) != EOF;)
		fputc(byte, out);
	fprintf(out, "handled %llu of %zu\n", (unsigned long long)content.handled,
		content.request_bytes);
	for (size_t i = 0; i < content.answer_count; i++)
		fprintf(out, "answer %.*s\n", (int)content.answers[i].iov_len,
			(const char *)content.answers[i].iov_base);
	fclose(out);
	state_journal_content_finish(&content);
	return text;
}

/* With the byte at the place changed to each of the values that it has with one other bit, or to
 * any: what was kept is refused, or read as it was. Returns how often it was refused. */
static int damage(int descriptor, uint64_t at, bool any, const char *expected)
{
	unsigned char byte, changed;
	int refused = 0;

	assert_true(pread(descriptor, &byte, 1, (off_t)at) == 1);
	for (int i = 0; i < (any ? 256 : 8); i++) {
		changed = any ? (unsigned char)i : (unsigned char)(byte ^ (1 << i));
		assert_true(pwrite(descriptor, &changed, 1, (off_t)at) == 1);
		char *text = content_text(descriptor);
		if (text != NULL && strcmp(text, expected) != 0)
			fprintf(stderr, "byte %llu: %02x instead of %02x: got:\n%sexpected:\n%s",
				(unsigned long long)at, changed, byte, text, expected);
		assert_true(text == NULL || strcmp(text, expected) == 0);
		refused += text == NULL;
		free(text);
	}
	assert_true(pwrite(descriptor, &byte, 1, (off_t)at) == 1);
	return refused;
}

/* Whatever byte of the head, or of what counts of the log, is another one. */
static void test_damage(void **state)
{
	enum { HEAD = 160, LOG = 2000 };
	const uint64_t log_start = (uint64_t)1 << 25;
	int descriptor = new_file(), other = new_file(), refused = 0;
	uint64_t last = 0;
	struct state_journal *journal = create(descriptor, 0);
	struct thing things[4] = {{.place = 1}, {.place = 2}, {.place = 3}, {.place = 4}};
	struct iovec answer = {.iov_base = "answer", .iov_len = 6};

	expect_refused(other, -ENODATA, "there is nothing");
	for (uint64_t i = 1; i <= 6; i++) {
		struct thing *thing = &things[i % 4];
		thing->value = i;
		state_journal_mark(journal, &thing->item, &kind);
		if (i == 5)
			state_journal_remove(journal, &things[2].item);
		state_journal_commit(journal, i, &answer, 1);
	}
	char *expected = content_text(descriptor);
	assert_non_null(expected);
	for (uint64_t at = 0; at < HEAD; at++)
		refused += damage(descriptor, at, true, expected);
	assert_true(refused > 0);
	refused = 0;
	for (uint64_t at = log_start; at < log_start + LOG; at++) {
		int here = damage(descriptor, at, false, expected);
		refused += here;
		if (here > 0)
			last = at;
	}
	assert_true(refused > 8 * 48 * 6); /* at least the records' heads */
	free(expected);
	assert_true(pwrite(descriptor, "#", 1, (off_t)last) == 1);
	expect_refused(descriptor, -EBADMSG, "a checksum does not match");
	assert_true(pwrite(descriptor, "dlockfs state 0", 15, 0) == 15);
	expect_refused(descriptor, -EINVAL, "expected the form of version");
	state_journal_destroy(journal);
	close(descriptor);
	close(other);
}

static void expect_lines(int descriptor, const char *lines)
{
	char *text = content_text(descriptor);

	assert_non_null(text);
	assert_true(strncmp(text, lines, strlen(lines)) == 0);
	free(text);
}

/* A process that was killed when it had written an extent, and not yet shown to it: what is read is
 * that one, or the one before; and the next process goes on behind what was read. */
static void test_not_shown(void **state)
{
	const off_t current = 20; /* of the head */
	int descriptor = new_file();
	struct thing thing = {.place = 1}, again = {.place = 1, .value = 3};

	for (uint32_t shown = 1; shown <= 2; shown++) {
		struct state_journal *journal = create(descriptor, 0), *next;

		thing = (struct thing){.place = 1};
		again.item = (struct state_item){0};
		for (uint64_t i = 1; i <= 2; i++) {
			thing.value = i;
			state_journal_mark(journal, &thing.item, &kind);
			state_journal_commit(journal, i, NULL, 0);
		}
		assert_true(pwrite(descriptor, &shown, sizeof(shown), current) == sizeof(shown));
		expect_lines(descriptor, "1=2\nend\n");
		next = create(descriptor, 2);
		expect_lines(descriptor, "1=2\nend\n");
		state_journal_mark(next, &again.item, &kind);
		state_journal_commit(next, 3, NULL, 0);
		expect_lines(descriptor, "1=3\nend\n");
		state_journal_destroy(next);
		state_journal_destroy(journal);
	}
	close(descriptor);
}

/* A process had to end its journal, and the next one begins it anew: from its first transaction on
 * nothing that is left there of the former one counts. */
static void test_begun_anew(void **state)
{
	for (uint64_t commits = 1; commits <= 4; commits++) {
		int descriptor = new_file();
		struct state_journal *journal = create(descriptor, 0), *next;
		struct thing thing = {.place = 1}, again = {.place = 1, .value = 9};

		for (uint64_t i = 1; i <= commits; i++) {
			thing.value = i;
			state_journal_mark(journal, &thing.item, &kind);
			state_journal_commit(journal, i, NULL, 0);
		}
		state_journal_end(journal);
		expect_refused(descriptor, -ENODATA, "there is nothing");
		next = create(descriptor, commits);
		expect_refused(descriptor, -ENODATA, "there is nothing");
		state_journal_mark(next, &again.item, &kind);
		state_journal_commit(next, commits + 1, NULL, 0);
		expect_lines(descriptor, "1=9\nend\n");
		state_journal_destroy(next);
		state_journal_destroy(journal);
		close(descriptor);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_not_shown),
		cmocka_unit_test(test_begun_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
