/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of claims: written in one way, read in the ways of all known clients. Must not
 * know of queues or holders. Pure functions, any thread.
 */
#include "claim_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define UUID_CHARS 36

/* printf("%010d") pads to ten characters, the sign among them: below a billion a negative number
 * has nine digits, from there on ten. */
#define NUMBER_CHARS	    10
#define FIRST_WIDE_NEGATIVE INT64_C(1000000000)

static const char *const mode_markers[] = {
	[CLAIM_SHARED] = "__READ__",
	[CLAIM_EXCLUSIVE] = "__WRIT__",
};

static const char *const shared_markers[] = {"__READ__", "__rlock__", "read-"};

void claim_name_format(char name[CLAIM_NAME_PREFIX_BYTES], struct claim_id id, enum claim_mode mode)
{
	snprintf(name, CLAIM_NAME_PREFIX_BYTES,
		 "_c_%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64 "-%s",
		 id.session >> 32, id.session >> 16 & 0xffff, id.session & 0xffff, id.number >> 48,
		 id.number & UINT64_C(0xffffffffffff), mode_markers[mode]);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether the minus at name[at] is the sign of the ten digits behind it, `value`. "lock-1500000000"
 * has a separator there, "lock--1500000000" and "__WRIT__-1500000000" have a sign. */
static bool is_sign(const char *name, size_t at, int64_t value)
{
	if (value < FIRST_WIDE_NEGATIVE || -value < INT32_MIN)
		return false;
	return value > INT32_MAX || at == 0 || name[at - 1] == '-' || name[at - 1] == '_';
}

/* Finds the sequence number at the end of a name. Returns false if there is none. */
static bool split_number(const char *name, size_t *ret_prefix_chars, int32_t *ret_sequence)
{
	size_t start = strlen(name), digits = 0;
	int64_t value = 0, scale = 1;
	bool minus;

	for (; digits < NUMBER_CHARS && start > 0 && is_digit(name[start - 1]); digits++) {
		value += scale * (name[--start] - '0');
		scale *= 10;
	}
	minus = start > 0 && name[start - 1] == '-';
	if (digits == NUMBER_CHARS)
		minus = minus && is_sign(name, start - 1, value);
	else if (digits != NUMBER_CHARS - 1 || !minus || value == 0)
		return false;
	if (!minus && value > INT32_MAX)
		return false;

	*ret_prefix_chars = minus ? start - 1 : start;
	*ret_sequence = (int32_t)(minus ? -value : value);
	return true;
}

static enum claim_mode mode_of_prefix(const char *name, size_t prefix_chars)
{
	for (size_t i = 0; i < sizeof(shared_markers) / sizeof(shared_markers[0]); i++) {
		size_t chars = strlen(shared_markers[i]);

		if (chars <= prefix_chars &&
		    memcmp(name + prefix_chars - chars, shared_markers[i], chars) == 0)
			return CLAIM_SHARED;
	}
	return CLAIM_EXCLUSIVE;
}

/* Reads hex digits and skips dashes, wherever they stand: the caller compares with what
 * claim_name_format() would have written. Anything else ends it. */
static struct claim_id read_uuid(const char *text)
{
	struct claim_id id = {0};

	for (size_t i = 0; i < UUID_CHARS; i++) {
		uint64_t nibble;

		if (text[i] == '-')
			continue;
		if (is_digit(text[i]))
			nibble = (uint64_t)(text[i] - '0');
		else if (text[i] >= 'a' && text[i] <= 'f')
			nibble = (uint64_t)(text[i] - 'a' + 10);
		else
			break;
		id.session = id.session << 4 | id.number >> 60;
		id.number = id.number << 4 | nibble;
	}
	return id;
}

static struct claim_id id_of_prefix(const char *name, size_t prefix_chars, enum claim_mode mode)
{
	const struct claim_id none = {0};
	char own[CLAIM_NAME_PREFIX_BYTES];
	struct claim_id id;

	claim_name_format(own, none, mode);
	if (prefix_chars != strlen(own))
		return none;
	id = read_uuid(name + strlen("_c_"));
	claim_name_format(own, id, mode);
	return memcmp(name, own, prefix_chars) == 0 ? id : none;
}

bool claim_name_parse(const char *name, struct claim_id *ret_id, enum claim_mode *ret_mode,
		      int32_t *ret_sequence)
{
	size_t prefix_chars;
	int32_t sequence;

	if (!split_number(name, &prefix_chars, &sequence))
		return false;
	*ret_mode = mode_of_prefix(name, prefix_chars);
	*ret_id = id_of_prefix(name, prefix_chars, *ret_mode);
	*ret_sequence = sequence;
	return true;
}

int claim_name_compare(int32_t sequence_a, const char *name_a, int32_t sequence_b,
		       const char *name_b)
{
	int32_t distance = (int32_t)((uint32_t)sequence_a - (uint32_t)sequence_b);

	if (distance == 0)
		return strcmp(name_a, name_b);
	/* Half the circle apart: RFC 1982 leaves it undefined, sorting must not. */
	if (distance == INT32_MIN)
		return sequence_a < sequence_b ? -1 : 1;
	return distance < 0 ? -1 : 1;
}
