/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dlockctl/text.h"

/* A part of the text: a line, a word, a value. */
struct piece {
	const char *text;
	size_t bytes;
};

/* Cuts the next piece off, up to the separator or the end. False: nothing is left. */
static bool piece_next(struct piece *rest, char separator, struct piece *ret)
{
	if (rest->bytes == 0)
		return false;
	const char *end = memchr(rest->text, separator, rest->bytes);
	size_t bytes = end != NULL ? (size_t)(end - rest->text) : rest->bytes;
	*ret = (struct piece){rest->text, bytes};
	bytes += end != NULL;
	rest->text += bytes;
	rest->bytes -= bytes;
	return true;
}

static bool piece_is(struct piece piece, const char *word)
{
	return piece.bytes == strlen(word) && memcmp(piece.text, word, piece.bytes) == 0;
}

/* A number that is not negative, in decimal. */
static bool piece_number(struct piece piece, int64_t *ret)
{
	int64_t number = 0;
	if (piece.bytes == 0)
		return false;
	for (size_t i = 0; i < piece.bytes; i++) {
		int digit = piece.text[i] - '0';
		if (digit < 0 || digit > 9 || number > (INT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret = number;
	return true;
}

/* "key=value". If a key comes twice, the first one counts. */
static bool word_split(struct piece word, struct piece *key, struct piece *value)
{
	*value = word;
	return memchr(word.text, '=', word.bytes) != NULL && piece_next(value, '=', key) &&
	       key->bytes > 0;
}

static void claim_finish(struct claim *claim)
{
	free(claim->kind);
	free(claim->ranges);
	free(claim->host);
	free(claim->command);
	free(claim->client);
	free(claim->session);
	free(claim->claim);
}

/* The keys that a line for a claim must have. */
struct claim_seen {
	bool position, state, mode;
};

static void set_number(int64_t *number, struct piece value)
{
	if (*number == -1)
		piece_number(value, number);
}

/* "1", or "1.2" for the second caller who follows on that claim. */
static void set_position(struct claim *claim, struct piece value)
{
	struct piece first;
	int64_t position, follower = 0;

	if (claim->position != -1 || !piece_next(&value, '.', &first) ||
	    !piece_number(first, &position))
		return;
	bool whole = first.text + first.bytes == value.text; /* no dot */
	if (!whole && (!piece_number(value, &follower) || follower == 0))
		return;
	claim->position = position;
	claim->follower = follower;
}

static int claim_set(struct claim *claim, struct claim_seen *seen, struct piece key,
		     struct piece value)
{
	const struct {
		const char *key;
		char **text;
	} texts[] = {
		{"kind", &claim->kind},	    {"ranges", &claim->ranges},
		{"host", &claim->host},	    {"command", &claim->command},
		{"client", &claim->client}, {"session", &claim->session},
		{"claim", &claim->claim},
	};

	if (piece_is(key, "position")) {
		set_position(claim, value);
		seen->position = claim->position >= 0;
	} else if (piece_is(key, "state") && !seen->state) {
		claim->held = piece_is(value, "held");
		claim->kept = piece_is(value, "kept");
		claim->lost = piece_is(value, "lost");
		seen->state =
			claim->held || claim->kept || claim->lost || piece_is(value, "waiting");
	} else if (piece_is(key, "maybe_kept")) {
		claim->maybe_kept = piece_is(value, "yes");
	} else if (piece_is(key, "maybe_former")) {
		claim->maybe_former = piece_is(value, "yes");
	} else if (piece_is(key, "mode") && !seen->mode) {
		claim->shared = piece_is(value, "shared");
		seen->mode = claim->shared || piece_is(value, "exclusive");
	} else if (piece_is(key, "pid")) {
		set_number(&claim->pid, value);
	} else if (piece_is(key, "uid")) {
		set_number(&claim->uid, value);
	} else if (piece_is(key, "since")) {
		set_number(&claim->since, value);
	} else if (piece_is(key, "lost_since")) {
		set_number(&claim->lost_since, value);
	} else if (piece_is(key, "delay_until")) {
		set_number(&claim->delay_until, value);
	}
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (piece_is(key, texts[i].key) && *texts[i].text == NULL) {
			*texts[i].text = text_decode(value.text, value.bytes);
			if (*texts[i].text == NULL)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Makes room for one more; the list grows to the next power of two. */
static int grow(void **list, size_t count, size_t bytes)
{
	if (count != 0 && (count & (count - 1)) != 0)
		return 0;
	void *larger = reallocarray(*list, count == 0 ? 1 : count * 2, bytes);
	if (larger == NULL)
		return -ENOMEM;
	*list = larger;
	return 0;
}

/* *open: the line belongs to the last queue of the list. It does not after a line that was not
 * understood, which may have been that of a lock. */
static int add_claim(struct queues *queues, const bool *open, struct piece line)
{
	struct claim claim = {
		.position = -1,
		.pid = -1,
		.uid = -1,
		.since = -1,
		.lost_since = -1,
		.delay_until = -1,
	};
	struct claim_seen seen = {0};
	struct piece word, key, value;
	int error = 0;

	while (error == 0 && piece_next(&line, ' ', &word)) {
		if (word_split(word, &key, &value))
			error = claim_set(&claim, &seen, key, value);
	}
	struct queue *queue = *open ? &queues->list[queues->count - 1] : NULL;
	if (error == 0 && (queue == NULL || !seen.position || !seen.state || !seen.mode)) {
		queues->bad_lines++;
		claim_finish(&claim);
		return 0;
	}
	if (error == 0)
		error = grow((void **)&queue->claims, queue->count, sizeof(claim));
	if (error != 0) {
		claim_finish(&claim);
		return error;
	}
	queue->claims[queue->count++] = claim;
	queue->holders += claim.held;
	queue->kept += claim.kept;
	queue->lost += claim.lost;
	queue->waiters += !claim.held && !claim.kept && !claim.lost;
	return 0;
}

static bool starts_with(struct piece line, const char *word)
{
	return line.bytes >= strlen(word) && memcmp(line.text, word, strlen(word)) == 0;
}

static int add_queue(struct queues *queues, bool *open, struct piece line)
{
	struct piece word, key, name = {0};
	*open = false;
	if (!piece_next(&line, ' ', &word) || !word_split(word, &key, &name) || name.bytes == 0) {
		queues->bad_lines++;
		return 0;
	}
	int error = grow((void **)&queues->list, queues->count, sizeof(*queues->list));
	if (error != 0)
		return error;
	struct queue queue = {
		.name = text_decode(name.text, name.bytes),
		.name_encoded = strndup(name.text, name.bytes),
	};
	if (queue.name == NULL || queue.name_encoded == NULL) {
		free(queue.name);
		free(queue.name_encoded);
		return -ENOMEM;
	}
	while (piece_next(&line, ' ', &word))
		queue.unreadable = queue.unreadable || starts_with(word, "error=");
	queues->unreadable += queue.unreadable;
	queues->list[queues->count++] = queue;
	*open = true;
	return 0;
}

int queues_parse(const char *text, size_t bytes, struct queues *queues)
{
	struct piece rest = {text, bytes}, line;
	bool open = false;
	int error = 0;

	*queues = (struct queues){0};
	while (error == 0 && piece_next(&rest, '\n', &line)) {
		/* A line has no zeros; what comes after one would be lost in a C string. */
		bool binary = memchr(line.text, '\0', line.bytes) != NULL;
		if (!binary && starts_with(line, "lock="))
			error = add_queue(queues, &open, line);
		else if (!binary && starts_with(line, "position="))
			error = add_claim(queues, &open, line);
		else if (line.bytes > 0) {
			queues->bad_lines++;
			open = false;
		}
	}
	if (error != 0)
		queues_finish(queues);
	return error;
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

static bool is_held(const struct claim *claim)
{
	return claim->held;
}

static bool is_lost(const struct claim *claim)
{
	return claim->lost;
}

static bool is_kept(const struct claim *claim)
{
	return claim->kept;
}

const struct claim *queue_holder(const struct queue *queue)
{
	static bool (*const order[])(const struct claim *) = {is_held, is_lost, is_kept};

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		for (size_t j = 0; j < queue->count; j++) {
			if (order[i](&queue->claims[j]))
				return &queue->claims[j];
		}
	}
	return NULL;
}
