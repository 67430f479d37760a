/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of configuration keys: how they are read, and which are allowed. For config.c and
 * file.c only; config.h is the manual for everybody else.
 */
#ifndef DLOCKFS_CONFIG_VALUE_H
#define DLOCKFS_CONFIG_VALUE_H

#include "config/config.h"

#define CONFIG_BLANKS " \t\r\n\v\f"

/* The longest value of a key that is a list. */
#define CONFIG_VALUE_MAX 4096

/* Enough for any text of a value's error. */
#define CONFIG_WHY_BYTES 768

/* Enough for what a value may be. */
#define CONFIG_EXPECTED_BYTES 160

/* For limits of durations, which are in milliseconds. */
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

enum config_type {
	DURATION,
	DURATION_OR_FOREVER,
	DURATION_OR_AUTO,
	NUMBER,
	NUMBER_OR_AUTO,
	LOG_LEVEL,
	MODE,
	MODE_OR_CREATOR,
	USER,
	GROUP,
	YES_OR_NO,
	EIO_OR_SIGNAL,
	NONE_OR_SIGNAL,
	RECIPE,
	EXCLUSIVE_OPEN,
	STYLE,
	FILE_OWNER,
	STEAL,
	DIRECTORIES,
	STORE_URL,
	ACL,
	DIGEST_FILE,
	TLS_FILE,
	TLS_KEY_FILE,
	PASSWORD_FILE,
	ADDRESS,
	WORD
};

struct config_key {
	const char *section;
	const char *name;
	enum config_type type;
	size_t offset; /* in struct lock_policy for [locks], in struct config_store for [store], in
			  struct config for others */
	int64_t min, max; /* of types that are numbers */
	const char *fallback;
	bool fixed; /* config_reload() does not change it */
	const char *meaning;
};

/* Sets what `key` means in `target`, the struct that its offset counts from. Returns 0, -ENOMEM, or
 * -EINVAL with what is wrong and expected in `why`; the value is then as it was. */
int config_value_set(const struct config_key *key, void *target, const char *text, char *why,
		     size_t why_bytes);

/* Whether the value is a list, which may be long: it may go on in more lines. */
bool config_value_is_list(const struct config_key *key);

/* Writes which values a key may have. */
void config_value_describe(const struct config_key *key, char *text, size_t text_bytes);

/* Whether the value of the key is the same in both structs. */
bool config_value_equal(const struct config_key *key, const void *a, const void *b);

/* How many bytes the value of a key takes in its struct. */
size_t config_value_bytes(const struct config_key *key);

/* Frees a list of DIRECTORIES, NULL-terminated; may be NULL. */
void config_value_free_strings(char **strings);

/* Whether the text is a path that a lock may have, in the root of the mount too. */
bool config_is_path(const char *text);

#endif
