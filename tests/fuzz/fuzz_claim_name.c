/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of claims: any text, and (an input that begins with a NUL) numbers that a claim is made of.
 * What is written is read again as it was; what is taken for a claim of dlockfs is written so;
 * order is one.
 */
#include "fuzz.h"

#include <inttypes.h>
#include <stdbool.h>

#include "claim/name.h"

static bool spans_equal(struct claim_span a, struct claim_span b)
{
	return a.start == b.start && a.end == b.end;
}

static void check_equal(const struct claim_name *a, const struct claim_name *b)
{
	REQUIRE(a->id.session == b->id.session && a->id.owner == b->id.owner &&
		a->id.number == b->id.number);
	REQUIRE(a->recipe == b->recipe && a->companion == b->companion);
	REQUIRE(a->mode == b->mode && a->record == b->record && a->sparse == b->sparse);
	REQUIRE(spans_equal(a->span, b->span));
	REQUIRE(a->anchored == b->anchored && a->order == b->order);
	REQUIRE(!a->anchored ||
		(a->anchor == b->anchor && spans_equal(a->anchor_span, b->anchor_span)));
}

/* The name as it is in the store, and what is read from it. */
static void check_written(const struct claim_name *name)
{
	char prefix[CLAIM_NAME_PREFIX_BYTES], text[CLAIM_NAME_PREFIX_BYTES + 32];
	struct claim_name again;

	memset(prefix, 'x', sizeof(prefix));
	claim_name_format(prefix, name);
	/* What is cut would have lost the mode at its end. */
	REQUIRE(strnlen(prefix, sizeof(prefix)) < sizeof(prefix) - 1);
	snprintf(text, sizeof(text), "%s%010" PRId64, prefix, claim_name_number(name->order));
	REQUIRE(claim_name_parse(text, &again));
	check_equal(&again, name);
	REQUIRE(claim_name_parse_prefix(text, strlen(prefix), &again) && again.order == 0);
	again.order = name->order;
	check_equal(&again, name);
}

static struct claim_span take_span(const uint8_t **data, size_t *bytes)
{
	int64_t a = (int64_t)(fuzz_number(data, bytes) & INT64_MAX);
	int64_t b = (int64_t)(fuzz_number(data, bytes) & INT64_MAX);

	return a < b ? (struct claim_span){a, b} : (struct claim_span){b, a};
}

static void check_numbers(const uint8_t *data, size_t bytes)
{
	uint8_t bits = fuzz_byte(&data, &bytes);
	struct claim_name name = {
		.id = {.session = claim_id_session(fuzz_number(&data, &bytes)),
		       .owner = (uint32_t)fuzz_number(&data, &bytes) & (CLAIM_OWNERS - 1),
		       .number = (uint32_t)fuzz_number(&data, &bytes)},
		.mode = bits & 1 ? CLAIM_EXCLUSIVE : CLAIM_SHARED,
		.recipe = (enum claim_recipe)((bits >> 5) % CLAIM_RECIPES),
		.record = bits & 2,
		.sparse = bits & 4,
		.anchored = bits & 8,
		.span = bits & 16 ? CLAIM_SPAN_WHOLE : take_span(&data, &bytes),
		.anchor = (int64_t)(fuzz_number(&data, &bytes) & INT64_MAX),
		.anchor_span = take_span(&data, &bytes),
		.order = (int64_t)(fuzz_number(&data, &bytes) & INT64_MAX),
	};

	if (!claim_recipe_shares(name.recipe))
		name.mode = CLAIM_EXCLUSIVE;
	check_written(&name);
	if (name.recipe == CLAIM_CURATOR_ANY) {
		name = claim_name_companion(&name);
		check_written(&name);
	}
}

static void check_order(const char *name_a, int64_t a, const char *name_b, int64_t b)
{
	int order = claim_name_compare(a, name_a, b, name_b);
	int reverse = claim_name_compare(b, name_b, a, name_a);

	REQUIRE((order > 0) == (reverse < 0) && (order == 0) == (reverse == 0));
	REQUIRE(order != 0 || strcmp(name_a, name_b) == 0);
}

/* One name a line. */
static void check_texts(char *rest)
{
	const char *before = "";
	int64_t order_before = 0;
	char *text;

	while ((text = strsep(&rest, "\n"))) {
		struct claim_name name = {.order = 42};

		if (!claim_name_parse(text, &name)) {
			REQUIRE(name.order == 42);
			continue;
		}
		REQUIRE(name.order >= 0 && name.span.start >= 0 &&
			name.span.start <= name.span.end);
		if (name.id.session == 0)
			REQUIRE(!name.record && !name.sparse && !name.anchored && !name.companion &&
				spans_equal(name.span, CLAIM_SPAN_WHOLE));
		else
			check_written(&name);
		check_order(text, name.order, before, order_before);
		check_order(text, name.order, text, order_before);
		before = text;
		order_before = name.order;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = fuzz_text(data, bytes);

	if (bytes > 0 && data[0] == '\0')
		check_numbers(data + 1, bytes - 1);
	else
		check_texts(text);
	free(text);
	return 0;
}
