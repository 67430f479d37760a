/* SPDX-License-Identifier: Apache-2.0 */
#include "rehearsal.h"

#include <utlist.h>

#include "base/log.h"
#include "files/filesystem.h"
#include "fuzz.h"
#include "ops/asking.h"
#include "ops/serving.h"
#include "restart/takeover.h"

/* A file system that takes over. */
struct heir {
	struct config config;
	struct takeover takeover;
	struct shards shards;
	struct serving serving;
	bool begun;
	int error;
	char why[1024];
};

static void heir_begin(struct heir *heir, const char *text, size_t bytes)
{
	struct shard_former former = {.rehearsal = true};
	FILE *file = fmemopen((char *)text, bytes > 0 ? bytes : 1, "r");

	memset(heir, 0, sizeof(*heir));
	REQUIRE(file && config_init(&heir->config) == 0);
	heir->takeover.rehearsal = true;
	heir->error = takeover_read(&heir->takeover, file, heir->why, sizeof(heir->why));
	if (heir->error != 0)
		return;
	REQUIRE(shards_open(&heir->config, &serving_events, &former, &heir->shards) == 0);
	REQUIRE(serving_init(&heir->serving, &heir->config, &heir->shards) == 0);
	heir->begun = true;
	heir->error = takeover_restore(&heir->takeover, &heir->serving.filesystem, heir->why,
				       sizeof(heir->why));
}

static void heir_end(struct heir *heir)
{
	if (heir->begun) {
		serving_finish(&heir->serving.filesystem);
		shards_close(&heir->shards);
	}
	takeover_finish(&heir->takeover);
	config_finish(&heir->config);
}

void rehearsal_read(const char *text, size_t bytes)
{
	struct heir heir;

	heir_begin(&heir, text, bytes);
	REQUIRE((heir.error == 0) == (heir.why[0] == '\0'));
	REQUIRE(heir.error == 0 || strstr(heir.why, ": line "));
	REQUIRE(!strchr(heir.why, '\n'));
	heir_end(&heir);
}

static const char init[sizeof(uint64_t) * 5];
static const struct takeover_process process = {
	.folder = "/",
	.mountpoint = "/fuzz",
	.fuse = 3,
	.init = init,
	.init_bytes = sizeof(init),
};

static char *save(struct filesystem *filesystem, size_t *ret_bytes)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_bytes);

	REQUIRE(out);
	takeover_save(filesystem, &process, out);
	REQUIRE(fclose(out) == 0);
	return text;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool begins_with_any(const char *line, const char *const *words)
{
	while (*words && strncmp(line, *words, strlen(*words)) != 0)
		words++;
	return *words;
}

/* Takes a text apart into its lines, in an order of their own; without those with the words. */
static size_t sort_lines(char *text, const char *const *without, char ***ret)
{
	size_t count = 0, room = 1;
	char *line;

	for (const char *at = text; *at; at++)
		room += *at == '\n';
	*ret = calloc(room, sizeof(char *));
	REQUIRE(*ret);
	while ((line = strsep(&text, "\n"))) {
		if (!begins_with_any(line, without))
			(*ret)[count++] = line;
	}
	qsort(*ret, count, sizeof(char *), compare);
	return count;
}

/* The texts have the same lines but for those with the words. Both are gone. */
static void compare_texts(const char *what, char *text, const char *other_what, char *other,
			  const char *const *without)
{
	char **lines, **other_lines;
	size_t count = sort_lines(text, without, &lines);
	size_t other_count = sort_lines(other, without, &other_lines);

	for (size_t i = 0; i < count && i < other_count; i++) {
		if (strcmp(lines[i], other_lines[i]) != 0)
			fprintf(stderr, "%s: %s\n%s: %s\n", what, lines[i], other_what,
				other_lines[i]);
		REQUIRE(strcmp(lines[i], other_lines[i]) == 0);
	}
	REQUIRE(count == other_count);
	free(lines);
	free(other_lines);
	free(text);
	free(other);
}

/* Whether requests wait that make names: the other one handles them again, with new inodes. */
static bool makes_names(const struct filesystem *filesystem)
{
	const struct waiting *waiting;

	DL_FOREACH (filesystem->calls->askings, waiting) {
		if (((const struct asking *)waiting)->made)
			return true;
	}
	return false;
}

/* Whether there is an inode only for the thread that has found it, of which the other one does not
 * know (files/looked.h). */
static bool has_only_found(const struct filesystem *filesystem)
{
	const struct inode *inode;

	for (inode = filesystem->inodes->by_node; inode; inode = inode->by_node.next) {
		if (inode->finders > 0 && inode->handles == 0 && !inode->parent)
			return true;
	}
	return false;
}

void rehearsal_of(struct filesystem *filesystem)
{
	/* Requests are to be handled again; the other one has no journal; and a lock that only the
	 * watch of another's claim keeps is unknown to it. */
	static const char *const without[] = {"request ", "dlockfs ", "lock ", NULL};
	struct heir heir;
	size_t bytes, other_bytes;
	char *text = save(filesystem, &bytes);

	heir_begin(&heir, text, bytes);
	if (heir.error != 0)
		fprintf(stderr, "%s\n%s", heir.why, text);
	REQUIRE(heir.error == 0);
	engine_check_invariants(heir.shards.list->engine);
	REQUIRE(heir.shards.list->fenced == filesystem->shards->list->fenced);
	if (makes_names(filesystem) || has_only_found(filesystem))
		free(text);
	else
		compare_texts("passed on", text, "taken over",
			      save(&heir.serving.filesystem, &other_bytes), without);
	heir_end(&heir);
}

void rehearsal_keep(struct filesystem *filesystem, int descriptor)
{
	static struct takeover_marks marks;
	struct state_journal *journal;

	REQUIRE(descriptor >= 0 && state_journal_create(descriptor, 0, 0, &journal) == 0);
	takeover_keep(filesystem, journal, &marks);
	takeover_keep_process(filesystem, &process);
}

void rehearsal_forget(struct filesystem *filesystem)
{
	state_journal_destroy(filesystem->journal);
	filesystem->journal = NULL;
}

static char *read_text(FILE *in)
{
	char *text = NULL;
	size_t capacity = 0;

	REQUIRE(getdelim(&text, &capacity, '\0', in) > 0);
	return text;
}

void rehearsal_of_journal(struct filesystem *filesystem)
{
	static const char *const without[] = {NULL};
	struct state_journal_content content;
	size_t bytes;
	char why[256];

	takeover_mark_changed(filesystem);
	state_journal_commit(filesystem->journal, 0, NULL, 0);
	REQUIRE(state_journal_load(state_journal_descriptor(filesystem->journal), &content, why,
				   sizeof(why)) == 0);
	compare_texts("kept", read_text(content.text), "known", save(filesystem, &bytes), without);
	state_journal_content_finish(&content);
}
