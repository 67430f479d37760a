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

#include "config/config.h"
#include "journal/text.h"

#define TEXT_BLOCK_BYTES 4096

struct inode;
struct text_block;
struct user;

struct text {
	char *bytes; /* `count` of them; NULL while it is empty */
	size_t count;
	struct user *writer;	 /* on whose account it is; NULL: it takes no share */
	struct text_block *last; /* of the blocks but the first one; NULL: there are no others */
};

/* How long the text may become, in bytes: `text_limit` of the lock. */
off_t text_limit(const struct inode *inode);

/* How many blocks the text takes. */
blkcnt_t text_blocks(const struct text *text);

/* Cuts the text; or extends it with zeros, on the account of `uid`. Returns 0; -EFBIG beyond the
 * limit, -EDQUOT, or -ENOMEM. */
int text_resize(struct inode *inode, off_t size, uid_t uid);

/* Writes into the text, and extends it as far as that takes. Returns the same. */
int text_write(struct inode *inode, const char *data, size_t bytes, off_t offset, uid_t uid);

/* Replaces the text, on the account of `uid`; `text_limit` does not count, as servers may have
 * more. Returns 0; or -EDQUOT or -ENOMEM, and the text is what it was. */
int text_set(struct inode *inode, const char *data, size_t bytes, uid_t uid);

/* The text of one inode becomes that of another one, which has none. */
void text_move(struct inode *from, struct inode *to);

/* The text is empty, whatever it was. */
void text_free(struct inode *inode);

/* Writes what belongs into the inode's line, */
void text_save(const struct text *text, FILE *out);

/* and the lines of the other blocks, which follow it. */
void text_save_blocks(const struct text *text, FILE *out);

/* Reads the first block from the inode's line. What is wrong is noted in the reader. */
void text_restore(struct inode *inode, struct state_reader *in);

/* Reads the line of another block, in their order. Returns 0; or -EINVAL, -ENOMEM, with a line in
 * the reader's `why`. */
int text_restore_block(struct inode *inode, struct state_reader *in);

#endif
