/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept for the next daemon: whole transactions, whenever this one is killed.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "journal/deadline.h"
#include "journal/things.h"

#define THINGS 20
#define KILLS  40

/* What the file takes beside the items: its head, the area, and what the log has too much. */
#define FILE_BYTES (400 << 10)

static struct state_journal_content load(int descriptor)
{
	struct state_journal_content content;
	char why[256] = "";
	int error = state_journal_load(descriptor, &content, why, sizeof(why));

	if (error != 0)
		fprintf(stderr, "%s\n", why);
	assert_true(error == 0);
	return content;
}

static void expect_text(int descriptor, const char *expected)
{
	struct state_journal_content content = load(descriptor);
	char text[4096];
	size_t bytes = fread(text, 1, sizeof(text) - 1, content.text);

	text[bytes] = '\0';
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "got:\n%sexpected:\n%s", text, expected);
	assert_true(strcmp(text, expected) == 0);
	state_journal_content_finish(&content);
}

static void test_items(void **state)
{
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);
	struct thing a = {.place = 2, .value = 7}, b = {.place = 1, .value = 8}, c = {.place = 3};

	expect_refused(descriptor, -ENODATA, "there is nothing");
	state_journal_mark(journal, &a.item, &kind);
	state_journal_mark(journal, &b.item, &kind);
	state_journal_mark(journal, &c.item, &kind);
	assert_true(state_journal_is_changed(journal));
	state_journal_commit(journal, 0, NULL, 0);
	assert_true(!state_journal_is_changed(journal));
	expect_text(descriptor, "1=8\n2=7\nend\n");

	/* Not before it is committed. */
	a.value = 9;
	c.value = 1;
	state_journal_mark(journal, &a.item, &kind);
	state_journal_mark(journal, &c.item, &kind);
	state_journal_mark(journal, &a.item, &kind);
	expect_text(descriptor, "1=8\n2=7\nend\n");
	state_journal_commit(journal, 0, NULL, 0);
	expect_text(descriptor, "1=8\n2=9\n3=1\nend\n");

	/* One that goes, marked or not; its number is another's; a place changes. */
	struct thing d = {.place = 9, .value = 9}, e = {.place = 4, .value = 4};
	state_journal_mark(journal, &b.item, &kind);
	state_journal_remove(journal, &b.item);
	state_journal_remove(journal, &c.item);
	state_journal_mark(journal, &d.item, &kind);
	state_journal_mark(journal, &e.item, &kind);
	state_journal_remove(journal, &d.item);
	a.place = 5;
	state_journal_mark(journal, &a.item, &kind);
	state_journal_commit(journal, 0, NULL, 0);
	expect_text(descriptor, "4=4\n5=9\nend\n");

	/* Another daemon goes on with the file: what was there counts up to its first commit. */
	state_journal_destroy(journal);
	journal = create(descriptor, 0);
	struct thing f = {.place = 1, .value = 1};
	state_journal_mark(journal, &f.item, &kind);
	expect_text(descriptor, "4=4\n5=9\nend\n");
	state_journal_commit(journal, 0, NULL, 0);
	expect_text(descriptor, "1=1\nend\n");

	state_journal_end(journal);
	expect_refused(descriptor, -ENODATA, "there is nothing");
	state_journal_mark(journal, &f.item, &kind);
	state_journal_commit(journal, 0, NULL, 0);
	expect_refused(descriptor, -ENODATA, "there is nothing");
	state_journal_destroy(journal);
	close(descriptor);
}

static void test_answers(void **state)
{
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);
	struct iovec answers[] = {{.iov_base = "first", .iov_len = 5},
				  {.iov_base = "2nd", .iov_len = 3}};
	struct thing a = {.place = 1, .value = 1};

	strcpy(state_journal_request_area(journal), "a request");
	state_journal_mark(journal, &a.item, &kind);
	state_journal_commit(journal, 77, answers, 2);
	struct state_journal_content content = load(descriptor);
	assert_true(content.answer_count == 2 && content.handled == 77);
	assert_true(content.answers[0].iov_len == 5 &&
		    memcmp(content.answers[0].iov_base, "first", 5) == 0);
	assert_true(content.answers[1].iov_len == 3 &&
		    memcmp(content.answers[1].iov_base, "2nd", 3) == 0);
	assert_true(content.request_bytes == AREA_BYTES &&
		    strcmp(content.request, "a request") == 0);
	state_journal_content_finish(&content);

	/* Only those of the latest transaction; without one of the kernel's requests, the one
	 * before stays the one that was handled. A note changes nothing of that. */
	state_journal_commit(journal, 0, &answers[1], 1);
	content = load(descriptor);
	assert_true(content.answer_count == 1 && content.handled == 77);
	state_journal_content_finish(&content);
	state_journal_mark(journal, &a.item, &kind);
	state_journal_commit(journal, 0, NULL, 0);
	content = load(descriptor);
	assert_true(content.answer_count == 0 && content.handled == 77);
	state_journal_content_finish(&content);

	/* Also one that is larger than all items, which are written again behind it. */
	struct iovec large = {.iov_base = calloc(1, 1 << 20), .iov_len = 1 << 20};
	for (int i = 0; i < 8; i++) {
		state_journal_commit(journal, 77, &large, 1);
		content = load(descriptor);
		assert_true(content.answer_count == 1 && content.answers[0].iov_len == 1 << 20);
		state_journal_content_finish(&content);
	}
	free(large.iov_base);

	/* The next daemon's first transaction says the same. */
	state_journal_destroy(journal);
	journal = create(descriptor, 77);
	state_journal_commit(journal, 0, NULL, 0);
	content = load(descriptor);
	assert_true(content.handled == 77);
	state_journal_content_finish(&content);
	state_journal_destroy(journal);
	close(descriptor);
}

static void test_attempts(void **state)
{
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);

	state_journal_commit(journal, 0, NULL, 0);
	assert_true(state_journal_count_attempt(descriptor) == 1);
	assert_true(state_journal_count_attempt(descriptor) == 2);
	state_journal_settle(journal);
	assert_true(state_journal_count_attempt(descriptor) == 1);
	state_journal_destroy(journal);
	close(descriptor);
}

static uint64_t file_bytes(int descriptor)
{
	struct stat attr;

	assert_true(fstat(descriptor, &attr) == 0);
	return (uint64_t)attr.st_blocks * 512;
}

/* Who has only the file learns until when holders need not be told, and waits for no other file. */
static void test_deadline(void **state)
{
	int descriptor = new_file(), ends[2];
	struct state_journal *journal = create(descriptor, 0);
	struct thing thing = {.value = 7};

	(void)state;
	assert_true(deadline_read(descriptor) == 0);
	state_journal_set_deadline(journal, 1234567890123);
	state_journal_mark(journal, &thing.item, &kind);
	state_journal_commit(journal, 0, NULL, 0);
	assert_true(deadline_read(descriptor) == 1234567890123);
	expect_text(descriptor, "0=7\nend\n");
	state_journal_set_deadline(journal, INT64_MAX);
	assert_true(deadline_read(descriptor) == 0);
	state_journal_set_deadline(NULL, 1);
	state_journal_destroy(journal);
	assert_true(pipe(ends) == 0);
	assert_true(deadline_read(ends[0]) == 0);
	assert_true(deadline_read(-1) == 0);
	close(ends[0]);
	close(ends[1]);
	close(descriptor);
}

/* Much is written again and again, all or always the same, by one daemon after another: the file
 * does not grow, and nothing is lost. */
static void test_growth(void **state)
{
	enum { ROUNDS = 2000, ROUNDS_EACH = 500 };
	int descriptor = new_file();
	struct state_journal *journal = NULL;
	struct thing *things = calloc(THINGS, sizeof(*things));
	char expected[4096] = "";

	for (int round = 0; round < ROUNDS; round++) {
		bool begins = round % ROUNDS_EACH == 0;
		if (begins) {
			state_journal_destroy(journal);
			journal = create(descriptor, 0);
		}
		for (int i = 0; i < (round % ROUNDS_EACH < ROUNDS_EACH / 2 ? THINGS : 3); i++) {
			if (begins)
				things[i].item = (struct state_item){0};
			things[i].place = (uint64_t)i;
			things[i].value = (uint64_t)round;
			things[i].padding = 5000;
			state_journal_mark(journal, &things[i].item, &kind);
		}
		state_journal_commit(journal, 0, NULL, 0);
		assert_true(file_bytes(descriptor) < 3 * THINGS * 5060 + FILE_BYTES);
	}
	for (int i = 0; i < THINGS; i++) {
		things[i].padding = 0;
		state_journal_mark(journal, &things[i].item, &kind);
		sprintf(expected + strlen(expected), "%d=%d\n", i,
			i < 3 ? ROUNDS - 1 : ROUNDS - ROUNDS_EACH / 2 - 1);
	}
	state_journal_commit(journal, 0, NULL, 0);
	strcat(expected, "end\n");
	expect_text(descriptor, expected);
	for (int i = 0; i < THINGS; i++)
		state_journal_remove(journal, &things[i].item);
	state_journal_commit(journal, 0, NULL, 0);
	expect_text(descriptor, "end\n");
	state_journal_destroy(journal);
	free(things);
	close(descriptor);
}

/* However many items there are, a commit writes few of those that have not changed; and yet the
 * file has three times what there is to know at most. */
static void test_no_stall(void **state)
{
	enum { MANY = 20000, CHANGES = 3 };
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);
	struct thing *things = calloc(MANY, sizeof(*things));
	unsigned long all = 0;

	for (uint64_t i = 0; i < MANY; i++) {
		things[i].place = 100000 + i;
		things[i].value = 100000;
		state_journal_mark(journal, &things[i].item, &kind);
	}
	state_journal_commit(journal, 0, NULL, 0);
	uint64_t first_bytes = file_bytes(descriptor);
	for (int round = 0; round < 4 * MANY / CHANGES; round++) {
		for (int i = 0; i < CHANGES; i++) {
			things[round % 7 + i].value++;
			state_journal_mark(journal, &things[round % 7 + i].item, &kind);
		}
		saves = 0;
		state_journal_commit(journal, 0, NULL, 0);
		assert_in_range(saves, CHANGES, 2 * CHANGES + 1);
		all += saves - CHANGES;
		assert_true(file_bytes(descriptor) < 3 * first_bytes + FILE_BYTES);
	}
	assert_true(all > MANY);
	struct state_journal_content content = load(descriptor);
	for (unsigned long long i = 0, place_read, value_read; i < MANY; i++) {
		assert_true(fscanf(content.text, "%llu=%llu ", &place_read, &value_read) == 2);
		assert_true(place_read == 100000 + i && value_read == things[i].value);
	}
	state_journal_content_finish(&content);
	state_journal_destroy(journal);
	free(things);
	close(descriptor);
}

/* Many come and go, and the last one stays, with a high number. */
static void test_gaps(void **state)
{
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);
	struct thing *things = calloc(10000, sizeof(*things));

	for (uint64_t i = 0; i < 10000; i++) {
		things[i].place = i;
		things[i].value = 1;
		state_journal_mark(journal, &things[i].item, &kind);
	}
	state_journal_commit(journal, 0, NULL, 0);
	for (int i = 0; i < 9999; i++)
		state_journal_remove(journal, &things[i].item);
	state_journal_commit(journal, 0, NULL, 0);
	expect_text(descriptor, "9999=1\nend\n");
	for (uint64_t value = 1; value <= 5000; value++) {
		things[9999].value = value;
		state_journal_mark(journal, &things[9999].item, &kind);
		state_journal_commit(journal, 0, NULL, 0);
	}
	expect_text(descriptor, "9999=5000\nend\n");
	state_journal_destroy(journal);
	free(things);
	close(descriptor);
}

/* Without memory nothing is kept, and soon everything again. */
static void test_no_memory(void **state)
{
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);
	struct thing things[65] = {0};

	for (uint64_t i = 0; i < 64; i++) {
		things[i].place = i;
		things[i].value = i == 7;
		state_journal_mark(journal, &things[i].item, &kind);
	}
	state_journal_commit(journal, 0, NULL, 0);
	things[64].value = 5;
	things[64].place = 64;
	state_journal_mark(journal, &things[64].item, &kind);
	allocations_to_failure = 1;
	for (uint64_t i = 0; i < 64; i++) {
		things[i].value *= 2;
		state_journal_mark(journal, &things[i].item, &kind);
	}
	assert_int_equal(allocations_to_failure, 0);
	assert_true(state_journal_has_failed(journal));
	expect_refused(descriptor, -ENODATA, "there is nothing");
	for (int tries = 0; tries < 500 && state_journal_has_failed(journal); tries++) {
		state_journal_commit(journal, 9, NULL, 0);
		usleep(10000);
	}
	expect_text(descriptor, "7=2\n64=5\nend\n");
	struct state_journal_content content = load(descriptor);
	assert_true(content.handled == 9);
	state_journal_content_finish(&content);

	/* An item without a number can not be kept. */
	struct thing more[63] = {0};
	for (uint64_t i = 0; i < 62; i++)
		state_journal_mark(journal, &more[i].item, &kind);
	allocations_to_failure = 1;
	state_journal_mark(journal, &more[62].item, &kind);
	assert_true(state_journal_has_failed(journal));
	state_journal_commit(journal, 0, NULL, 0);
	expect_refused(descriptor, -ENODATA, "there is nothing");
	for (int i = 0; i < 63; i++)
		state_journal_remove(journal, &more[i].item);
	state_journal_destroy(journal);
	close(descriptor);
}

/* The file cannot get larger: what was written counts no more, until all can be written. */
static void test_no_space(void **state)
{
	int descriptor = new_file();
	struct state_journal *journal = create(descriptor, 0);
	struct thing things[THINGS] = {0};
	struct rlimit before, limit;
	uint64_t value = 1;

	assert_true(getrlimit(RLIMIT_FSIZE, &before) == 0);
	limit = before;
	limit.rlim_cur = ((rlim_t)1 << 25) + (1 << 19);
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 1; i < THINGS; i++) {
		things[i].place = (uint64_t)i;
		state_journal_mark(journal, &things[i].item, &kind);
	}
	assert_true(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	for (; !state_journal_has_failed(journal); value++) {
		assert_true(value < 1000);
		things[0].value = value;
		things[0].padding = 2000;
		state_journal_mark(journal, &things[0].item, &kind);
		state_journal_commit(journal, 0, NULL, 0);
	}
	assert_true(setrlimit(RLIMIT_FSIZE, &before) == 0);
	assert_true(value > 200);
	expect_refused(descriptor, -ENODATA, "there is nothing");
	assert_true(file_bytes(descriptor) < 128 << 10);
	things[0].padding = 0;
	for (int tries = 0; tries < 500 && state_journal_has_failed(journal); tries++) {
		state_journal_commit(journal, 0, NULL, 0);
		usleep(10000);
	}
	char expected[64];
	sprintf(expected, "0=%llu\nend\n", (unsigned long long)value - 1);
	expect_text(descriptor, expected);
	state_journal_destroy(journal);
	close(descriptor);
}

/* What happens before commit `number`: the first makes all things; one of the first half changes;
 * now and then one goes, or comes again. A journal that is NULL does not hear of it. */
static void alter(struct state_journal *journal, struct thing *things, uint64_t number)
{
	for (uint64_t i = 0; number == 1 && i < THINGS; i++) {
		things[i] = (struct thing){.place = i, .value = number};
		state_journal_mark(journal, &things[i].item, &kind);
	}
	struct thing *thing = &things[number * 7 % (THINGS / 2)];
	thing->value = number;
	thing->padding = number % 97;
	state_journal_mark(journal, &thing->item, &kind);
	thing = &things[number * 11 % (number % 97 == 0 ? THINGS : THINGS / 2)];
	if (number % 3 != 0)
		return;
	thing->padding = number % 61;
	thing->value = thing->value == 0 ? number : 0;
	if (thing->value == 0)
		state_journal_remove(journal, &thing->item);
	else
		state_journal_mark(journal, &thing->item, &kind);
}

static void make_commit(struct state_journal *journal, struct thing *things, uint64_t number)
{
	struct iovec answer = {.iov_base = &number, .iov_len = sizeof(number)};

	alter(journal, things, number);
	state_journal_commit(journal, number, &answer, 1);
}

/* Another daemon goes on: it makes all things anew. */
static struct state_journal *begin_another(struct state_journal *journal, int descriptor,
					   struct thing *things, uint64_t handled)
{
	state_journal_destroy(journal);
	journal = create(descriptor, handled);
	for (int i = 0; i < THINGS; i++) {
		things[i].item = (struct state_item){0};
		if (things[i].value != 0)
			state_journal_mark(journal, &things[i].item, &kind);
	}
	return journal;
}

/* What is kept after so many commits. */
static char *text_after(uint64_t number)
{
	struct thing things[THINGS] = {0};
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	for (uint64_t i = 1; i <= number; i++)
		alter(NULL, things, i);
	for (int i = 0; i < THINGS; i++)
		save(&things[i].item, out);
	fputs("end\n", out);
	fclose(out);
	return text;
}

/* Whether a text is what is kept. */
static bool has_text(FILE *kept, const char *text)
{
	size_t bytes = strlen(text);
	char *found = malloc(bytes + 1);
	bool same = fread(found, 1, bytes + 1, kept) == bytes && memcmp(found, text, bytes) == 0;

	free(found);
	return same;
}

/* The answer to that request. */
static bool has_answer(const struct state_journal_content *content, uint64_t number)
{
	return content->answer_count == 1 && content->answers[0].iov_len == sizeof(number) &&
	       memcmp(content->answers[0].iov_base, &number, sizeof(number)) == 0;
}

static void change_until_killed(int descriptor, int told)
{
	struct state_journal *journal = create(descriptor, 0);
	struct thing things[THINGS] = {0};

	for (uint64_t number = 1;; number++) {
		if (number % 1000 == 0)
			journal = begin_another(journal, descriptor, things, number - 1);
		make_commit(journal, things, number);
		if (write(told, &number, sizeof(number)) < 0)
			_exit(1);
	}
}

/* Whenever it is killed, a whole transaction is there, and the latest one that it told of. */
static void test_kill(void **state)
{
	srand(7);
	for (int kill_number = 0; kill_number < KILLS; kill_number++) {
		int descriptor = new_file();
		int ends[2];
		uint64_t told = 0, number;

		assert_true(pipe(ends) == 0);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			change_until_killed(descriptor, ends[1]);
		close(ends[1]);
		assert_true(read(ends[0], &told, sizeof(told)) == (ssize_t)sizeof(told));
		for (int transactions = rand() % 2000; transactions > 0; transactions--)
			assert_true(read(ends[0], &told, sizeof(told)) == (ssize_t)sizeof(told));
		kill(child, SIGKILL);
		assert_true(waitpid(child, NULL, 0) == child);
		while (read(ends[0], &number, sizeof(number)) == (ssize_t)sizeof(number))
			told = number;
		struct state_journal_content content = load(descriptor);
		assert_true(content.handled == told || content.handled == told + 1);
		char *text = text_after(content.handled);
		assert_true(has_text(content.text, text) && has_answer(&content, content.handled));
		free(text);
		state_journal_content_finish(&content);
		close(ends[0]);
		close(descriptor);
	}
}

enum {
	STEPPED_FIRST = 1501, /* of the commits that are looked at; the log is long enough */
	STEPPED_LAST = 1507,  /* by another daemon */
};

static void change_stepwise(int descriptor)
{
	struct state_journal *journal = create(descriptor, 0);
	struct thing things[THINGS] = {0};

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	for (uint64_t number = 1; number <= STEPPED_LAST; number++) {
		if (number == STEPPED_FIRST)
			raise(SIGSTOP);
		if (number == STEPPED_LAST)
			journal = begin_another(journal, descriptor, things, number - 1);
		make_commit(journal, things, number);
	}
	_exit(0);
}

/* Whether what the head says may have changed, or enough was done for a system call. */
static bool may_have_changed(int descriptor, unsigned long steps)
{
	static char before[128];
	char now[sizeof(before)];

	assert_true(pread(descriptor, now, sizeof(now), 0) == (ssize_t)sizeof(now));
	if (steps % 16 != 0 && memcmp(now, before, sizeof(now)) == 0)
		return false;
	memcpy(before, now, sizeof(now));
	return true;
}

/* What is kept is what was kept after that commit, or after the next one, which it is then. */
static void expect_commit(int descriptor, uint64_t *number, char **text)
{
	struct state_journal_content content = load(descriptor);

	if (content.handled == *number + 1) {
		free(*text);
		*text = text_after(++*number);
	}
	assert_true(content.handled == *number && has_answer(&content, *number) &&
		    has_text(content.text, *text));
	state_journal_content_finish(&content);
}

/* Between any two instructions the file has one transaction that is the latest. */
static void test_each_instruction(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip(); /* it has ten times the instructions, and no other stores to the file */
#endif
	int descriptor = new_file(), status;
	uint64_t number = STEPPED_FIRST - 1;
	char *text = text_after(number);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		change_stepwise(descriptor);
	assert_true(waitpid(child, &status, 0) == child);
	for (unsigned long steps = 0; WIFSTOPPED(status); steps++) {
		if (may_have_changed(descriptor, steps))
			expect_commit(descriptor, &number, &text);
		assert_true(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) == 0 &&
			    waitpid(child, &status, 0) == child);
	}
	free(text);
	close(descriptor);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(number, STEPPED_LAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_items),	  cmocka_unit_test(test_answers),
		cmocka_unit_test(test_attempts),  cmocka_unit_test(test_growth),
		cmocka_unit_test(test_no_stall),  cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_kill),	  cmocka_unit_test(test_each_instruction),
		cmocka_unit_test(test_deadline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
