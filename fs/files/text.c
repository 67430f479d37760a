/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the texts of lock files, and their blocks. Loop thread only.
 */
#include "files/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/user.h"
#include "journal/journal.h"

/* A block of a text, but not its first one, for the journal. */
struct text_block {
	struct state_item item; /* first */
	const struct inode *inode;
	size_t at; /* where it begins */
	struct text_block *before;
};

off_t text_limit(const struct inode *inode)
{
	const struct lock_policy policy =
		config_policy(inode->shard->filesystem->config, inode->path);
	int64_t limit = config_text_limit(&policy);

	if (inode->lockfile != NULL && limit > lockfile_text_limit(inode))
		limit = lockfile_text_limit(inode);
	return limit;
}

blkcnt_t text_blocks(const struct text *text)
{
	return (blkcnt_t)((text->count + TEXT_BLOCK_BYTES - 1) / TEXT_BLOCK_BYTES);
}

/* Blocks, for the journal */

static void save_block(const struct text_block *block, FILE *out)
{
	const struct text *text = &block->inode->text;
	size_t left = text->count - block->at;

	state_begin(out, "text");
	state_unsigned(out, "node", block->inode->node);
	state_unsigned(out, "at", block->at);
	state_bytes(out, "text", text->bytes + block->at,
		    left < TEXT_BLOCK_BYTES ? left : TEXT_BLOCK_BYTES);
	state_end(out);
}

static struct state_place place(const struct state_item *item)
{
	const struct text_block *block = (const struct text_block *)item;
	return (struct state_place){{STATE_PLACE_INODE, block->inode->node, block->at}};
}

static void save(const struct state_item *item, FILE *out)
{
	save_block((const struct text_block *)item, out);
}

static struct state_journal *journal_of(const struct inode *inode)
{
	return inode->shard->filesystem->journal;
}

/* Marks the blocks that have bytes from `start` on, before `end`. */
static void mark(struct inode *inode, size_t start, size_t end)
{
	static const struct state_kind kind = {place, save};

	for (struct text_block *block = inode->text.last; block != NULL; block = block->before) {
		if (block->at < end && block->at + TEXT_BLOCK_BYTES > start)
			state_journal_mark(journal_of(inode), &block->item, &kind);
	}
}

/* Makes the blocks that a text of `count` bytes has. Returns false when out of memory. */
static bool add_blocks(struct inode *inode, size_t count)
{
	struct text *text = &inode->text;
	size_t at = text->last != NULL ? text->last->at : 0;

	while ((at += TEXT_BLOCK_BYTES) < count) {
		struct text_block *block = calloc(1, sizeof(*block));
		if (block == NULL)
			return false;
		*block = (struct text_block){.inode = inode, .at = at, .before = text->last};
		text->last = block;
	}
	return true;
}

/* Frees the blocks that a text of `count` bytes does not have. */
static void drop_blocks(struct inode *inode, size_t count)
{
	struct text *text = &inode->text;

	while (text->last != NULL && text->last->at >= count) {
		struct text_block *last = text->last;
		text->last = last->before;
		state_journal_remove(journal_of(inode), &last->item);
		free(last);
	}
}

/* The text */

/* Puts the text, which is going to be as long as that, on the account of the user. Returns false
 * when out of memory. */
static bool charge(struct inode *inode, size_t count, uid_t uid)
{
	struct users *users = &inode->shard->filesystem->users;
	struct text *text = &inode->text;
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
static int resize(struct inode *inode, size_t count, uid_t uid)
{
	struct text *text = &inode->text;
	size_t former = text->count;

	if (count == 0) {
		text_free(inode);
		return 0;
	}
	if (!add_blocks(inode, count) || !resize_bytes(text, count) || !charge(inode, count, uid)) {
		drop_blocks(inode, former);
		return -ENOMEM;
	}
	drop_blocks(inode, count);
	text->count = count;
	/* A block that is now cut, or has become longer, has changed. */
	mark(inode, former < count ? former : count - 1, count);
	return 0;
}

void text_free(struct inode *inode)
{
	struct text *text = &inode->text;

	charge(inode, 0, 0);
	drop_blocks(inode, 0);
	free(text->bytes);
	text->bytes = NULL;
	text->count = 0;
}

/* Whether the limit of the lock allows that length. */
static bool is_too_long(const struct inode *inode, off_t size)
{
	return size < 0 || (size > (off_t)inode->text.count && size > text_limit(inode));
}

/* Whether the text may take that much of the account, and for which user: 0 or -EDQUOT. */
static int check(const struct inode *inode, size_t count, uid_t *uid)
{
	const struct text *text = &inode->text;
	size_t shares = user_shares_of_text(count);
	size_t former = user_shares_of_text(text->count);

	if (shares > former)
		return user_check(inode->shard->filesystem, *uid, USER_NAMES,
				  text->writer != NULL && text->writer->uid == *uid
					  ? shares - former
					  : shares);
	if (text->writer != NULL)
		*uid = text->writer->uid;
	return 0;
}

int text_resize(struct inode *inode, off_t size, uid_t uid)
{
	int error = is_too_long(inode, size) ? -EFBIG : check(inode, (size_t)size, &uid);
	return error != 0 ? error : resize(inode, (size_t)size, uid);
}

int text_write(struct inode *inode, const char *data, size_t bytes, off_t offset, uid_t uid)
{
	off_t end;

	if (offset < 0 || __builtin_add_overflow(offset, bytes, &end))
		return -EFBIG;
	if (bytes == 0)
		return 0;
	int error = end > (off_t)inode->text.count ? text_resize(inode, end, uid) : 0;
	if (error != 0)
		return error;
	memcpy(inode->text.bytes + offset, data, bytes);
	mark(inode, (size_t)offset, (size_t)end);
	return 0;
}

int text_set(struct inode *inode, const char *data, size_t bytes, uid_t uid)
{
	if (bytes == inode->text.count &&
	    (bytes == 0 || memcmp(inode->text.bytes, data, bytes) == 0))
		return 0;
	int error = check(inode, bytes, &uid);

	if (error == 0)
		error = resize(inode, bytes, uid);
	if (error == 0 && bytes > 0)
		memcpy(inode->text.bytes, data, bytes);
	if (error == 0)
		mark(inode, 0, bytes);
	return error;
}

void text_move(struct inode *from, struct inode *to)
{
	to->text = from->text;
	from->text = (struct text){0};
	for (struct text_block *block = to->text.last; block != NULL; block = block->before)
		block->inode = to;
	mark(to, 0, to->text.count);
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
static void restore_block(struct inode *inode, uid_t writer, struct state_reader *in)
{
	size_t bytes, former = inode->text.count;
	const void *text = state_get_bytes(in, "text", &bytes);

	if (bytes > TEXT_BLOCK_BYTES || S_ISDIR(inode->mode))
		state_refuse(in, "text", "what fits into a file");
	else if (bytes > 0 && resize(inode, former + bytes, writer) != 0)
		state_starve(in);
	else if (bytes > 0)
		memcpy(inode->text.bytes + former, text, bytes);
}

void text_restore(struct inode *inode, struct state_reader *in)
{
	uid_t writer = inode->maker; /* of a text that takes no share */

	if (state_has(in, "writer"))
		writer = (uid_t)state_get_unsigned(in, "writer", UINT32_MAX);
	restore_block(inode, writer, in);
}

int text_restore_block(struct inode *inode, struct state_reader *in)
{
	size_t at = (size_t)state_get_unsigned(in, "at", CONFIG_TEXT_LIMIT_MAX - 1);

	if (at == 0 || at % TEXT_BLOCK_BYTES != 0 || at != inode->text.count)
		state_refuse(in, "at", "where the block before it ends");
	else
		restore_block(inode, inode->text.writer->uid, in);
	return state_failed(in) ? -EINVAL : 0;
}
