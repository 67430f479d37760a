/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the texts of lock files, and their blocks. Loop thread only.
 */
#include "files/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "files/filesystem.h"
#include "files/user.h"
#include "journal/journal.h"

/* A block of a text, but not its first one, for the journal. */
struct text_block {
	struct state_item item; /* first */
	const struct text *text;
	size_t at; /* where it begins */
	struct text_block *before;
};

void text_init(struct text *text, struct filesystem *filesystem, uint64_t node)
{
	*text = (struct text){.filesystem = filesystem, .node = node};
}

blkcnt_t text_blocks(const struct text *text)
{
	return (blkcnt_t)((text->count + TEXT_BLOCK_BYTES - 1) / TEXT_BLOCK_BYTES);
}

/* Blocks, for the journal */

static void save_block(const struct text_block *block, FILE *out)
{
	const struct text *text = block->text;
	size_t left = text->count - block->at;

	state_begin(out, "text");
	state_unsigned(out, "node", text->node);
	state_unsigned(out, "at", block->at);
	state_bytes(out, "text", text->bytes + block->at,
		    left < TEXT_BLOCK_BYTES ? left : TEXT_BLOCK_BYTES);
	state_end(out);
}

static struct state_place place(const struct state_item *item)
{
	const struct text_block *block = (const struct text_block *)item;
	return (struct state_place){{STATE_PLACE_INODE, block->text->node, block->at}};
}

static void save(const struct state_item *item, FILE *out)
{
	save_block((const struct text_block *)item, out);
}

/* Marks the blocks that have bytes from `start` on, before `end`. */
static void mark(struct text *text, size_t start, size_t end)
{
	static const struct state_kind kind = {place, save};

	for (struct text_block *block = text->last; block != NULL; block = block->before) {
		if (block->at < end && block->at + TEXT_BLOCK_BYTES > start)
			state_journal_mark(text->filesystem->journal, &block->item, &kind);
	}
}

/* Makes the blocks that a text of `count` bytes has. Returns false when out of memory. */
static bool add_blocks(struct text *text, size_t count)
{
	size_t at = text->last != NULL ? text->last->at : 0;

	while ((at += TEXT_BLOCK_BYTES) < count) {
		struct text_block *block = calloc(1, sizeof(*block));
		if (block == NULL)
			return false;
		*block = (struct text_block){.text = text, .at = at, .before = text->last};
		text->last = block;
	}
	return true;
}

/* Frees the blocks that a text of `count` bytes does not have. */
static void drop_blocks(struct text *text, size_t count)
{

	while (text->last != NULL && text->last->at >= count) {
		struct text_block *last = text->last;
		text->last = last->before;
		state_journal_remove(text->filesystem->journal, &last->item);
		free(last);
	}
}

/* The text */

/* Puts the text, which is going to be as long as that, on the account of the user. Returns false
 * when out of memory. */
static bool charge(struct text *text, size_t count, uid_t uid)
{
	struct users *users = text->filesystem->users;
	size_t shares = user_shares_of_text(count);
	struct user *user = shares > 0 ? user_add(users, uid, USER_NAMES, shares) : NULL;

	if (user == NULL && shares > 0)
		return false;
	user_leave(users, text->writer, USER_NAMES, user_shares_of_text(text->count));
	text->writer = user;
	return true;
}

/* Sets the length, more than 0, whatever the user may have. */
static bool resize_bytes(struct text *text, size_t count)
{
	char *resized = realloc(text->bytes, count);

	if (resized == NULL)
		return count <= text->count; /* as it was: too long does no harm */
	text->bytes = resized;
	if (count > text->count)
		memset(resized + text->count, 0, count - text->count);
	return true;
}

/* The same with all that depends on it. Returns 0 or -ENOMEM. */
static int resize(struct text *text, size_t count, uid_t uid)
{
	size_t former = text->count;

	if (count == 0) {
		text_free(text);
		return 0;
	}
	if (!add_blocks(text, count) || !resize_bytes(text, count) || !charge(text, count, uid)) {
		drop_blocks(text, former);
		return -ENOMEM;
	}
	drop_blocks(text, count);
	text->count = count;
	/* A block that is now cut, or has become longer, has changed. */
	mark(text, former < count ? former : count - 1, count);
	return 0;
}

void text_free(struct text *text)
{

	charge(text, 0, 0);
	drop_blocks(text, 0);
	free(text->bytes);
	text->bytes = NULL;
	text->count = 0;
}

/* Whether the text may take that much of the account, and for which user: 0 or -EDQUOT. */
static int check(const struct text *text, size_t count, uid_t *uid)
{
	size_t shares = user_shares_of_text(count);
	size_t former = user_shares_of_text(text->count);

	if (shares > former)
		return user_check(text->filesystem, *uid, USER_NAMES,
				  text->writer != NULL && text->writer->uid == *uid
					  ? shares - former
					  : shares);
	if (text->writer != NULL)
		*uid = text->writer->uid;
	return 0;
}

int text_resize(struct text *text, off_t size, off_t limit, uid_t uid)
{
	bool is_too_long = size < 0 || (size > (off_t)text->count && size > limit);
	int error = is_too_long ? -EFBIG : check(text, (size_t)size, &uid);

	return error != 0 ? error : resize(text, (size_t)size, uid);
}

int text_write(struct text *text, const char *data, size_t bytes, off_t offset, off_t limit,
	       uid_t uid)
{
	off_t end;

	if (offset < 0 || __builtin_add_overflow(offset, bytes, &end))
		return -EFBIG;
	if (bytes == 0)
		return 0;
	int error = end > (off_t)text->count ? text_resize(text, end, limit, uid) : 0;
	if (error != 0)
		return error;
	memcpy(text->bytes + offset, data, bytes);
	mark(text, (size_t)offset, (size_t)end);
	return 0;
}

int text_set(struct text *text, const char *data, size_t bytes, uid_t uid)
{
	if (bytes == text->count && (bytes == 0 || memcmp(text->bytes, data, bytes) == 0))
		return 0;
	int error = check(text, bytes, &uid);

	if (error == 0)
		error = resize(text, bytes, uid);
	if (error == 0 && bytes > 0)
		memcpy(text->bytes, data, bytes);
	if (error == 0)
		mark(text, 0, bytes);
	return error;
}

void text_move(struct text *from, struct text *to)
{
	to->bytes = from->bytes;
	to->count = from->count;
	to->writer = from->writer;
	to->last = from->last;
	text_init(from, from->filesystem, from->node);
	for (struct text_block *block = to->last; block != NULL; block = block->before)
		block->text = to;
	mark(to, 0, to->count);
}

/* What another process goes on with */

void text_save(const struct text *text, FILE *out)
{
	if (text->count > 0)
		state_bytes(out, "text", text->bytes,
			    text->count < TEXT_BLOCK_BYTES ? text->count : TEXT_BLOCK_BYTES);
	if (text->writer != NULL)
		state_unsigned(out, "writer", text->writer->uid);
}

/* The list begins with the last one. */
static void save_up_to(const struct text_block *block, FILE *out)
{
	if (block == NULL)
		return;
	save_up_to(block->before, out);
	save_block(block, out);
}

void text_save_blocks(const struct text *text, FILE *out)
{
	save_up_to(text->last, out);
}

/* Appends a block. */
static void restore_block(struct text *text, uid_t writer, struct state_reader *in)
{
	size_t bytes, former = text->count;
	const void *block = state_get_bytes(in, "text", &bytes);

	if (bytes > TEXT_BLOCK_BYTES)
		state_refuse(in, "text", "what fits into a file");
	else if (bytes > 0 && resize(text, former + bytes, writer) != 0)
		state_starve(in);
	else if (bytes > 0)
		memcpy(text->bytes + former, block, bytes);
}

void text_restore(struct text *text, uid_t maker, struct state_reader *in)
{
	uid_t writer = maker; /* of a text that takes no share */

	if (state_has(in, "writer"))
		writer = (uid_t)state_get_unsigned(in, "writer", UINT32_MAX);
	restore_block(text, writer, in);
}

int text_restore_block(struct text *text, struct state_reader *in)
{
	size_t at = (size_t)state_get_unsigned(in, "at", CONFIG_TEXT_LIMIT_MAX - 1);

	if (at == 0 || at % TEXT_BLOCK_BYTES != 0 || at != text->count)
		state_refuse(in, "at", "where the block before it ends");
	else
		restore_block(text, text->writer->uid, in);
	return state_failed(in) ? -EINVAL : 0;
}
