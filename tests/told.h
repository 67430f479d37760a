/* SPDX-License-Identifier: Apache-2.0
 *
 * For who calls a store without an engine (struct store_told of stores/store.h).
 */
#ifndef DLOCKFS_TESTS_TOLD_H
#define DLOCKFS_TESTS_TOLD_H

struct store_told {
	char unused;
};

/* Nobody holds anything by the session who would have to be told. */
static inline const struct store_told *nobody_is_told(void)
{
	static const struct store_told told;
	return &told;
}

#endif
