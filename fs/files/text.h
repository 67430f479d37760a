/* SPDX-License-Identifier: Apache-2.0
 *
 * The text in a lock file, such as the process id that programs write there; of this host only.
 *
 * A long text is kept for the next process in blocks, each an item of the journal: so a commit
 * writes the blocks that have changed, and not the whole text. The first block is a part of the
 * inode's line.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_TEXT_H
#define DLOCKFS_FILES_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "journal/text.h"

#define TEXT_BLOCK_BYTES 4096

struct filesystem;
struct text_block;
struct user;

struct text {
	char *bytes; /* `count` of them; NULL while it is empty */
	size_t count;
	struct user *writer;	 /* on whose account the text is; NULL: it takes no share */
	struct text_block *last; /* of the blocks but the first one; NULL: there are no others */
	struct filesystem *filesystem;
	uint64_t node; /* of the inode, for the places of the blocks in the journal */
};

/* An empty text, of the inode of that number. */
void text_init(struct text *text, struct filesystem *filesystem, uint64_t node);

/* How many blocks the text takes. */
blkcnt_t text_blocks(const struct text *text);

/* Cuts the text; or extends it with zeros, up to `limit` bytes, on the account of `uid`. Returns 0;
 * -EFBIG beyond the limit, -EDQUOT, or -ENOMEM. */
int text_resize(struct text *text, off_t size, off_t limit, uid_t uid);

/* Writes into the text, and extends it as far as that takes. Returns what text_resize() does. */
int text_write(struct text *text, const char *data, size_t bytes, off_t offset, off_t limit,
	       uid_t uid);

/* Replaces the text, on the account of `uid`, whatever its length: servers may have more than
 * `text_limit` allows. Returns 0; or -EDQUOT or -ENOMEM, and the text is what it was. */
int text_set(struct text *text, const char *data, size_t bytes, uid_t uid);

/* Moves the text of one inode to another one, which has none. */
void text_move(struct text *from, struct text *to);

/* The text is empty from now on. */
void text_free(struct text *text);

/* Writes what belongs into the inode's line. */
void text_save(const struct text *text, FILE *out);

/* Writes the lines of the blocks behind the first one, which follow the inode's line. */
void text_save_blocks(const struct text *text, FILE *out);

/* Reads the first block from the line of the inode, which `maker` has made. What is wrong is noted
 * in the reader. */
void text_restore(struct text *text, uid_t maker, struct state_reader *in);

/* Reads the line of the next block. Returns 0; or -EINVAL, -ENOMEM, with a line in
 * the reader's `why`. */
int text_restore_block(struct text *text, struct state_reader *in);

#endif
