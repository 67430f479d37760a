/* SPDX-License-Identifier: Apache-2.0 */
#include "rehearsal.h"

#include "fuzz.h"
#include "log.h"
#include "takeover.h"

/* A file system that takes over. */
struct heir {
	struct config config;
	struct takeover takeover;
	struct shard *shards;
	size_t shards_count;
	struct filesystem filesystem;
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
	REQUIRE(shards_open(&heir->config, &former, &heir->shards, &heir->shards_count) == 0);
	REQUIRE(filesystem_init(&heir->filesystem, &heir->config, heir->shards,
				heir->shards_count) == 0);
	heir->begun = true;
	heir->error =
		takeover_restore(&heir->takeover, &heir->filesystem, heir->why, sizeof(heir->why));
}

static void heir_end(struct heir *heir)
{
	if (heir->begun) {
		filesystem_finish(&heir->filesystem);
		shards_close(heir->shards, heir->shards_count);
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

static char *save(struct filesystem *filesystem, size_t *ret_bytes)
{
	static const char init[sizeof(uint64_t) * 5];
	static const struct takeover_process process = {
		.folder = "/",
		.mountpoint = "/fuzz",
		.fuse = 3,
		.init = init,
		.init_bytes = sizeof(init),
	};
	char *text = NULL;
	FILE *out = open_memstream(&text, ret_bytes);

	REQUIRE(out);
	filesystem->process = &process;
	takeover_save(filesystem, out);
	REQUIRE(fclose(out) == 0);
	return text;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes a text apart into its lines, in an order of their own; without those that are not kept: the
 * requests that are to be handled again. */
static size_t sort_lines(char *text, char ***ret)
{
	size_t count = 0, room = 1;
	char *line;

	for (const char *at = text; *at; at++)
		room += *at == '\n';
	*ret = calloc(room, sizeof(char *));
	REQUIRE(*ret);
	while ((line = strsep(&text, "\n"))) {
		if (strncmp(line, "request ", strlen("request ")) != 0)
			(*ret)[count++] = line;
	}
	qsort(*ret, count, sizeof(char *), compare);
	return count;
}

void rehearsal_of(struct filesystem *filesystem)
{
	struct heir heir;
	char **lines, **other_lines;
	size_t bytes, other_bytes;
	char *text = save(filesystem, &bytes);

	heir_begin(&heir, text, bytes);
	if (heir.error != 0)
		fprintf(stderr, "%s\n%s", heir.why, text);
	REQUIRE(heir.error == 0);
	engine_check_invariants(heir.shards->engine);
	char *other = save(&heir.filesystem, &other_bytes);
	size_t count = sort_lines(text, &lines), other_count = sort_lines(other, &other_lines);
	for (size_t i = 0; i < count && i < other_count; i++) {
		if (strcmp(lines[i], other_lines[i]) != 0)
			fprintf(stderr, "passed on:  %s\ntaken over: %s\n", lines[i],
				other_lines[i]);
		REQUIRE(strcmp(lines[i], other_lines[i]) == 0);
	}
	REQUIRE(count == other_count);
	free(lines);
	free(other_lines);
	free(text);
	free(other);
	heir_end(&heir);
}
