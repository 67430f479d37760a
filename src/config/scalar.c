/* SPDX-License-Identifier: Apache-2.0
 *
 * See scalar.h. A type has a form, such as a duration, and words; a value is one of the words, or
 * of the form and within the limits of its key.
 */
#include "config/scalar.h"

#include "base/log.h"
#include "claim/name.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNT_BYTES_MAX (1 << 24) /* of the entry of a group with very many members */
#define WORD_TEXT_BYTES	  128

static const struct {
	const char *name;
	int64_t ms;
} units[] = {{"d", DAY}, {"h", HOUR}, {"m", MINUTE}, {"s", SECOND}, {"ms", 1}};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

#define WORD_LIST(...) ((const char *const[]){__VA_ARGS__})
#define WORDS(...)                                                                                 \
	.words = WORD_LIST(__VA_ARGS__), .count = sizeof(WORD_LIST(__VA_ARGS__)) / sizeof(char *)

/* The signals that on_lost and on_revoke may be: those that end a program, that end it for certain,
 * or that a program acts on. */
#define SIGNALS "SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGKILL", "SIGUSR1", "SIGUSR2"
static const int64_t signals[] = {0, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, SIGUSR1, SIGUSR2};

enum form { FORM_WORD, FORM_DURATION, FORM_NUMBER, FORM_MODE, FORM_ACCOUNT };

/* The value of a word is its place in the list, added to `first`, or the number in that place of
 * `numbers`. */
static const struct form_of_type {
	enum form form;
	size_t count;
	const char *const *words;
	const int64_t *numbers;
	int64_t first;
} forms[] = {
	[DURATION] = {.form = FORM_DURATION},
	[DURATION_OR_FOREVER] = {.form = FORM_DURATION, WORDS("forever"), .first = CONFIG_FOREVER},
	[DURATION_OR_AUTO] = {.form = FORM_DURATION, WORDS("auto"), .first = CONFIG_AUTO},
	[NUMBER] = {.form = FORM_NUMBER},
	[NUMBER_OR_AUTO] = {.form = FORM_NUMBER, WORDS("auto"), .first = CONFIG_AUTO},
	[MODE] = {.form = FORM_MODE},
	[MODE_OR_CREATOR] = {.form = FORM_MODE, WORDS("creator"), .first = CONFIG_CREATOR},
	[USER] = {.form = FORM_ACCOUNT, WORDS("creator"), .first = CONFIG_CREATOR},
	[GROUP] = {.form = FORM_ACCOUNT, WORDS("creator"), .first = CONFIG_CREATOR},
	[LOG_LEVEL] = {.form = FORM_WORD,
		       WORDS([LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning",
			     [LOG_LEVEL_INFO] = "info", [LOG_LEVEL_DEBUG] = "debug")},
	[YES_OR_NO] = {.form = FORM_WORD, WORDS("yes", "no"), .numbers = (const int64_t[]){1, 0}},
	[EIO_OR_SIGNAL] = {.form = FORM_WORD, WORDS("eio", SIGNALS), .numbers = signals},
	[NONE_OR_SIGNAL] = {.form = FORM_WORD, WORDS("none", SIGNALS), .numbers = signals},
	[RECIPE] = {.form = FORM_WORD, .words = claim_recipe_names, .count = CLAIM_RECIPES},
	[EXCLUSIVE_OPEN] =
		{.form = FORM_WORD,
		 WORDS([EXCLUSIVE_OPEN_WAIT] = "wait", [EXCLUSIVE_OPEN_REFUSE] = "refuse",
		       [EXCLUSIVE_OPEN_OPEN] = "open")},
	[STYLE] = {.form = FORM_WORD, WORDS([STYLE_LOCK] = "lock", [STYLE_FILE] = "file")},
	[FILE_OWNER] = {.form = FORM_WORD,
			WORDS([FILE_OWNER_HOST] = "host", [FILE_OWNER_PROCESS] = "process")},
	[STEAL] = {.form = FORM_WORD, WORDS([STEAL_YES] = "yes", [STEAL_NO] = "no")},
	[ACL] = {.form = FORM_WORD,
		 WORDS([STORE_ACL_AUTO] = "auto", [STORE_ACL_OPEN] = "open",
		       [STORE_ACL_CREATOR] = "creator", [STORE_ACL_PRIVATE] = "private")},
};

static void format_duration(int64_t ms, char *text, size_t text_bytes)
{
	size_t i = 0;

	while (i < UNIT_COUNT - 1 && (ms == 0 || ms % units[i].ms != 0))
		i++;
	snprintf(text, text_bytes, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
}

static void describe_duration(const struct config_key *key, char *text, size_t text_bytes)
{
	char min[32], max[32];

	format_duration(key->min, min, sizeof(min));
	format_duration(key->max, max, sizeof(max));
	snprintf(text, text_bytes, "a duration %s %s%s%s, a number with ms, s, m, h or d",
		 key->type == DURATION_OR_FOREVER ? "of at least" : "from", min,
		 key->type == DURATION_OR_FOREVER ? "" : " to ",
		 key->type == DURATION_OR_FOREVER ? "" : max);
}

/* As "a", "a or b", "a, b or c". */
static void list_words(const struct form_of_type *form, char *text, size_t text_bytes)
{
	*text = '\0';
	for (size_t i = 0; i < form->count; i++) {
		size_t used = strlen(text);
		const char *between = i == 0 ? "" : i + 1 < form->count ? ", " : " or ";
		snprintf(text + used, text_bytes - used, "%s%s", between, form->words[i]);
	}
}

void config_scalar_describe(const struct config_key *key, char *text, size_t text_bytes)
{
	const struct form_of_type *form = &forms[key->type];
	char words[WORD_TEXT_BYTES];

	list_words(form, words, sizeof(words));
	switch (form->form) {
	case FORM_DURATION:
		describe_duration(key, text, text_bytes);
		break;
	case FORM_NUMBER:
		snprintf(text, text_bytes, "a number from %" PRId64 " to %" PRId64, key->min,
			 key->max);
		break;
	case FORM_MODE:
		snprintf(text, text_bytes, "an octal mode from 0 to %#" PRIo64, key->max);
		break;
	case FORM_ACCOUNT:
		snprintf(text, text_bytes, "the name or number of a %s",
			 key->type == USER ? "user" : "group");
		break;
	default:
		snprintf(text, text_bytes, "%s", words);
		return;
	}
	size_t used = strlen(text);
	if (form->count > 0)
		snprintf(text + used, text_bytes - used, ", or %s", words);
}

static bool parse_word(const struct form_of_type *form, const char *text, int64_t *ret)
{
	for (size_t i = 0; i < form->count; i++) {
		if (strcmp(text, form->words[i]) == 0) {
			*ret = form->numbers != NULL ? form->numbers[i] : form->first + (int64_t)i;
			return true;
		}
	}
	return false;
}

/* Reads digits of the base. Returns where they end, or NULL if there are none or they are too many.
 */
static const char *parse_number(const char *text, int base, int64_t *ret)
{
	const char *digit = text;
	int64_t value = 0;

	for (; *digit >= '0' && *digit < '0' + base; digit++) {
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, *digit - '0', &value))
			return NULL;
	}
	if (digit == text)
		return NULL;
	*ret = value;
	return digit;
}

static bool parse_duration(const char *text, int64_t *ret_ms)
{
	int64_t number;
	const char *unit = parse_number(text, 10, &number);

	for (size_t i = 0; unit != NULL && i < UNIT_COUNT; i++) {
		if (strcmp(unit, units[i].name) == 0)
			return !__builtin_mul_overflow(number, units[i].ms, ret_ms);
	}
	return false;
}

/* Reads a number of the base and nothing behind it. */
static bool parse_plain(const char *text, int base, int64_t *ret)
{
	const char *end = parse_number(text, base, ret);

	return end != NULL && *end == '\0';
}

/* Looks the name of a user or group up. Returns 0, or the error of the look-up; -ENOENT: the name
 * is unknown. */
static int find_account(enum config_type type, const char *name, int64_t *ret)
{
	struct passwd user, *found_user = NULL;
	struct group group, *found_group = NULL;
	size_t bytes = 1024;
	char *buffer = NULL;
	int error = ERANGE;

	for (; error == ERANGE && bytes <= ACCOUNT_BYTES_MAX; bytes *= 2) {
		char *grown = realloc(buffer, bytes);

		if (grown == NULL) {
			error = ENOMEM;
			break;
		}
		buffer = grown;
		error = type == USER ? getpwnam_r(name, &user, buffer, bytes, &found_user)
				     : getgrnam_r(name, &group, buffer, bytes, &found_group);
	}
	if (found_user != NULL)
		*ret = user.pw_uid;
	else if (found_group != NULL)
		*ret = group.gr_gid;
	/* Some sources of names report an unknown name by an error of their own. */
	else if (error == 0 || error == ESRCH || error == EBADF || error == EPERM)
		error = ENOENT;
	free(buffer);
	return -error;
}

/* Reads a value that is none of the words. Returns 0; -EINVAL, or an error of find_account(). */
static int parse_form(const struct config_key *key, const char *text, int64_t *ret)
{
	bool valid = false;

	switch (forms[key->type].form) {
	case FORM_DURATION:
		valid = parse_duration(text, ret);
		break;
	case FORM_NUMBER:
		valid = parse_plain(text, 10, ret);
		break;
	case FORM_MODE:
		valid = parse_plain(text, 8, ret);
		break;
	case FORM_ACCOUNT:
		if (text[strspn(text, "0123456789")] != '\0')
			return find_account(key->type, text, ret);
		valid = parse_plain(text, 10, ret);
		break;
	default:
		break;
	}
	return valid && *ret >= key->min && *ret <= key->max ? 0 : -EINVAL;
}

int config_scalar_parse(const struct config_key *key, const char *text, int64_t *ret, char *why,
			size_t why_bytes)
{
	char expected[CONFIG_EXPECTED_BYTES];
	int64_t number = 0;
	int error =
		parse_word(&forms[key->type], text, &number) ? 0 : parse_form(key, text, &number);

	if (error == 0) {
		*ret = number;
		return 0;
	}
	if (error == -ENOMEM)
		return error;
	config_scalar_describe(key, expected, sizeof(expected));
	if (error == -ENOENT)
		snprintf(why, why_bytes, "no %s \"%s\" on this host, expected %s",
			 key->type == USER ? "user" : "group", text, expected);
	else if (error == -EINVAL)
		snprintf(why, why_bytes, "bad value \"%s\", expected %s", text, expected);
	else
		snprintf(why, why_bytes, "cannot look \"%s\" up (%s), expected %s", text,
			 strerror(-error), expected);
	return -EINVAL;
}
