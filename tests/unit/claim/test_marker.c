/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of markers: that of each claim comes back, other clients do not take it for a claim, and
 * what is not written so is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "claim/marker.h"

#define CLAIM "_c_9b2d3c1e-6f0a-8d5b-8c7d-0123456789ab-__WRIT__0000000012"
#define MARKER                                                                                     \
	"~held~~_c~_9b2d3c1e~-6f0a~-8d5b~-8c7d~-0123456789ab~-~_~_WRIT~_~_0000000012~lock-"        \
	"2147483647"

static void test_known(void **state)
{
	char text[CLAIM_MARKER_BYTES], claim[CLAIM_NAME_BYTES];

	assert_true(claim_marker_format(text, CLAIM));
	assert_string_equal(text, MARKER);
	assert_true(claim_marker_parse(MARKER, claim));
	assert_string_equal(claim, CLAIM);
}

static void test_all(void **state)
{
	static const int64_t numbers[] = {0, 12, INT32_MAX, -1, INT32_MIN, INT64_MAX / 2};

	for (int recipe = 0; recipe < CLAIM_RECIPES; recipe++) {
		for (size_t i = 0; i < 2 * sizeof(numbers) / sizeof(numbers[0]); i++) {
			struct claim_name name = {
				.id = {claim_id_session(UINT64_MAX), CLAIM_OWNERS - 1, UINT32_MAX},
				.span = {INT64_MAX - 1, INT64_MAX},
				.mode = i % 2 && claim_recipe_shares(recipe) ? CLAIM_SHARED
									     : CLAIM_EXCLUSIVE,
				.recipe = recipe,
				.record = true,
				.sparse = true,
				.anchored = i % 2,
				.anchor = claim_name_order(INT32_MIN),
				.anchor_span = {INT64_MAX - 1, INT64_MAX},
				.order = claim_name_order(numbers[i / 2]),
			};
			char claim[CLAIM_NAME_BYTES], text[CLAIM_MARKER_BYTES];
			char again[CLAIM_NAME_BYTES];

			claim_name_format_placed(claim, &name);
			assert_true(claim_marker_format(text, claim));
			assert_true(claim_marker_parse(text, again));
			assert_string_equal(again, claim);
			assert_null(strstr(text, "__"));
			assert_null(strstr(text, "-R-"));
			assert_null(strstr(text, "-W-"));
			assert_true(strcmp(text, "9") > 0);
			assert_true(text[7] > '9'); /* from there on kazoo before 2.8 sorts */
			assert_ptr_equal(strstr(text, "lock-"), strrchr(text, '-') - 4);
			assert_string_equal(strrchr(text, '-') + 1, "2147483647");
		}
	}
}

static void test_others(void **state)
{
	static const char *const none[] = {
		"",
		"~held~",
		"~held~~",
		"~held~a~lock-2147483647",
		"~held~lock-2147483647",
		"~held~~lock-2147483647",
		CLAIM,
		"~held~" CLAIM "~lock-2147483647",
		MARKER "~",
		("~" MARKER),
		/* not of dlockfs */
		"~held~lock~-0000000012~lock-2147483647",
	};
	char claim[CLAIM_NAME_BYTES], text[CLAIM_MARKER_BYTES], longest[2 * CLAIM_MARKER_BYTES];

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(claim_marker_parse(none[i], claim));
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "~held~", strlen("~held~"));
	strcpy(longest + sizeof(longest) - sizeof(CLAIM_MARKER_SUFFIX), CLAIM_MARKER_SUFFIX);
	assert_false(claim_marker_parse(longest, claim));
	assert_false(claim_marker_format(text, "lock-0000000012"));
	assert_false(claim_marker_format(text, longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
