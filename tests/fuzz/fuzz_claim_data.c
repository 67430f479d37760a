/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of claims, which are anybody's: ranges that are taken are in order and within the
 * offsets, and come out the same when they are written and read again; orders are found again, and
 * change nothing else; and one claim is one line in a view, of printable ASCII.
 */
#include "fuzz.h"

#include <stdbool.h>

#include "claim/data.h"
#include "view/claim.h"

static void check_ranges(const struct range_set *set)
{
	REQUIRE(set->count > 0);
	for (size_t i = 0; i < set->count; i++) {
		const struct range *range = &set->ranges[i], *before = range - 1;

		REQUIRE(range->span.start >= 0 && range->span.start <= range->span.end);
		REQUIRE(i == 0 || before->span.end < range->span.start);
		REQUIRE(i == 0 || before->mode != range->mode ||
			before->span.end < range->span.start - 1);
	}
}

static void check_equal(const struct claim_data *a, const struct claim_data *b)
{
	REQUIRE(a->has_ranges == b->has_ranges && a->waits == b->waits);
	REQUIRE(!a->has_ranges || range_sets_equal(&a->ranges, &b->ranges));
	REQUIRE(a->has_holds == b->has_holds);
	REQUIRE(!a->has_holds || range_sets_equal(&a->holds, &b->holds));
	REQUIRE(!a->waits || a->waits_for == b->waits_for);
}

static void check_says(const char *text, const struct claim_data *expected)
{
	struct claim_data found;

	REQUIRE(claim_data_parse(text, &found) == 0);
	check_equal(&found, expected);
	claim_data_finish(&found);
}

static void check_who(const char *who)
{
	REQUIRE(strlen(who) < CLAIM_DATA_WHO_BYTES);
	for (; *who; who++)
		REQUIRE(*who > ' ' && *who < 0x7f);
}

/* Somebody adds an order to the data. */
static void check_order(const char *text, const struct claim_data *data, enum claim_order order)
{
	char who[CLAIM_DATA_WHO_BYTES];
	enum claim_order before = claim_data_order(text, who);
	char *with = claim_data_add_order(text, order, "uid=0,pid=1,host=a");
	bool ends = *text == '\0' || text[strlen(text) - 1] == '\n';
	uint32_t uid = 0, uid_with = 0;

	if (before != CLAIM_ORDER_NONE)
		check_who(who);
	if (!with) {
		REQUIRE(order == CLAIM_ORDER_BREAK);
		return;
	}
	if (strcmp(with, CLAIM_DATA_CURATOR_REVOKE) == 0 || ends) {
		enum claim_order after = claim_data_order(with, who);

		REQUIRE(after == order || (after == CLAIM_ORDER_BREAK && before == after));
		REQUIRE(after != order || strcmp(who, "uid=0,pid=1,host=a") == 0 ||
			strcmp(who, "another-client") == 0);
	}
	if (ends) {
		check_says(with, data);
		REQUIRE(claim_data_uid(text, &uid) == claim_data_uid(with, &uid_with));
		REQUIRE(uid == uid_with);
	}
	free(with);
}

/* The line in .dlockfs/queues of a claim that has this data, whatever its name. */
static void check_view(const char *name, const char *text)
{
	struct store_claim said = {.data = text, .data_bytes = strlen(text), .session = 1};
	struct view_claim view = {.name = strdup(name), .asker = {.pid = -1, .uid = -1}};
	size_t ranges_left = 100, bytes, lines = 0;
	char *shown;
	FILE *out = open_memstream(&shown, &bytes);

	REQUIRE(out && view.name && claim_name_parse(name, &view.parts));
	REQUIRE(view_claim_read(&view, &said, &ranges_left) == 0);
	REQUIRE(ranges_left <= 100 && view.ranges.count <= 100);
	view_claims_write(out, text, NULL, &view, 1);
	fclose(out);
	for (size_t i = 0; i < bytes; i++) {
		REQUIRE(shown[i] == '\n' || (shown[i] >= ' ' && shown[i] < 0x7f));
		lines += shown[i] == '\n';
	}
	REQUIRE(lines == 2 && strstr(shown, "\nposition=1 "));
	free(shown);
	view_claim_finish(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static const char own[] =
		"_c_00000000-0000-8000-a000-000100000001-s0-4000-__WRIT__0000000001";
	char *text = fuzz_text(data, bytes), *written;
	struct claim_data said;

	REQUIRE(claim_data_parse(text, &said) == 0);
	if (said.has_ranges)
		check_ranges(&said.ranges);
	if (said.has_holds)
		check_ranges(&said.holds);
	written = claim_data_format("format=1\n", &said);
	REQUIRE(written);
	check_says(written, &said);
	free(written);
	check_order(text, &said, CLAIM_ORDER_REVOKE);
	check_order(text, &said, CLAIM_ORDER_BREAK);
	check_view(own, text);
	check_view("lock-0000000001", text);
	claim_data_finish(&said);
	free(text);
	return 0;
}
