/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/queue.h"

#include <stdlib.h>
#include <string.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/text.h"

/* "key=value", cut in two in place. False: the word is something else. */
static bool split_word(char *word, const char **key, char **value)
{
	char *equals = strchr(word, '=');

	if (equals == NULL || equals == word)
		return false;
	*equals = '\0';
	*key = word;
	*value = equals + 1;
	return true;
}

static void claim_finish(struct claim *claim)
{
	free(claim->kind);
	free(claim->target);
	free(claim->ranges);
	free(claim->host);
	free(claim->command);
	free(claim->clock);
	free(claim->client);
	free(claim->session);
	free(claim->claim);
}

static void set_number(int64_t *number, const char *value)
{
	long long parsed;

	if (*number == -1 && parse_number(value, 0, INT64_MAX, &parsed))
		*number = parsed;
}

/* "1", or "1.2" for the second caller who follows on that claim. */
static void set_position(struct claim *claim, char *value)
{
	char *rest = value;
	const char *first = strsep(&rest, ".");
	long long position, follower = 0;

	if (claim->position != -1 || !parse_number(first, 0, INT64_MAX, &position) ||
	    (rest != NULL && !parse_number(rest, 1, INT64_MAX, &follower)))
		return;
	claim->position = position;
	claim->follower = follower;
}

/* Which keys that a line must have came with a value that is known. */
struct claim_seen {
	bool state, mode;
};

bool claim_waits(const struct claim *claim)
{
	return !claim->held && !claim->kept && !claim->resting && !claim->lost;
}

/* If a key comes twice, the first one counts. */
static void set(struct claim *claim, struct claim_seen *seen, const char *key, char *value)
{
	const struct {
		const char *key;
		char **text;
	} texts[] = {
		{"kind", &claim->kind},	      {"target", &claim->target},
		{"ranges", &claim->ranges},   {"host", &claim->host},
		{"command", &claim->command}, {"client", &claim->client},
		{"session", &claim->session}, {"claim", &claim->claim},
		{"clock", &claim->clock},
	};
	const struct {
		const char *key;
		int64_t *number;
	} numbers[] = {
		{"slots", &claim->slots},
		{"slot", &claim->slot},
		{"pid", &claim->pid},
		{"uid", &claim->uid},
		{"since", &claim->since},
		{"lost_since", &claim->lost_since},
		{"delay_until", &claim->delay_until},
	};

	if (strcmp(key, "position") == 0) {
		set_position(claim, value);
	} else if (strcmp(key, "state") == 0 && !seen->state) {
		claim->held = strcmp(value, "held") == 0;
		claim->kept = strcmp(value, "kept") == 0;
		claim->resting = strcmp(value, "resting") == 0;
		claim->lost = strcmp(value, "lost") == 0;
		seen->state = !claim_waits(claim) || strcmp(value, "waiting") == 0;
	} else if (strcmp(key, "mode") == 0 && !seen->mode) {
		claim->shared = strcmp(value, "shared") == 0;
		seen->mode = claim->shared || strcmp(value, "exclusive") == 0;
	} else if (strcmp(key, "maybe_kept") == 0) {
		claim->maybe_kept = strcmp(value, "yes") == 0;
	} else if (strcmp(key, "maybe_former") == 0) {
		claim->maybe_former = strcmp(value, "yes") == 0;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (strcmp(key, numbers[i].key) == 0)
			set_number(numbers[i].number, value);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (strcmp(key, texts[i].key) == 0 && *texts[i].text == NULL)
			*texts[i].text = text_decode(value, strlen(value));
	}
}

/* Makes room for one more; the list grows to the next power of two. */
static void *grow(void *list, size_t count, size_t bytes)
{
	if (count != 0 && (count & (count - 1)) != 0)
		return list;
	return must(reallocarray(list, count == 0 ? 1 : count * 2, bytes));
}

/* `queue` is NULL behind a line that was not understood, which may have been that of a lock.
 * Returns false if this line is not understood. */
static bool add_claim(struct queue *queue, char *line)
{
	struct claim claim = {
		.position = -1,
		.slots = -1,
		.slot = -1,
		.pid = -1,
		.uid = -1,
		.since = -1,
		.lost_since = -1,
		.delay_until = -1,
	};
	struct claim_seen seen = {0};
	const char *key;
	char *word, *value;

	while ((word = strsep(&line, " ")) != NULL) {
		if (split_word(word, &key, &value))
			set(&claim, &seen, key, value);
	}
	if (queue == NULL || claim.position < 0 || !seen.state || !seen.mode) {
		claim_finish(&claim);
		return false;
	}
	queue->claims = grow(queue->claims, queue->count, sizeof(claim));
	queue->claims[queue->count++] = claim;
	queue->holders += claim.held;
	queue->kept += claim.kept;
	queue->resting += claim.resting;
	queue->lost += claim.lost;
	queue->waiters += claim_waits(&claim);
	return true;
}

static bool starts_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Returns NULL if the line has no name. */
static struct queue *add_queue(struct queues *queues, char *line)
{
	const char *key;
	char *word = strsep(&line, " "), *name;

	if (!split_word(word, &key, &name) || *name == '\0')
		return NULL;
	queues->list = grow(queues->list, queues->count, sizeof(*queues->list));
	struct queue *queue = &queues->list[queues->count++];
	*queue = (struct queue){
		.name = text_decode(name, strlen(name)),
		.name_encoded = must(strdup(name)),
	};
	while ((word = strsep(&line, " ")) != NULL)
		queue->unreadable = queue->unreadable || starts_with(word, "error=");
	queues->unreadable += queue->unreadable;
	return queue;
}

/* *queue: that the next claim is of. Returns false if the line is not understood. */
static bool add_line(struct queues *queues, struct queue **queue, char *line, size_t bytes)
{
	/* A line has no zeros; what comes after one would be lost in a C string. */
	bool binary = strlen(line) != bytes;

	if (!binary && starts_with(line, "position="))
		return add_claim(*queue, line);
	*queue = !binary && starts_with(line, "lock=") ? add_queue(queues, line) : NULL;
	return *queue != NULL;
}

void queues_parse(char *text, size_t bytes, struct queues *queues)
{
	struct queue *queue = NULL;
	char *end;

	*queues = (struct queues){0};
	for (char *line = text; line < text + bytes; line = end + 1) {
		size_t left = (size_t)(text + bytes - line);
		end = memchr(line, '\n', left);
		end = end != NULL ? end : line + left;
		*end = '\0';
		if (end > line && !add_line(queues, &queue, line, (size_t)(end - line)))
			queues->bad_lines++;
	}
}

void queues_finish(struct queues *queues)
{
	for (size_t i = 0; i < queues->count; i++) {
		struct queue *queue = &queues->list[i];
		for (size_t j = 0; j < queue->count; j++)
			claim_finish(&queue->claims[j]);
		free(queue->claims);
		free(queue->name);
		free(queue->name_encoded);
	}
	free(queues->list);
	*queues = (struct queues){0};
}

bool queue_is_silent_store(const struct queue *queue)
{
	size_t length = strlen(queue->name);
	return queue->unreadable && length > 0 && queue->name[length - 1] == '/';
}

bool claim_is_file(const struct claim *claim)
{
	static const char *const kinds[] = {"file", "directory", "symlink"};

	for (size_t i = 0; claim->kind != NULL && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(claim->kind, kinds[i]) == 0)
			return true;
	}
	return false;
}

bool queue_has_file(const struct queue *queue)
{
	return queue->count > 0 && claim_is_file(&queue->claims[0]);
}

const struct claim *queue_holder(const struct queue *queue)
{
	const struct claim *resting = NULL, *lost = NULL, *kept = NULL;

	for (size_t i = 0; i < queue->count; i++) {
		const struct claim *claim = &queue->claims[i];
		if (claim->held)
			return claim;
		if (claim->resting && resting == NULL)
			resting = claim;
		if (claim->lost && lost == NULL)
			lost = claim;
		if (claim->kept && kept == NULL)
			kept = claim;
	}
	if (resting != NULL)
		return resting;
	return lost != NULL ? lost : kept;
}
