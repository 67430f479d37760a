/* SPDX-License-Identifier: Apache-2.0
 *
 * The form of the state that a daemon passes on to the program that goes on in its place
 * (fs/restart/takeover.h): text, a line for each thing, a word and then "key=value" pairs with a
 * space between. Values may have any bytes: those that are not printable ASCII, space and '%' are
 * written as %XX. Keys are in any order. A missing key counts as zero, or as no, where the reader
 * says so; a key that the reader does not ask for is ignored.
 *
 * A reader may get any input: an error gives one line that says where, what, and what would be
 * right. Any thread, one at a time for a stream or a reader.
 */
#ifndef DLOCKFS_JOURNAL_TEXT_H
#define DLOCKFS_JOURNAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "claim/range_set.h"

/* Writing: a line is state_begin() with its word, its keys, and state_end(). Errors stay with the
 * stream (ferror(3)). */

void state_begin(FILE *out, const char *word);
void state_number(FILE *out, const char *key, int64_t number);
void state_unsigned(FILE *out, const char *key, uint64_t number);
void state_text(FILE *out, const char *key, const char *text);
void state_time(FILE *out, const char *key, struct timespec time); /* in nanoseconds */
void state_bytes(FILE *out, const char *key, const void *bytes, size_t count);
void state_ranges(FILE *out, const char *key, const struct range_set *ranges);

/* Written only if it is set. */
void state_flag(FILE *out, const char *key, bool flag);

void state_end(FILE *out);

/* Reading */

enum { STATE_FIELDS_MAX = 64 };

struct state_field {
	const char *key;
	char *value; /* as it was meant, with a NUL behind it */
	size_t bytes;
};

struct state_reader {
	FILE *in;
	char *line;
	size_t line_capacity;
	unsigned long line_number;
	const char *word; /* of the line */
	struct state_field fields[STATE_FIELDS_MAX];
	size_t field_count;
	bool again;    /* state_next() is to return the line once more */
	bool starved;  /* there was no memory, and nothing was wrong before */
	char why[512]; /* what is wrong, one line; "" while nothing is */
};

/* The stream stays the caller's. state_reader_finish() frees the rest. */
void state_reader_init(struct state_reader *reader, FILE *in);
void state_reader_finish(struct state_reader *reader);

/* Reads the next line. Returns 1; 0 at the end; or -EINVAL, -ENOMEM, -EIO with a line in `why`.
 * What was read of the line before is void. */
int state_next(struct state_reader *reader);

/* The next state_next() returns the present line once more. */
void state_again(struct state_reader *reader);

bool state_has(const struct state_reader *reader, const char *key);

/* The value of a key of the present line. If the key is missing or its value not allowed, the
 * result is the smallest allowed value ("" for text, no bytes), and state_failed() is true. */
int64_t state_get_number(struct state_reader *reader, const char *key, int64_t least, int64_t most);
uint64_t state_get_unsigned(struct state_reader *reader, const char *key, uint64_t most);
struct timespec state_get_time(struct state_reader *reader, const char *key);
const char *state_get_text(struct state_reader *reader, const char *key);
const void *state_get_bytes(struct state_reader *reader, const char *key, size_t *ret_count);

/* The first place among the words, of which some may be NULL; 0 if it is none of them. */
size_t state_get_word(struct state_reader *reader, const char *key, const char *const words[],
		      size_t count);

/* The same for a key that may be missing: the result is then 0, or no. */
int64_t state_find_number(struct state_reader *reader, const char *key, int64_t least,
			  int64_t most);
uint64_t state_find_unsigned(struct state_reader *reader, const char *key, uint64_t most);
bool state_find_flag(struct state_reader *reader, const char *key);

/* *ret, which must be uninitialised or empty, becomes the set, also if that has no ranges. Returns
 * 0, -EINVAL or -ENOMEM, as state_next(). */
int state_get_ranges(struct state_reader *reader, const char *key, struct range_set *ret);

/* Notes that the line makes no sense, unless something was wrong before: "line 7: claim: KEY:
 * expected EXPECTED", without the key if that is NULL. Returns -EINVAL. */
int state_refuse(struct state_reader *reader, const char *key, const char *expected);

/* Notes that there is no memory. Returns -ENOMEM. */
int state_starve(struct state_reader *reader);

/* Whether anything was wrong. */
bool state_failed(const struct state_reader *reader);

#endif
