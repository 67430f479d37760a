/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text form of claims: written in one way, read in the ways of all known clients. Must not
 * know of queues or holders. Pure functions, any thread.
 */
#include "claim/name.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_CHARS	  36
#define SPAN_PART_BYTES	  sizeof("r-9223372036854775808--9223372036854775808-")
#define ANCHOR_PART_BYTES (SPAN_PART_BYTES + sizeof("9223372036854775807:"))

/* The bits of a uuid, in its first and in its second half. */
#define VERSION_MASK UINT64_C(0xf000)
#define VERSION_8    UINT64_C(0x8000)
#define VARIANT	     (UINT64_C(2) << 62)
#define RECORD	     (UINT64_C(1) << 61)
#define OWNER_SHIFT  32

/* printf("%010d") pads to ten characters, the sign among them: below a billion a negative number
 * has nine digits, from there on ten. */
#define NUMBER_CHARS	    10
#define FIRST_WIDE_NEGATIVE INT64_C(1000000000)

const char *const claim_recipe_names[] = {
	[CLAIM_CURATOR_RW] = "curator-rw", [CLAIM_CURATOR_MUTEX] = "curator-mutex",
	[CLAIM_KAZOO] = "kazoo",	   [CLAIM_CURATOR_ANY] = "curator-any",
	[CLAIM_PLAIN] = "plain",	   [CLAIM_REDISSON] = "redisson",
};

/* Behind the dash that ends what is in front of them. */
static const char *const markers[][2] = {
	[CLAIM_CURATOR_RW] = {[CLAIM_SHARED] = "__READ__", [CLAIM_EXCLUSIVE] = "__WRIT__"},
	[CLAIM_CURATOR_MUTEX] = {[CLAIM_SHARED] = "lock-", [CLAIM_EXCLUSIVE] = "lock-"},
	[CLAIM_KAZOO] = {[CLAIM_SHARED] = "__rlock__", [CLAIM_EXCLUSIVE] = "__lock__"},
	[CLAIM_CURATOR_ANY] = {[CLAIM_SHARED] = "any-__READ__", [CLAIM_EXCLUSIVE] = "any-__WRIT__"},
	[CLAIM_PLAIN] = {[CLAIM_SHARED] = "R-", [CLAIM_EXCLUSIVE] = "W-"},
	[CLAIM_REDISSON] = {[CLAIM_SHARED] = "hash-__READ__", [CLAIM_EXCLUSIVE] = "hash-__WRIT__"},
};

#define COMPANION_MARKER "any-lock-"

/* The text before the number, and what it means. If two entries match, the first one counts.
 */
static const struct marker {
	const char *text;
	enum claim_recipe recipe;
	enum claim_mode mode;
	bool companion;
} read_markers[] = {
	{"any-__WRIT__", CLAIM_CURATOR_ANY, CLAIM_EXCLUSIVE, false},
	{"any-__READ__", CLAIM_CURATOR_ANY, CLAIM_SHARED, false},
	{COMPANION_MARKER, CLAIM_CURATOR_ANY, CLAIM_EXCLUSIVE, true},
	{"hash-__WRIT__", CLAIM_REDISSON, CLAIM_EXCLUSIVE, false},
	{"hash-__READ__", CLAIM_REDISSON, CLAIM_SHARED, false},
	{"__WRIT__", CLAIM_CURATOR_RW, CLAIM_EXCLUSIVE, false},
	{"__READ__", CLAIM_CURATOR_RW, CLAIM_SHARED, false},
	{"lock-", CLAIM_CURATOR_MUTEX, CLAIM_EXCLUSIVE, false},
	{"__lock__", CLAIM_KAZOO, CLAIM_EXCLUSIVE, false},
	{"__rlock__", CLAIM_KAZOO, CLAIM_SHARED, false},
	{"-W-", CLAIM_PLAIN, CLAIM_EXCLUSIVE, false},
	{"-R-", CLAIM_PLAIN, CLAIM_SHARED, false},
	{"read-", CLAIM_CURATOR_RW, CLAIM_SHARED, false},
};

uint64_t claim_id_session(uint64_t random)
{
	return (random & ~VERSION_MASK) | VERSION_8;
}

/* FNV-1a, 32 bits. */
struct claim_id claim_id_of_hold(const char *owner)
{
	uint32_t hash = UINT32_C(2166136261);

	for (; *owner != '\0'; owner++)
		hash = (hash ^ (uint8_t)*owner) * UINT32_C(16777619);
	return (struct claim_id){CLAIM_HOLD_SESSION, CLAIM_OWNER_NONE, hash};
}

static bool is_whole(struct claim_span span)
{
	return span.start == 0 && span.end == INT64_MAX;
}

static void replace(char *text, size_t chars, char from, char to)
{
	for (size_t i = 0; i < chars; i++) {
		if (text[i] == from)
			text[i] = to;
	}
}

static char *put_hex(char *to, uint64_t number, int digits)
{
	for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[number >> shift & 0xf];
	*to++ = '-';
	return to;
}

/* Without snprintf() where it would take most of the time: names are made all the time.
 */
void claim_name_format(char text[CLAIM_NAME_PREFIX_BYTES], const struct claim_name *name)
{
	uint64_t high = name->id.session;
	uint64_t low = VARIANT | (name->record ? RECORD : 0) |
		       (uint64_t)name->id.owner << OWNER_SHIFT | name->id.number;
	char span[SPAN_PART_BYTES] = "", anchor[ANCHOR_PART_BYTES] = "";
	char *end;

	assert(name->id.owner < CLAIM_OWNERS);
	if (name->sparse || !is_whole(name->span))
		snprintf(span, sizeof(span), "%c%" PRId64 "-%" PRId64 "-", name->sparse ? 's' : 'r',
			 name->span.start, name->span.end);
	if (name->anchored)
		snprintf(anchor, sizeof(anchor), "a%" PRId64 ":%" PRId64 "-%" PRId64 "-",
			 claim_name_number(name->anchor), name->anchor_span.start,
			 name->anchor_span.end);
	end = stpcpy(text, "_c_");
	end = put_hex(end, high >> 32, 8);
	end = put_hex(end, high >> 16, 4);
	end = put_hex(end, high, 4);
	end = put_hex(end, low >> 48, 4);
	end = put_hex(end, low, 12);
	end = stpcpy(end, span);
	end = stpcpy(end, anchor);
	if (name->least_ms != 0)
		end += sprintf(end, "m%" PRId32 "-", name->least_ms);
	if (name->hold)
		end = stpcpy(end, "h-");
	if (name->slot != 0)
		end += sprintf(end, "k%u-", name->slot);
	if (name->recipe == CLAIM_PLAIN)
		replace(text, (size_t)(end - 1 - text), '-', '.');
	stpcpy(end, name->companion ? COMPANION_MARKER : markers[name->recipe][name->mode]);
}

void claim_name_format_placed(char text[CLAIM_NAME_BYTES], const struct claim_name *name)
{
	claim_name_format(text, name);
	sprintf(text + strlen(text), "%010" PRId64, claim_name_number(name->order));
}

/* Below INT32_MIN ZooKeeper's counter would go on at INT32_MAX. */
int64_t claim_name_order_before(int64_t order, uint32_t numbers)
{
	int64_t number = claim_name_number(order) - numbers;

	return claim_name_order(number < INT32_MIN ? number + (INT64_C(1) << 32) : number);
}

struct claim_name claim_name_companion(const struct claim_name *name)
{
	return (struct claim_name){
		.id = name->id,
		.span = CLAIM_SPAN_WHOLE,
		.mode = CLAIM_EXCLUSIVE,
		.recipe = CLAIM_CURATOR_ANY,
		.companion = true,
		.record = name->record,
		.order = claim_name_order_before(name->order, 1),
	};
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

/* Finds the number, as ZooKeeper gives it, at the end of a name. Returns false if there is none. */
static bool split_number(const char *name, size_t *ret_prefix_chars, int64_t *ret_order)
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
	*ret_order = claim_name_order(minus ? -value : value);
	return true;
}

/* The same for a number that ZooKeeper does not give: more than INT32_MAX, without zeros in front.
 */
static bool split_long_number(const char *name, size_t *ret_prefix_chars, int64_t *ret_order)
{
	size_t start = strlen(name);

	while (start > 0 && is_digit(name[start - 1]))
		start--;
	if (strlen(name + start) < NUMBER_CHARS || name[start] == '0')
		return false;
	errno = 0;
	int64_t number = strtoll(name + start, NULL, 10);
	if (errno != 0 || number <= INT32_MAX || claim_name_number(number) != number)
		return false;
	*ret_prefix_chars = start;
	*ret_order = number;
	return true;
}

/* The marker at the end of the prefix; without any the claim is exclusive. */
static const struct marker *find_marker(const char *name, size_t prefix_chars)
{
	static const struct marker none = {"", CLAIM_CURATOR_RW, CLAIM_EXCLUSIVE, false};

	for (size_t i = 0; i < sizeof(read_markers) / sizeof(read_markers[0]); i++) {
		size_t chars = strlen(read_markers[i].text);

		if (chars <= prefix_chars &&
		    memcmp(name + prefix_chars - chars, read_markers[i].text, chars) == 0)
			return &read_markers[i];
	}
	return &none;
}

/* The functions below read the parts of a name liberally: dashes anywhere, zeros in front, numbers
 * of any range. read_own() then compares the whole name with what claim_name_format() writes for
 * it. Only the preconditions of claim_name_format() are checked. No function reads past the final
 * NUL.
 */

static const char *read_uuid(const char *text, struct claim_name *ret)
{
	uint64_t high = 0, low = 0;
	size_t i;

	for (i = 0; i < UUID_CHARS; i++) {
		uint64_t nibble;

		if (text[i] == '-')
			continue;
		if (is_digit(text[i]))
			nibble = (uint64_t)(text[i] - '0');
		else if (text[i] >= 'a' && text[i] <= 'f')
			nibble = (uint64_t)(text[i] - 'a' + 10);
		else
			break;
		high = high << 4 | low >> 60;
		low = low << 4 | nibble;
	}
	ret->id.session = high;
	ret->id.owner = low >> OWNER_SHIFT & (CLAIM_OWNERS - 1);
	ret->id.number = (uint32_t)low;
	ret->record = low & RECORD;
	return text + i;
}

/* Returns the text behind the span, or NULL if there is no span. */
static const char *read_span(const char *text, struct claim_span *ret)
{
	char *end;

	ret->start = strtoll(text, &end, 10);
	if (*end != '-')
		return NULL;
	ret->end = strtoll(end + 1, &end, 10);
	return ret->start >= 0 && ret->start <= ret->end ? end : NULL;
}

static const char *read_anchor(const char *text, struct claim_name *ret)
{
	char *end;

	ret->anchored = true;
	int64_t number = strtoll(text, &end, 10);
	if (number < INT32_MIN)
		return NULL;
	ret->anchor = claim_name_order(number);
	return *end == ':' ? read_span(end + 1, &ret->anchor_span) : NULL;
}

static const char *read_least(const char *text, struct claim_name *ret)
{
	char *end;
	long least_ms = strtol(text, &end, 10);

	if (least_ms <= 0 || least_ms > CLAIM_LEAST_MAX_MS)
		return NULL;
	ret->least_ms = (int32_t)least_ms;
	return end;
}

static const char *read_slot(const char *text, struct claim_name *ret)
{
	char *end;
	unsigned long slot = strtoul(text, &end, 10);

	if (slot == 0 || slot > UINT16_MAX)
		return NULL;
	ret->slot = (uint16_t)slot;
	return end;
}

/* Reads the prefix of a name, with the marker at its end, that claim_name_format() has written; not
 * the order. Returns false, and leaves *name untouched, if claim_name_format() has not written it.
 */
static bool read_own(const char *text, size_t prefix_chars, struct claim_name *name)
{
	const struct marker *marker = find_marker(text, prefix_chars);
	struct claim_name own = {
		.mode = marker->mode,
		.recipe = marker->recipe,
		.companion = marker->companion,
		.span = CLAIM_SPAN_WHOLE,
	};
	char dashed[CLAIM_NAME_PREFIX_BYTES], written[CLAIM_NAME_PREFIX_BYTES];
	const char *part = text;

	if (strncmp(text, "_c_", strlen("_c_")) != 0 || prefix_chars >= sizeof(dashed))
		return false;
	if (own.recipe == CLAIM_PLAIN) {
		memcpy(dashed, text, prefix_chars);
		dashed[prefix_chars] = '\0';
		replace(dashed, prefix_chars, '.', '-');
		part = dashed;
	}
	part = read_uuid(part + strlen("_c_"), &own);
	if (own.id.session != claim_id_session(own.id.session))
		return false;
	if (part[0] == '-' && (part[1] == 'r' || part[1] == 's')) {
		own.sparse = part[1] == 's';
		part = read_span(part + 2, &own.span);
	}
	if (part != NULL && part[0] == '-' && part[1] == 'a' &&
	    (is_digit(part[2]) || part[2] == '-'))
		part = read_anchor(part + 2, &own);
	if (part != NULL && part[0] == '-' && part[1] == 'm')
		part = read_least(part + 2, &own);
	if (part != NULL && strncmp(part, "-h-", strlen("-h-")) == 0) {
		own.hold = true;
		part += 2;
	}
	if (part != NULL && part[0] == '-' && part[1] == 'k')
		part = read_slot(part + 2, &own);
	bool parted = own.sparse || own.anchored || !is_whole(own.span);
	bool is_plain = own.least_ms == 0 && !own.hold;
	if (part == NULL || (own.companion && (parted || !is_plain)) ||
	    (!is_plain && (parted || own.record)) || (own.hold && own.mode != CLAIM_EXCLUSIVE))
		return false;

	claim_name_format(written, &own);
	if (strlen(written) != prefix_chars || memcmp(text, written, prefix_chars) != 0)
		return false;
	own.order = name->order;
	*name = own;
	return true;
}

bool claim_name_parse(const char *text, struct claim_name *ret)
{
	struct claim_name name = {.span = CLAIM_SPAN_WHOLE};
	size_t prefix_chars;

	if (!split_long_number(text, &prefix_chars, &name.order) ||
	    !read_own(text, prefix_chars, &name)) {
		if (!split_number(text, &prefix_chars, &name.order))
			return false;
		const struct marker *marker = find_marker(text, prefix_chars);
		name.mode = marker->mode;
		name.recipe = marker->recipe;
		read_own(text, prefix_chars, &name);
	}
	*ret = name;
	return true;
}

bool claim_name_parse_prefix(const char *text, size_t bytes, struct claim_name *ret)
{
	char prefix[CLAIM_NAME_PREFIX_BYTES];
	struct claim_name name = {.order = 0};

	if (bytes >= sizeof(prefix) || memchr(text, '\0', bytes) != NULL)
		return false;
	memcpy(prefix, text, bytes);
	prefix[bytes] = '\0';
	if (!read_own(prefix, bytes, &name))
		return false;
	*ret = name;
	return true;
}

int claim_name_compare(int64_t order_a, const char *name_a, int64_t order_b, const char *name_b)
{
	if (order_a == order_b)
		return strcmp(name_a, name_b);
	return order_a < order_b ? -1 : 1;
}

uint16_t claim_name_slot(const char *text)
{
	struct claim_name own = {.slot = 0};
	const char *part = strstr(text, "-k");

	if (part == NULL)
		part = strstr(text, ".k"); /* of CLAIM_PLAIN */
	return part != NULL && read_slot(part + 2, &own) != NULL ? own.slot : 0;
}

bool claim_name_is_hold(const char *text)
{
	struct claim_name name;

	return claim_name_parse(text, &name) && name.hold;
}
