/* SPDX-License-Identifier: Apache-2.0
 *
 * Views of queues in a local store. A store between the two counts how many questions are under
 * way, and can let claims say what the local store could not: anything. Where it matters what a
 * host knows of its own claims, a third one has an engine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <utlist.h>

#include "../../told.h"
#include "claim/data.h"
#include "engine/engine.h"
#include "stores/local/store.h"
#include "view/view.h"

/* The store between */

struct between {
	struct store store;
	struct store *local;
	struct question *questions;
	size_t under_way, most, asked;
	const void *data; /* what every claim says; NULL: what it does say */
	size_t data_bytes;
	int error;	/* of every read */
	int look_error; /* of every look but the first */
	bool out_of_memory;
};

struct question {
	union {
		struct store_look look;
		struct store_read read;
		struct store_files files;
	};
	struct between *between;
	struct question *prev, *next; /* in between->questions */
	void *asker;
	bool first;
};

static struct question *ask(struct store *store, void *asker)
{
	struct between *between = (struct between *)store;
	struct question *question = calloc(1, sizeof(*question));

	question->between = between;
	question->asker = asker;
	question->first = between->asked++ == 0;
	DL_APPEND(between->questions, question);
	if (++between->under_way > between->most)
		between->most = between->under_way;
	return question;
}

static void forget(struct question *question)
{
	struct between *between = question->between;

	between->under_way--;
	DL_DELETE(between->questions, question);
	free(question);
}

static void on_looked(struct store_look *look, int error, const char *const *names,
		      size_t names_count, const struct store_entry *entries, size_t entries_count)
{
	struct question *question = (struct question *)look;
	struct store_look *asker = question->asker;
	int bent = question->first ? 0 : question->between->look_error;

	forget(question);
	if (bent != 0)
		asker->done(asker, bent, NULL, 0, NULL, 0);
	else
		asker->done(asker, error, names, names_count, entries, entries_count);
}

static void on_claim(struct store_read *read, int error, const struct store_claim *claim)
{
	struct question *question = (struct question *)read;
	struct between *between = question->between;
	struct store_read *asker = question->asker;
	struct store_claim said = {0};

	if (claim != NULL)
		said = *claim;
	if (between->data != NULL) {
		said.data = between->data;
		said.data_bytes = between->data_bytes;
	}
	if (between->error != 0)
		error = between->error;
	forget(question);
	asker->done(asker, error, error == 0 ? &said : NULL);
}

static int between_look(struct store *store, struct store_look *look, const char *path)
{
	struct between *between = (struct between *)store;
	if (between->out_of_memory)
		return -ENOMEM;
	struct question *question = ask(store, look);
	question->look.done = on_looked;
	return between->local->ops->look(between->local, &question->look, path);
}

static int between_read(struct store *store, struct store_read *read, const char *path,
			const char *name)
{
	struct between *between = (struct between *)store;
	if (between->out_of_memory)
		return -ENOMEM;
	struct question *question = ask(store, read);
	question->read.done = on_claim;
	return between->local->ops->read(between->local, &question->read, path, name);
}

static void on_files(struct store_files *files, int error, const char *const *names, size_t count)
{
	struct question *question = (struct question *)files;
	struct store_files *asker = question->asker;

	forget(question);
	asker->done(asker, error, names, count);
}

static int between_files(struct store *store, struct store_files *files, const char *directory)
{
	struct between *between = (struct between *)store;
	if (between->out_of_memory)
		return -ENOMEM;
	struct question *question = ask(store, files);
	question->files.done = on_files;
	return between->local->ops->files(between->local, &question->files, directory);
}

static const struct store_ops between_ops = {
	.look = between_look,
	.read = between_read,
	.files = between_files,
};

/* The fixture */

struct fixture {
	struct local_service *service;
	struct store *hosts[2];
	struct between between;
	struct viewer *viewer;
	struct view *view;
	int times;
	int error;
	char *text;
	char names[1024];
	char last_name[256];
	int64_t last_order;
};

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	(void)context;
	(void)session;
	(void)timeout_ms;
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct fixture *f = context;
	(void)tag;
	(void)entries;
	(void)count;
	assert_int_equal(error, 0);
	snprintf(f->last_name, sizeof(f->last_name), "%s", name);
	f->last_order = order;
}

static void on_marked(void *context, void *tag, int error)
{
	(void)context;
	(void)tag;
	assert_int_equal(error, 0);
}

static void on_withdrawn(void *context, void *tag, int error)
{
	(void)context;
	(void)tag;
	assert_int_equal(error, 0);
}

static const struct store_events store_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_marked = on_marked,
	.on_withdrawn = on_withdrawn,
};

static void on_text(void *context, int error, const char *text, size_t text_bytes)
{
	struct fixture *f = context;

	f->times++;
	f->error = error;
	f->view = NULL;
	free(f->text);
	f->text = NULL;
	if (error == 0) {
		assert_int_equal(strlen(text), text_bytes);
		f->text = strdup(text);
	}
}

static void on_names(void *context, int error, size_t claims, const char *const *names,
		     size_t names_count)
{
	struct fixture *f = context;

	f->times++;
	f->error = error;
	snprintf(f->names, sizeof(f->names), "%zu", claims);
	for (size_t i = 0; i < names_count; i++)
		snprintf(f->names + strlen(f->names), sizeof(f->names) - strlen(f->names), " %s",
			 names[i]);
}

static void on_orphans(void *context, const char *path)
{
	struct fixture *f = context;

	snprintf(f->names + strlen(f->names), sizeof(f->names) - strlen(f->names), " %s", path);
}

static void on_searched(void *context, int error)
{
	struct fixture *f = context;

	f->times++;
	f->error = error;
	f->view = NULL;
}

static const struct view_events view_events = {
	.on_text = on_text,
	.on_names = on_names,
	.on_orphans = on_orphans,
	.on_searched = on_searched,
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->service = local_service_create();
	for (int i = 0; i < 2; i++) {
		store_local_open(f->service, &store_events, f, &f->hosts[i]);
		f->hosts[i]->ops->dispatch(f->hosts[i]);
	}
	f->between.store.ops = &between_ops;
	f->between.local = f->hosts[0];
	f->viewer = viewer_create(&f->between.store, NULL, NULL, NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 2; i++)
		if (f->hosts[i] != NULL)
			f->hosts[i]->ops->close(f->hosts[i], nobody_is_told());
	while (f->between.questions != NULL) /* that nobody answers any more */
		forget(f->between.questions);
	viewer_destroy(f->viewer);
	local_service_destroy(f->service);
	free(f->text);
	free(f);
	return 0;
}

/* A claim of the host, of an owner, as flock asks for it. */
static struct claim_name claim_of(int host, uint32_t owner, enum claim_mode mode)
{
	static uint32_t number;

	return (struct claim_name){
		.id = {.session = claim_id_session((uint64_t)host + 1),
		       .owner = owner,
		       .number = ++number},
		.mode = mode,
		.span = CLAIM_SPAN_WHOLE,
	};
}

static void place(struct fixture *f, int host, const char *path, struct claim_name name,
		  const char *text)
{
	f->hosts[host]->ops->place(f->hosts[host], NULL, path, &name, text, false, NULL);
	f->hosts[host]->ops->dispatch(f->hosts[host]);
}

static void place_lock(struct fixture *f, const char *path, enum claim_mode mode)
{
	static uint32_t owner;

	place(f, 1, path, claim_of(1, ++owner, mode), "format=1\n");
}

static void place_record(struct fixture *f, int host, uint32_t owner, enum claim_mode mode,
			 int64_t start, int64_t end, const char *text)
{
	struct claim_name name = claim_of(host, owner, mode);

	name.record = true;
	name.span = (struct claim_span){start, end};
	place(f, host, "r", name, text);
}

static void dispatch(struct fixture *f)
{
	f->hosts[0]->ops->dispatch(f->hosts[0]);
	assert_int_equal(f->times, 1);
	assert_int_equal(f->between.under_way, 0);
	f->times = 0;
}

static const char *queue(struct fixture *f, const char *path)
{
	assert_int_equal(view_queue(f->viewer, path, &view_events, f, &f->view), 0);
	assert_int_equal(f->times, 0);
	dispatch(f);
	return f->text;
}

static const char *queues(struct fixture *f, const char *path)
{
	assert_int_equal(view_queues(f->viewer, path, &view_events, f, &f->view), 0);
	dispatch(f);
	return f->text;
}

static const char *names(struct fixture *f, const char *path)
{
	assert_int_equal(view_names(f->viewer, path, &view_events, f, &f->view), 0);
	dispatch(f);
	return f->names;
}

/* The state of each claim of the text, h or w. */
static const char *states(const char *text)
{
	static char found[64];
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, " state=")) != NULL && count < 63; at++)
		found[count++] = at[strlen(" state=")];
	found[count] = '\0';
	return found;
}

/* The value of the key in the text's last line, "" if there is none. */
static const char *value(const char *text, const char *key)
{
	static char found[2048];
	char wanted[64];
	const char *line = text, *end = text + strlen(text) - 1, *at;

	for (const char *i = text; i < end; i++)
		if (*i == '\n')
			line = i + 1;
	snprintf(wanted, sizeof(wanted), " %s=", key);
	at = strstr(line, wanted);
	found[0] = '\0';
	if (at != NULL)
		sscanf(at + strlen(wanted), "%2047[^ \n]", found);
	return found;
}

/* Tests */

static void test_shows_a_queue(void **state)
{
	struct fixture *f = *state;
	char expected[2048], one[256], two[256], three[256];
	int64_t since[3] = {0};
	struct claim_name name = {.span = CLAIM_SPAN_WHOLE};

	place(f, 1, "a/b", claim_of(1, 1, CLAIM_EXCLUSIVE),
	      "format=1\nhost=web1\npid=4711\nuid=12\ncommand=my%20job\nkind=flock\n"
	      "mode=shared\nsince=5\n");
	strcpy(one, f->last_name);
	name = claim_of(0, 1, CLAIM_SHARED);
	name.record = true;
	name.span = (struct claim_span){5, 9};
	place(f, 0, "a/b", name, "format=1\nhost=web2\npid=1\ncommand=x\nkind=record\n");
	strcpy(two, f->last_name);
	name = (struct claim_name){.mode = CLAIM_EXCLUSIVE, .span = CLAIM_SPAN_WHOLE};
	place(f, 0, "a/b", name, "format=1\nhost=web2\npid=1\n");
	strcpy(three, f->last_name);

	const char *text = queue(f, "a/b");
	assert_non_null(text);
	const char *at = text;
	for (size_t i = 0; i < 3; i++) {
		at = strstr(at, " since=");
		assert_non_null(at);
		assert_int_equal(sscanf(at++, " since=%" SCNd64, &since[i]), 1);
		assert_in_range(since[i], 1600000000, 9000000000);
	}
	snprintf(expected, sizeof(expected),
		 "lock=a/b claims=3 holders=1\n"
		 "position=1 state=held mode=exclusive kind=flock host=web1 pid=4711 uid=12 "
		 "command=my%%20job since=%" PRId64 " client=dlockfs session=0x2 claim=%s\n"
		 "position=2 state=waiting mode=shared kind=record ranges=r5-9 host=web2 pid=1 "
		 "command=x since=%" PRId64 " client=dlockfs session=0x1 claim=%s\n"
		 "position=3 state=waiting mode=exclusive since=%" PRId64
		 " client=other session=0x1 claim=%s\n",
		 since[0], one, since[1], two, since[2], three);
	assert_string_equal(text, expected);
}

static void test_no_such_lock(void **state)
{
	struct fixture *f = *state;

	assert_null(queue(f, "a"));
	assert_int_equal(f->error, -ENOENT);
	names(f, "a");
	assert_int_equal(f->error, -ENOENT);
	assert_string_equal(queues(f, ""), "");
	assert_string_equal(queues(f, "a"), "");
	place_lock(f, "a/b", CLAIM_SHARED);
	assert_string_equal(queue(f, "a"), "lock=a claims=0 holders=0\n");
}

static void test_shows_all_queues(void **state)
{
	struct fixture *f = *state;

	place_lock(f, "b", CLAIM_SHARED);
	place_lock(f, "a/x y", CLAIM_SHARED);
	place_lock(f, "a", CLAIM_SHARED);
	place_lock(f, "a", CLAIM_SHARED);
	place_lock(f, "a/%/\xff\n", CLAIM_SHARED);
	const char *text = queues(f, "");
	const char *expected[] = {
		"lock=a claims=2 holders=2\n", "lock=a/%25/%FF%0A claims=1 holders=1\n",
		"lock=a/x%20y claims=1 holders=1\n", "lock=b claims=1 holders=1\n"};
	for (size_t i = 0; i < 4; i++) {
		text = strstr(text, expected[i]);
		assert_non_null(text);
	}
	assert_int_equal(strlen(states(f->text)), 5);
	text = queues(f, "a/%");
	assert_int_equal(strncmp(text, expected[1], strlen(expected[1])), 0);
	assert_int_equal(strlen(states(text)), 1);

	assert_string_equal(names(f, ""), "0 a b");
	assert_string_equal(names(f, "a"), "2 % x y");
	assert_string_equal(names(f, "a/%"), "0 \xff\n");
	assert_string_equal(names(f, "b"), "1");
}

static void test_readers_and_writers(void **state)
{
	struct fixture *f = *state;

	place_lock(f, "a", CLAIM_SHARED);
	place_lock(f, "a", CLAIM_SHARED);
	place_lock(f, "a", CLAIM_EXCLUSIVE);
	place_lock(f, "a", CLAIM_SHARED);
	assert_string_equal(states(queue(f, "a")), "hhww");
	/* The same owner is not in its own way. */
	place(f, 1, "b", claim_of(1, 77, CLAIM_SHARED), "");
	place(f, 1, "b", claim_of(1, 77, CLAIM_EXCLUSIVE), "");
	place(f, 0, "b", claim_of(0, 77, CLAIM_EXCLUSIVE), "");
	assert_string_equal(states(queue(f, "b")), "hhw");
	/* Nobody knows who another client is. */
	place(f, 1, "c", (struct claim_name){.span = CLAIM_SPAN_WHOLE, .mode = CLAIM_EXCLUSIVE},
	      "");
	place(f, 1, "c", (struct claim_name){.span = CLAIM_SPAN_WHOLE, .mode = CLAIM_EXCLUSIVE},
	      "");
	assert_string_equal(states(queue(f, "c")), "hw");
}

static void test_ranges(void **state)
{
	struct fixture *f = *state;

	place_record(f, 1, 1, CLAIM_EXCLUSIVE, 0, 9, "format=1\nranges=w0-3,r8-9\n");
	place_record(f, 1, 2, CLAIM_EXCLUSIVE, 4, 7, "format=1\n");
	place_record(f, 1, 3, CLAIM_SHARED, 8, 9, "format=1\n");
	place_record(f, 1, 4, CLAIM_EXCLUSIVE, 9, 20, "format=1\n");
	place_record(f, 1, 5, CLAIM_EXCLUSIVE, 30, 40, "format=1\nwaits=1\n");
	place_record(f, 1, 1, CLAIM_EXCLUSIVE, 0, 9, "format=1\nranges=r0-9\n");
	assert_string_equal(states(queue(f, "r")), "hhhwww");
	assert_string_equal(value(f->text, "mode"), "shared");
	assert_string_equal(value(f->text, "ranges"), "r0-9");

	/* What is beyond the span in the name does not count; nor does what makes no sense. */
	place_record(f, 1, 7, CLAIM_EXCLUSIVE, 100, 109, "format=1\nranges=w90-104\n");
	assert_string_equal(value(queue(f, "r"), "ranges"), "w100-104");
	place_record(f, 1, 8, CLAIM_SHARED, 200, 209, "format=1\nranges=w0-9\n");
	assert_string_equal(value(queue(f, "r"), "ranges"), "r200-209");
	place_record(f, 1, 9, CLAIM_SHARED, 200, 209, "format=1\nranges=w9-0\n");
	assert_string_equal(value(queue(f, "r"), "ranges"), "r200-209");
}

/* Who holds a part goes before those that wait for it. */
static void test_anchors(void **state)
{
	struct fixture *f = *state;
	struct claim_name name = claim_of(1, 1, CLAIM_EXCLUSIVE);

	place_record(f, 1, 1, CLAIM_SHARED, 0, 9, "format=1\n");
	name.anchor = f->last_order;
	place_record(f, 0, 2, CLAIM_EXCLUSIVE, 0, 9, "format=1\nwaits=0\n");
	name.record = name.anchored = true;
	name.span = name.anchor_span = (struct claim_span){0, 9};
	place(f, 1, "r", name, "format=1\n");
	assert_string_equal(states(queue(f, "r")), "hwh");
}

/* A process that has locked the same file in both ways is not in its own way. */
static void test_one_process_with_both_kinds(void **state)
{
	struct fixture *f = *state;

	place(f, 1, "r", claim_of(1, 1, CLAIM_EXCLUSIVE), "format=1\npid=7\nkind=flock\n");
	place_record(f, 1, 2, CLAIM_EXCLUSIVE, 0, 9, "format=1\npid=7\nkind=record\n");
	place_record(f, 1, 3, CLAIM_EXCLUSIVE, 20, 29, "format=1\npid=8\nkind=record\n");
	place_record(f, 0, 2, CLAIM_EXCLUSIVE, 20, 29, "format=1\npid=7\nkind=record\n");
	assert_string_equal(states(queue(f, "r")), "hhww");
}

static void test_many_ranges(void **state)
{
	struct fixture *f = *state;
	struct claim_name name = claim_of(1, 1, CLAIM_EXCLUSIVE);
	struct claim_data data = {.has_ranges = true};
	char *text;

	for (int i = 0; i < 200; i++)
		assert_int_equal(range_set_lock(&data.ranges, (struct claim_span){i * 10, i * 10},
						CLAIM_EXCLUSIVE),
				 0);
	text = claim_data_format("format=1\n", &data);
	name.record = name.sparse = true;
	name.span = (struct claim_span){0, 5000};
	place(f, 1, "r", name, text);
	assert_string_equal(value(queue(f, "r"), "span"), "0-1990");
	assert_string_equal(value(f->text, "ranges"), "");
	place_record(f, 0, 1, CLAIM_EXCLUSIVE, 1, 9, "format=1\n");
	place_record(f, 0, 2, CLAIM_EXCLUSIVE, 9, 10, "format=1\n");
	assert_string_equal(states(queue(f, "r")), "hhw");
	free(text);
	range_set_finish(&data.ranges);

	name.id.owner = 9;
	place(f, 1, "s", name, "format=2\nranges=w0-3\n");
	assert_string_equal(value(queue(f, "s"), "span"), "0-5000");
}

/* Whatever a claim says, the text stays what it is said to be. */
static void test_hostile_data(void **state)
{
	static const struct {
		const char *data;
		size_t bytes;
		const char *key, *value;
	} cases[] = {
		{"", 0, "host", ""},
		{"format=1\nhost=a b\n", 0, "host", ""},
		{"format=1\nhost=a\nhost=b\n", 0, "host", "a"},
		{"format=1\nhost=\x1b[2J\n", 0, "host", ""},
		{"format=1\nhost=\xff\n", 0, "host", ""},
		{"format=1\nhost=%\n", 0, "host", ""},
		{"format=1\nhost=%4\n", 0, "host", ""},
		{"format=1\nhost=%zz\n", 0, "host", ""},
		{"format=1\nhost=%41\n", 0, "host", "%41"},
		{"format=1\nhost=\n", 0, "host", ""},
		{"format=1\nhost=cut", 0, "host", ""},
		{"format=1\nhost=a\r\n", 0, "host", ""},
		{"format=2\nhost=a\n", 0, "host", ""},
		{"format=11\nhost=a\n", 0, "host", ""},
		{"host=a\nformat=1\n", 0, "host", ""},
		{"format=1\nhost=a\0\nuid=1\n", 23, "uid", ""},
		{"format=1\n\n=\n==\nhost\nhost=a\n", 0, "host", "a"},
		{"format=1\nhost=a=b\n", 0, "host", "a=b"},
		{"format=1\npid=-1\n", 0, "pid", ""},
		{"format=1\npid=1x\n", 0, "pid", ""},
		{"format=1\npid= 1\n", 0, "pid", ""},
		{"format=1\npid=\n", 0, "pid", ""},
		{"format=1\npid=2147483647\n", 0, "pid", "2147483647"},
		{"format=1\npid=2147483648\n", 0, "pid", ""},
		{"format=1\npid=99999999999999999999999999\n", 0, "pid", ""},
		{"format=1\nuid=4294967295\n", 0, "uid", "4294967295"},
		{"format=1\nuid=4294967296\n", 0, "uid", ""},
		{"format=1\nkind=flocks\n", 0, "kind", ""},
		{"format=1\nkind=\n", 0, "kind", ""},
		{"format=1\nkind=open\n", 0, "kind", "open"},
		{"format=1\nstate=held\nposition=9\n", 0, "state", "held"},
		{"format=1\nranges=w0-0\n", 0, "ranges", ""},
	};
	struct fixture *f = *state;

	place(f, 1, "a", claim_of(1, 1, CLAIM_SHARED), "");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		f->between.data = cases[i].data;
		f->between.data_bytes =
			cases[i].bytes != 0 ? cases[i].bytes : strlen(cases[i].data);
		assert_string_equal(value(queue(f, "a"), cases[i].key), cases[i].value);
		for (const char *at = f->text; *at != '\0'; at++)
			assert_true(*at == '\n' || (*at >= ' ' && *at < 0x7f));
		assert_ptr_equal(strchr(strchr(f->text, '\n') + 1, '\n')[1], '\0');
	}
}

static void test_huge_data(void **state)
{
	struct fixture *f = *state;
	static char data[(1 << 20) - 100];
	size_t bytes = sizeof(data);
	uint64_t random = 88172645463325252u;

	place(f, 1, "a", claim_of(1, 1, CLAIM_SHARED), "");
	place_record(f, 1, 2, CLAIM_EXCLUSIVE, 0, INT64_MAX, "");
	f->between.data = data;
	f->between.data_bytes = bytes;

	memset(data, 'a', bytes);
	memcpy(data, "format=1\nhost=", 14);
	data[bytes - 1] = '\n';
	assert_string_equal(value(queue(f, "a"), "host"), "");
	memset(data + 9, '\n', bytes - 9);
	assert_non_null(queue(f, "a"));
	/* As many ranges as fit. */
	size_t used = (size_t)sprintf(data, "format=1\nranges=w0-0");
	for (int i = 1; used < bytes - 30; i++)
		used += (size_t)sprintf(data + used, ",w%d-%d", i * 2, i * 2);
	memset(data + used, '\n', bytes - used);
	assert_string_not_equal(value(queue(f, "r"), "span"), "");
	for (int round = 0; round < 4; round++) {
		for (size_t i = 0; i < bytes; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			data[i] = round % 2 == 0 ? (char)random : "\n=,-0w%\0a"[random % 9];
		}
		memcpy(data, "format=1\n", 9);
		assert_non_null(queue(f, "a"));
		assert_non_null(queue(f, "r"));
	}
}

/* So that locking goes on beside it. */
static void test_asks_little_at_a_time(void **state)
{
	struct fixture *f = *state, *second, *third;
	char path[32];

	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "many/%d", i);
		place_lock(f, path, CLAIM_SHARED);
		place_lock(f, "many", CLAIM_SHARED);
	}
	const char *text = queues(f, "");
	assert_non_null(strstr(text, "lock=many claims=300 holders=300\n"));
	assert_int_equal(f->between.asked, 302 + 600);
	assert_int_equal(f->between.most, VIEW_READS_MAX);

	/* All views together. */
	second = calloc(1, sizeof(*second));
	third = calloc(1, sizeof(*third));
	assert_int_equal(view_queues(f->viewer, "", &view_events, second, &second->view), 0);
	assert_int_equal(view_queue(f->viewer, "many", &view_events, third, &third->view), 0);
	queue(f, "many/1");
	assert_int_equal(f->between.most, VIEW_READS_MAX);
	assert_string_equal(second->text, text = queues(f, ""));
	assert_int_equal(third->times, 1);
	free(second->text);
	free(third->text);
	free(second);
	free(third);
}

static void test_cancels(void **state)
{
	struct fixture *f = *state;
	struct view *view;

	place_lock(f, "a", CLAIM_SHARED);
	place_lock(f, "a/b", CLAIM_SHARED);
	assert_int_equal(view_queues(f->viewer, "", &view_events, f, &view), 0);
	assert_int_equal(view_progress(view), 0);
	view_cancel(view);
	assert_int_equal(view_names(f->viewer, "", &view_events, f, &view), 0);
	view_cancel(view);
	f->hosts[0]->ops->dispatch(f->hosts[0]);
	assert_int_equal(f->times, 0);
	assert_int_equal(f->between.under_way, 0);

	/* Cancelled, or not, when the store is closed. */
	assert_int_equal(view_queues(f->viewer, "", &view_events, f, &view), 0);
	view_cancel(view);
	assert_int_equal(view_queue(f->viewer, "a", &view_events, f, &view), 0);
	f->hosts[0]->ops->close(f->hosts[0], nobody_is_told());
	f->hosts[0] = NULL;
	assert_int_equal(f->times, 0);
}

static void test_lost_session(void **state)
{
	struct fixture *f = *state;

	place_lock(f, "a", CLAIM_SHARED);
	assert_int_equal(view_queues(f->viewer, "", &view_events, f, &f->view), 0);
	store_local_expire(f->hosts[0]);
	dispatch(f);
	assert_int_equal(f->error, -ECONNRESET);
	assert_non_null(queue(f, "a"));
}

static void test_errors(void **state)
{
	struct fixture *f = *state;

	place_lock(f, "a", CLAIM_SHARED);
	place_lock(f, "a", CLAIM_EXCLUSIVE);
	f->between.error = -ENOENT; /* gone since they were listed */
	assert_string_equal(queue(f, "a"), "lock=a claims=0 holders=0\n");
	assert_string_equal(queues(f, ""), "");
	f->between.error = -EACCES;
	assert_string_equal(states(queue(f, "a")), "hw");
	assert_string_equal(value(f->text, "since"), "");
	assert_string_equal(value(f->text, "client"), "dlockfs");
	f->between.error = -ECONNRESET;
	assert_null(queue(f, "a"));
	assert_int_equal(f->error, -ECONNRESET);
	f->between.error = 0;
	f->between.asked = 0;
	f->between.look_error = -EACCES;
	assert_string_equal(queues(f, ""), "lock=a error=EACCES\n");
	f->between.look_error = 0;
	f->between.out_of_memory = true;
	assert_int_equal(view_queue(f->viewer, "a", &view_events, f, &f->view), -ENOMEM);
	f->between.out_of_memory = false;
	assert_int_equal(view_queue(f->viewer, "a", &view_events, f, &f->view), 0);
	f->between.out_of_memory = true;
	dispatch(f);
	assert_int_equal(f->error, -ENOMEM);
}

/* Claims that go on from one caller of a host to the next. */

struct callers {
	struct engine *engine;
	struct store *store;
	struct owner *files[4];
	int granted[4];
};

static void on_decided(void *context, void *cookie, int result)
{
	(void)context;
	assert_int_equal(result, 0);
	++*(int *)cookie;
}

static void on_owner(void *context, void *owner_cookie)
{
	(void)context;
	(void)owner_cookie;
}

/* A caller's details are its number. */
static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	int number = *(const int *)caller->details;

	snprintf(text, ENGINE_TEXT_BYTES,
		 "format=1\nhost=here\npid=%d\nuid=7\ncommand=job%%20%d\nkind=flock\nsince=%d\n",
		 number + 1, number + 1, 1000 + number);
}

static const struct engine_events engine_events = {
	.details_bytes = sizeof(int),
	.describe = describe,
	.on_decided = on_decided,
	.on_lost = on_owner,
	.on_revoked = on_owner,
};

static void callers_begin(struct callers *callers, struct fixture *f)
{
	const struct lock_policy policy = {.wait_limit_ms = CONFIG_FOREVER,
					   .try_limit_ms = 1000,
					   .handoff = 1,
					   .keep_ms = 1000};

	*callers = (struct callers){.engine = engine_create(&engine_events, NULL, 1)};
	store_local_open(f->service, &engine_store_events, callers->engine, &callers->store);
	engine_set_store(callers->engine, callers->store);
	callers->store->ops->dispatch(callers->store);
	for (int i = 0; i < 4; i++)
		callers->files[i] = engine_owner_open(callers->engine, "a", &policy, NULL);
	viewer_destroy(f->viewer);
	f->viewer = viewer_create(&f->between.store, callers->engine, NULL, NULL);
}

static void callers_lock(struct callers *callers, int number)
{
	struct engine_caller caller = {.pid = number + 1, .uid = 7, .details = &number};
	struct wish *wish;

	callers->granted[number] = 0;
	assert_int_equal(engine_lock(callers->files[number], LOCK_KIND_FLOCK, CLAIM_EXCLUSIVE, true,
				     &caller, &callers->granted[number], &wish),
			 0);
	for (int i = 0; i < 10; i++)
		callers->store->ops->dispatch(callers->store);
}

static void callers_unlock(struct callers *callers, int number)
{
	assert_int_equal(callers->granted[number], 1);
	assert_int_equal(engine_unlock(callers->files[number]), 0);
	for (int i = 0; i < 10; i++)
		callers->store->ops->dispatch(callers->store);
}

static void callers_end(struct callers *callers, struct fixture *f)
{
	for (int i = 0; i < 4; i++)
		engine_owner_close(callers->files[i]);
	callers->store->ops->close(callers->store, nobody_is_told());
	viewer_destroy(f->viewer);
	f->viewer = viewer_create(&f->between.store, NULL, NULL, NULL);
	engine_destroy(callers->engine);
}

/* The text up to the name of the claim, which changes from test to test. */
static const char *users(struct fixture *f)
{
	static char found[2048];
	size_t used = 0;

	for (const char *at = queue(f, "a"); *at != '\0'; at++) {
		if (strncmp(at, " client=", 8) == 0)
			at += strcspn(at, "\n");
		found[used++] = *at;
	}
	found[used] = '\0';
	return found;
}

static void test_users(void **state)
{
	struct fixture *f = *state;
	struct callers callers;
	const char *text;

	callers_begin(&callers, f);
	for (int i = 0; i < 3; i++)
		callers_lock(&callers, i);
	text = "lock=a claims=1 holders=1 followers=2\n"
	       "position=1 state=held mode=exclusive kind=flock host=here pid=1 uid=7 "
	       "command=job%201 since=1000 clock=host\n"
	       "position=1.1 state=waiting mode=exclusive kind=flock host=here pid=2 uid=7 "
	       "command=job%202 since=1001 clock=host\n"
	       "position=1.2 state=waiting mode=exclusive kind=flock host=here pid=3 uid=7 "
	       "command=job%203 since=1002 clock=host\n";
	assert_string_equal(users(f), text);
	assert_null(strstr(strstr(f->text, "position=1.1"), "client=dlockfs session"));

	/* Who uses it now. */
	callers_unlock(&callers, 0);
	text = "lock=a claims=1 holders=1 followers=1\n"
	       "position=1 state=held mode=exclusive kind=flock host=here pid=2 uid=7 "
	       "command=job%202 since=1001 clock=host\n"
	       "position=1.1 state=waiting mode=exclusive kind=flock host=here pid=3 uid=7 "
	       "command=job%203 since=1002 clock=host\n";
	assert_string_equal(users(f), text);

	/* Another host waits, so that one more follows, and the next has a claim behind that. */
	place_lock(f, "a", CLAIM_EXCLUSIVE);
	for (int i = 0; i < 10; i++)
		callers.store->ops->dispatch(callers.store);
	callers_unlock(&callers, 1);
	callers_lock(&callers, 0);
	callers_lock(&callers, 3);
	text = users(f);
	assert_non_null(strstr(text, "claims=3 holders=1 followers=1\nposition=1 state=held"));
	text = strstr(text, "position=3 state=waiting");
	assert_non_null(text);
	assert_non_null(strstr(text, "pid=1 "));
	assert_non_null(strstr(text, "position=3.1 state=waiting"));
	callers_end(&callers, f);
}

static void test_kept(void **state)
{
	struct fixture *f = *state;
	struct callers callers;
	const char *text;

	callers_begin(&callers, f);
	callers_lock(&callers, 0);
	callers_unlock(&callers, 0);
	text = queue(f, "a");
	assert_non_null(strstr(text, "lock=a claims=1 holders=0 kept=1\n"
				     "position=1 state=kept mode=exclusive host=here since="));
	assert_null(strstr(text, "pid="));
	assert_null(strstr(text, "since=1000"));
	assert_string_not_equal(value(text, "claim"), "");

	/* Others only know what it says. */
	viewer_destroy(f->viewer);
	f->viewer = viewer_create(&f->between.store, NULL, NULL, NULL);
	assert_non_null(strstr(
		users(f), "lock=a claims=1 holders=1\n"
			  "position=1 state=held maybe_kept=yes maybe_former=yes mode=exclusive "
			  "kind=flock host=here pid=1 uid=7 "));
	callers_end(&callers, f);
}

/* Two of one host are not one owner's, and only of the first it is said that it may be kept. */
static void test_keep_of_a_waiter(void **state)
{
	struct fixture *f = *state;

	place(f, 1, "a", claim_of(1, CLAIM_OWNER_NONE, CLAIM_EXCLUSIVE), "format=1\nkeep=yes\n");
	assert_string_equal(value(queue(f, "a"), "maybe_kept"), "yes");
	place(f, 1, "a", claim_of(1, CLAIM_OWNER_NONE, CLAIM_EXCLUSIVE), "format=1\nkeep=yes\n");
	assert_string_equal(states(queue(f, "a")), "hw");
	assert_string_equal(value(f->text, "maybe_kept"), "");
	assert_string_equal(value(f->text, "maybe_former"), "yes");
}

/* With slots a claim is held since it has a number, wherever it stands; one that has none takes its
 * place by the queue. */
static void test_slots(void **state)
{
	struct fixture *f = *state;

	place(f, 1, "a", claim_of(1, 1, CLAIM_EXCLUSIVE), "format=1\nslots=3\nslot=2\n");
	place(f, 0, "a", claim_of(0, 1, CLAIM_EXCLUSIVE), "format=1\nslots=3\nslot=0\n");
	place(f, 1, "a", claim_of(1, 2, CLAIM_EXCLUSIVE), "format=1\nslots=3\n");
	place(f, 1, "a", claim_of(1, 3, CLAIM_EXCLUSIVE), "format=1\n");
	assert_string_equal(states(queue(f, "a")), "hhww");
	assert_non_null(strstr(f->text, "lock=a claims=4 holders=2\n"
					"position=1 state=held mode=exclusive slots=3 slot=2 "));
	assert_non_null(strstr(f->text, "position=2 state=held mode=exclusive slots=3 slot=0 "));
	assert_non_null(strstr(f->text, "position=3 state=waiting mode=exclusive slots=3 "));
	place(f, 1, "b", claim_of(1, 4, CLAIM_EXCLUSIVE), "format=1\nslots=3\n");
	assert_string_equal(states(queue(f, "b")), "w");
}

/* What a host has held when its session ended. */
static void lose(struct fixture *f, const char *path)
{
	struct store *host;

	store_local_open(f->service, &store_events, f, &host);
	host->ops->dispatch(host);
	struct claim_name name = claim_of(7, 1, CLAIM_EXCLUSIVE);
	const char *text = "format=1\nhost=gone\npid=9\nuid=7\ncommand=x\nkind=flock\nwaits=3\n";
	host->ops->place(host, NULL, path, &name, text, false, NULL);
	host->ops->dispatch(host);
	host->ops->mark(host, NULL, path, f->last_name, text, 0);
	host->ops->dispatch(host);
	host->ops->close(host, nobody_is_told());
}

static void test_orphan(void **state)
{
	struct fixture *f = *state;
	struct callers callers;

	lose(f, "a");
	assert_non_null(strstr(queue(f, "a"),
			       "lock=a claims=0 holders=0 lost=1\n"
			       "position=1 state=lost mode=exclusive kind=flock host=gone pid=9 "
			       "uid=7 command=x since="));
	assert_string_equal(value(f->text, "session"), "");
	assert_string_equal(value(f->text, "lost_since"), ""); /* nobody here has seen it */
	assert_string_equal(value(f->text, "delay_until"), "");
	assert_string_equal(value(f->text, "claim"), f->last_name);
	place_lock(f, "a", CLAIM_EXCLUSIVE);
	assert_string_equal(states(queue(f, "a")), "lw");
	assert_non_null(strstr(queues(f, ""), "lock=a claims=1 holders=0 lost=1\n"));

	/* Whoever waits for it knows for how long; and who does not, that nobody does. */
	for (int64_t delay_ms = 30000; delay_ms >= 0; delay_ms -= 30000) {
		const struct lock_policy policy = {.lock_delay_ms = delay_ms};
		long long now = (long long)time(NULL);

		callers_begin(&callers, f);
		for (int i = 0; i < 4; i++)
			engine_owner_close(callers.files[i]);
		engine_advance(callers.engine, 1000);
		for (int i = 0; i < 4; i++)
			callers.files[i] = engine_owner_open(callers.engine, "a", &policy, NULL);
		assert_int_equal(engine_clear(callers.engine, "a", &policy), 0);
		for (int i = 0; i < 10; i++)
			callers.store->ops->dispatch(callers.store);
		engine_advance(callers.engine, 6000);
		assert_string_equal(states(queue(f, "a")), delay_ms > 0 ? "lw" : "lh");
		*strstr(f->text, "\nposition=2") = '\0';
		assert_in_range(atoll(value(f->text, "lost_since")), now - 6, now - 4);
		if (delay_ms > 0)
			assert_in_range(atoll(value(f->text, "delay_until")), now + 24, now + 27);
		else
			assert_string_equal(value(f->text, "delay_until"), "");
		callers_end(&callers, f);
	}
}

static void search(struct fixture *f, const char *path)
{
	f->names[0] = '\0';
	f->times = 0;
	assert_int_equal(view_search_orphans(f->viewer, path, &view_events, f, &f->view), 0);
	while (f->view != NULL)
		f->hosts[0]->ops->dispatch(f->hosts[0]);
	assert_int_equal(f->times, 1);
	assert_int_equal(f->between.under_way, 0);
}

static void test_searches_orphans(void **state)
{
	struct fixture *f = *state;
	char path[16];

	search(f, "");
	assert_string_equal(f->names, "");
	for (int i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "d%d/%d", i % 3, i);
		place_lock(f, path, CLAIM_EXCLUSIVE);
	}
	lose(f, "d1/1");
	lose(f, "d2/new/lock");
	lose(f, "d2");
	f->between.most = 0;
	search(f, "");
	assert_int_equal(f->error, 0);
	assert_int_equal(f->between.most, 1);
	assert_non_null(strstr(f->names, " d1/1"));
	assert_non_null(strstr(f->names, " d2/new/lock"));
	assert_int_equal(strlen(f->names), strlen(" d1/1 d2/new/lock d2"));
	search(f, "d2");
	assert_int_equal(strlen(f->names), strlen(" d2/new/lock d2"));
	f->between.asked = 0;
	f->between.look_error = -ECONNRESET;
	search(f, "");
	assert_int_equal(f->error, -ECONNRESET);
	f->between.asked = 0;
	f->between.look_error = -EACCES;
	search(f, "");
	assert_int_equal(f->error, 0);
	assert_string_equal(f->names, "");
}

/* Files: what is in "t" is, but "t/top" is another directory of files. A directory's text begins
 * with "d", a symbolic link's with "s"; "m" was renamed from "t/gone"; of another client's file
 * nothing is known. */

static size_t top_bytes(const void *context, const char *path)
{
	(void)context;
	for (const char *const *top = (const char *const[]){"t/top", "t", NULL}; *top != NULL;
	     top++) {
		size_t bytes = strlen(*top);
		if (strncmp(path, *top, bytes) == 0 && (path[bytes] == '/' || path[bytes] == '\0'))
			return bytes;
	}
	return SIZE_MAX;
}

static int read_facts(const struct store_claim *claim, struct view_facts *ret)
{
	const char *text = claim->data;

	*ret = (struct view_facts){.kind = "file", .uid = -1, .name = "id.file"};
	if (*text == 'o')
		return 0;
	ret->is_directory = *text == 'd';
	ret->kind = *text == 'd' ? "directory" : *text == 's' ? "symlink" : "file";
	ret->queue = *text == 'm' ? strdup("t//gone/") : NULL;
	ret->target = *text == 's' ? strdup("to here") : NULL;
	ret->host = strdup("web 1");
	ret->command = strdup("mkdir");
	ret->pid = 4711;
	ret->uid = 12;
	return 0;
}

static const struct view_files view_files = {.top_bytes = top_bytes, .read = read_facts};

static void on_changed(struct store_change *change, int error)
{
	(void)change;
	assert_int_equal(error, 0);
}

static void make_file(struct fixture *f, const char *path, const char *text)
{
	struct store_change change = {.done = on_changed};
	struct store_step step = {.kind = STEP_MAKE, .path = path, .text = text};

	assert_int_equal(f->hosts[1]->ops->alter(f->hosts[1], &change, &step, 1), 0);
	f->hosts[1]->ops->dispatch(f->hosts[1]);
}

/* The text without the digits of times, and without the rest of lines from the claim on. */
static const char *brief(const char *text)
{
	static char found[4096];
	char *to = found;

	while (*text != '\0') {
		if (strncmp(text, " since=", 7) == 0)
			text += 7 + strspn(text + 7, "0123456789");
		else if (strncmp(text, " client=dlockfs", 15) == 0)
			text += strcspn(text, "\n");
		else
			*to++ = *text++;
	}
	*to = '\0';
	return found;
}

static void test_files(void **state)
{
	struct fixture *f = *state;

	viewer_destroy(f->viewer);
	f->viewer = viewer_create(&f->between.store, NULL, &view_files, NULL);
	make_file(f, "t//x", "file");
	make_file(f, "t//d", "directory");
	make_file(f, "t//d/in", "symlink");
	make_file(f, "t//other", "other");
	make_file(f, "t//moved", "m");
	make_file(f, "t/top//z", "file");
	place_lock(f, "t//x/", CLAIM_EXCLUSIVE);
	place_lock(f, "t//x/", CLAIM_SHARED);
	place_lock(f, "t//d/in/", CLAIM_SHARED);
	place_lock(f, "t//gone/", CLAIM_EXCLUSIVE);
	place_lock(f, "a", CLAIM_EXCLUSIVE);
#define MADE "host=web%201 pid=4711 uid=12 command=mkdir\n"
	static const char x[] = "lock=t/x claims=3 holders=2\n"
				"position=1 state=held mode=exclusive kind=file " MADE
				"position=2 state=held mode=exclusive\n"
				"position=3 state=waiting mode=shared\n";
	static const char all[] = "lock=a claims=1 holders=1\n"
				  "position=1 state=held mode=exclusive\n"
				  "lock=t/d claims=1 holders=1\n"
				  "position=1 state=held mode=exclusive kind=directory " MADE
				  "lock=t/d/in claims=2 holders=2\n"
				  "position=1 state=held mode=exclusive kind=symlink "
				  "target=to%20here " MADE "position=2 state=held mode=shared\n"
				  "lock=t/gone claims=1 holders=1\n"
				  "position=1 state=held mode=exclusive\n"
				  "lock=t/moved claims=2 holders=2\n"
				  "position=1 state=held mode=exclusive kind=file " MADE
				  "position=2 state=held mode=exclusive\n"
				  "lock=t/other claims=1 holders=1\n"
				  "position=1 state=held mode=exclusive kind=file client=other "
				  "session=0x2 claim=id.file\n"
				  "lock=t/top/z claims=1 holders=1\n"
				  "position=1 state=held mode=exclusive kind=file " MADE;
	char expected[sizeof(all) + sizeof(x)];
	snprintf(expected, sizeof(expected), "%s%s", all, x);
	assert_string_equal(brief(queue(f, "t/x")), x);
	assert_string_equal(brief(queues(f, "")), expected);
	assert_string_equal(brief(queues(f, "t/top")),
			    "lock=t/top/z claims=1 holders=1\n"
			    "position=1 state=held mode=exclusive kind=file " MADE);
	assert_string_equal(brief(queue(f, "t/gone")), "lock=t/gone claims=1 holders=1\n"
						       "position=1 state=held mode=exclusive\n");
	assert_string_equal(brief(queue(f, "t/moved")),
			    "lock=t/moved claims=2 holders=2\n"
			    "position=1 state=held mode=exclusive kind=file " MADE
			    "position=2 state=held mode=exclusive\n");
	assert_null(queue(f, "t/none"));
	assert_int_equal(f->error, -ENOENT);
	assert_string_equal(names(f, "t"), "0 d gone moved other top x");
	assert_string_equal(names(f, "t/d"), "1 in");
	assert_string_equal(names(f, "t/d/in"), "2");
	assert_string_equal(names(f, "t/x"), "3");
	names(f, "t/d/none");
	assert_int_equal(f->error, -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shows_a_queue),
		TEST(no_such_lock),
		TEST(shows_all_queues),
		TEST(readers_and_writers),
		TEST(ranges),
		TEST(anchors),
		TEST(one_process_with_both_kinds),
		TEST(many_ranges),
		TEST(hostile_data),
		TEST(huge_data),
		TEST(asks_little_at_a_time),
		TEST(cancels),
		TEST(lost_session),
		TEST(errors),
		TEST(users),
		TEST(kept),
		TEST(keep_of_a_waiter),
		TEST(slots),
		TEST(orphan),
		TEST(searches_orphans),
		TEST(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
