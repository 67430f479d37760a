/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.c and file.c share: the table of keys and the sections of [locks]. For
 * these two files only; config.h is the manual for everybody else.
 */
#ifndef DLOCKFS_CONFIG_INTERNAL_H
#define DLOCKFS_CONFIG_INTERNAL_H

#include "config/value.h"

/* All keys; those of a section stand together. */
extern const struct config_key config_keys[];
extern const size_t config_key_count;

#define CONFIG_KEY_BIT(key)  (UINT64_C(1) << ((key)-config_keys))
#define CONFIG_LOCKS_SECTION "locks"
#define CONFIG_STORE_SECTION "store"

/* The first two have no pattern and always exist; sections of the file follow. */
enum { CONFIG_ALL_LOCKS, CONFIG_OPTIONS, CONFIG_FIRST_PATTERN };

struct config_section {
	char *pattern;
	size_t slashes; /* in the pattern: a path with more does not match it */
	uint64_t set;	/* the CONFIG_KEY_BITs that are set in policy */
	struct lock_policy policy;
};

/* Finds a key of a section, or of any section if `section` is NULL. Returns NULL if there is no
 * such key. */
const struct config_key *config_find_key(const char *section, const char *name);

/* Sets a key where it belongs; `place` is the index of the section that takes keys of [locks], or
 * of the store that takes those of [store]. Returns 0, -ENOMEM, or -EINVAL with what is wrong and
 * expected in `why`. */
int config_set_key(struct config *config, const struct config_key *key, size_t place,
		   const char *text, char *why, size_t why_bytes);

/* Whether a recipe is set, *ret, that no lock can have, as it is of none of the stores; and what is
 * wrong then. */
bool config_lacks_recipe(const struct config *config, int64_t *ret);
void config_explain_recipe(int64_t recipe, char *why, size_t why_bytes);

/* The key of a section of [locks] that does not go with "slots" there; NULL: there is none. What
 * other sections say of that is not heeded for such a lock (engine/handoff.c). */
const char *config_find_clash(const struct config_section *section);

/* Appends a section with nothing set; `pattern` (copied) may be NULL. Returns 0 or -ENOMEM. */
int config_add_section(struct config *config, const char *pattern, size_t pattern_bytes);

/* Appends a store with nothing set; `prefix` is copied. Returns 0 or -ENOMEM. */
int config_add_store(struct config *config, const char *prefix);

#endif
