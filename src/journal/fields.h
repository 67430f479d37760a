/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of the members of a struct that are keys of a line of the state (text.h). The line is
 * written and read by the same table, so that what one process writes is what the next one reads:
 *
 *	static const struct field fields[] = {
 *		{"owner", FIELD_UNSIGNED(struct thing, owner, UINT64_MAX)},
 *		{"limit_ms", FIELD_NUMBER(struct thing, limit_ms, 0, INT32_MAX), FIELD_OR(-1)},
 *		{0},
 *	};
 *
 * A key whose value has to be computed, or depends on another key, has no row: who owns the line
 * writes and reads it beside the table. tests/system/sources/test-formats.sh reads the rows as they
 *are written here, the key and the kind in one line.
 *
 * Any thread, one at a time for a stream or a reader.
 */
#ifndef DLOCKFS_JOURNAL_FIELDS_H
#define DLOCKFS_JOURNAL_FIELDS_H

#include <stddef.h>
#include <time.h>

#include "journal/text.h"

enum field_kind {
	FIELD_KIND_FLAG,
	FIELD_KIND_NUMBER,
	FIELD_KIND_UNSIGNED,
	FIELD_KIND_TIME,
	FIELD_KIND_WORD,
	FIELD_KIND_TEXT,
	FIELD_KIND_CHARS,
};

struct field {
	const char *key; /* NULL: behind the last row */
	enum field_kind kind;
	size_t offset, bytes; /* of the member */
	int64_t least;
	uint64_t most;
	const char *const *words; /* by the values of the member; NULL for one that has none */
	bool may_be_missing;	  /* the member is then `missing`, and not written if it is that */
	int64_t missing;
};

/* What a row says of the member; one of another type, or of a few bits, does not compile. */
/* clang-format off */

/* A bool. Written only if it is set. */
#define FIELD_FLAG(type, member)                                                                   \
	FIELD_OF(type, member, bool *: FIELD_KIND_FLAG), .most = 1, FIELD_OR(false)

/* An integer of 4 or 8 bytes, between the two values. */
#define FIELD_NUMBER(type, member, least_, most_)                                                  \
	FIELD_INTEGER(type, member, signed, FIELD_KIND_NUMBER), .least = least_, .most = most_
#define FIELD_UNSIGNED(type, member, most_)                                                        \
	FIELD_INTEGER(type, member, unsigned, FIELD_KIND_UNSIGNED), .most = most_

/* A struct timespec, in nanoseconds (state_time()). */
#define FIELD_TIME(type, member)                                                                   \
	FIELD_OF(type, member, struct timespec *: FIELD_KIND_TIME)

/* An enum, by an array of the words for its values. */
#define FIELD_WORD(type, member, words_)                                                           \
	FIELD_INTEGER(type, member, unsigned, FIELD_KIND_WORD), .words = words_,                   \
	.most = sizeof(words_) / sizeof(*words_) - 1

/* A pointer to text. What is read belongs to the reader, and is void with its next line. */
#define FIELD_TEXT(type, member)                                                                   \
	FIELD_OF(type, member, char **: FIELD_KIND_TEXT, const char **: FIELD_KIND_TEXT)

/* An array of characters; what does not fit is cut off. */
#define FIELD_CHARS(type, member)                                                                  \
	FIELD_OF(type, member, char (*)[sizeof(((type *)0)->member)]: FIELD_KIND_CHARS)

/* Behind a number or a text (NULL as 0): the key is written, and has to be there, only if the
 * member is not that. */
#define FIELD_OR(missing_) .may_be_missing = true, .missing = missing_

#define FIELD_OF(type, member, ...)                                                                \
	.offset = offsetof(type, member), .bytes = sizeof(((type *)0)->member),                    \
	.kind = _Generic(&((type *)0)->member, __VA_ARGS__)
#define FIELD_INTEGER(type, member, sign, kind)                                                    \
	FIELD_OF(type, member, sign int *: kind, sign long *: kind, sign long long *: kind)

/* clang-format on */

/* Writes the members of the struct as keys of a line. Errors stay with the stream. */
void fields_save(const struct field *fields, const void *whole, FILE *out);

/* Reads them from the present line. All are set, even if a value is not allowed. Returns 0, or
 * -EINVAL if anything was wrong with the reader, also before. */
int fields_restore(const struct field *fields, void *whole, struct state_reader *in);

#endif
