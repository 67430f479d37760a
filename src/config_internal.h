/* SPDX-License-Identifier: Apache-2.0
 *
 * What config.c and config_file.c share: the table of keys and the sections of [locks]. For
 * these two files only; config.h is the manual for everybody else.
 */
#ifndef DLOCKFS_CONFIG_INTERNAL_H
#define DLOCKFS_CONFIG_INTERNAL_H

#include "config.h"

#define CONFIG_BLANKS " \t\r\n\v\f"

/* Enough for any text of a value's error. */
#define CONFIG_WHY_BYTES 768

enum config_type {
	DURATION,
	DURATION_OR_FOREVER,
	NUMBER,
	LOG_LEVEL,
	MODE,
	YES_OR_NO,
	EIO_OR_SIGNAL,
	NONE_OR_SIGNAL,
	RECIPE,
	DIRECTORIES,
	STORE_URL
};

struct config_key {
	const char *section;
	const char *name;
	enum config_type type;
	size_t offset; /* in struct lock_policy for [locks], in struct config_store for [store], in
			  struct config for others */
	int64_t min, max; /* of what is a number in the end */
	const char *fallback;
	bool fixed; /* what the daemon starts with stays: config_reload() */
	const char *meaning;
};

/* All keys; those of a section stand together. */
extern const struct config_key config_keys[];
extern const size_t config_key_count;

#define CONFIG_KEY_BIT(key)  (1u << ((key)-config_keys))
#define CONFIG_LOCKS_SECTION "locks"
#define CONFIG_STORE_SECTION "store"

/* The first two have no pattern and always exist; sections of the file follow. */
enum { CONFIG_ALL_LOCKS, CONFIG_OPTIONS, CONFIG_FIRST_PATTERN };

struct config_section {
	char *pattern;
	unsigned set; /* the CONFIG_KEY_BITs that are set in policy */
	struct lock_policy policy;
};

/* Finds a key of a section, or of any section where that is NULL. Returns NULL if there is none. */
const struct config_key *config_find_key(const char *section, const char *name);

/* Sets a key where it belongs; `place` is the index of the section that takes keys of [locks], or
 * of the store that takes those of [store]. Returns 0, -ENOMEM, or -EINVAL with what is wrong and
 * expected in `why`. */
int config_set_key(struct config *config, const struct config_key *key, size_t place,
		   const char *text, char *why, size_t why_bytes);

/* Appends a section with nothing set; `pattern` (copied) may be NULL. Returns 0 or -ENOMEM. */
int config_add_section(struct config *config, const char *pattern, size_t pattern_bytes);

/* Appends a store with nothing set; `prefix` is copied. Returns 0 or -ENOMEM. */
int config_add_store(struct config *config, const char *prefix);

/* Whether the text is a path that a lock may have, in the root of the mount too. */
bool config_is_path(const char *text);

#endif
