/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text forms of the values of configuration keys. Must not know any key. Loop thread only.
 */
#include "config/value.h"
#include "base/log.h"
#include "base/off_limits.h"
#include "base/opener.h"
#include "claim/name.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATUS_DIRECTORY    ".dlockfs"
#define COMPONENT_BYTES_MAX 255
#define ACCOUNT_BYTES_MAX   (1 << 24) /* of the entry of a group with very many members */
#define UNITS		    "ms, s, m, h or d"

static const struct {
	const char *name;
	int64_t ms;
} units[] = {{"d", DAY}, {"h", HOUR}, {"m", MINUTE}, {"s", SECOND}, {"ms", 1}};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

static void format_duration(int64_t ms, char *text, size_t text_bytes)
{
	size_t i = 0;

	while (i < UNIT_COUNT - 1 && (ms == 0 || ms % units[i].ms != 0))
		i++;
	snprintf(text, text_bytes, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
}

void config_value_describe(const struct config_key *key, char *text, size_t text_bytes)
{
	char min[32], max[32];

	format_duration(key->min, min, sizeof(min));
	format_duration(key->max, max, sizeof(max));
	switch (key->type) {
	case DURATION:
		snprintf(text, text_bytes, "a duration from %s to %s, a number with " UNITS, min,
			 max);
		break;
	case DURATION_OR_FOREVER:
		snprintf(text, text_bytes,
			 "a duration of at least %s, a number with " UNITS ", or forever", min);
		break;
	case DURATION_OR_AUTO:
		snprintf(text, text_bytes,
			 "a duration from %s to %s, a number with " UNITS ", or auto", min, max);
		break;
	case NUMBER:
		snprintf(text, text_bytes, "a number from %" PRId64 " to %" PRId64, key->min,
			 key->max);
		break;
	case NUMBER_OR_AUTO:
		snprintf(text, text_bytes, "a number from %" PRId64 " to %" PRId64 ", or auto",
			 key->min, key->max);
		break;
	case LOG_LEVEL:
		snprintf(text, text_bytes, "error, warning, info or debug");
		break;
	case MODE:
		snprintf(text, text_bytes, "an octal mode from 0 to %#" PRIo64, key->max);
		break;
	case MODE_OR_CREATOR:
		snprintf(text, text_bytes, "an octal mode from 0 to %#" PRIo64 ", or creator",
			 key->max);
		break;
	case USER:
	case GROUP:
		snprintf(text, text_bytes, "the name or number of a %s, or creator",
			 key->type == USER ? "user" : "group");
		break;
	case YES_OR_NO:
		snprintf(text, text_bytes, "yes or no");
		break;
	case EIO_OR_SIGNAL:
	case NONE_OR_SIGNAL:
		snprintf(text, text_bytes,
			 "%s, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, SIGUSR1 or SIGUSR2",
			 key->type == EIO_OR_SIGNAL ? "eio" : "none");
		break;
	case RECIPE:
		snprintf(text, text_bytes,
			 "curator-rw, curator-mutex, kazoo, curator-any or plain");
		break;
	case EXCLUSIVE_OPEN:
		snprintf(text, text_bytes, "wait, refuse or open");
		break;
	case STYLE:
		snprintf(text, text_bytes, "lock or file");
		break;
	case FILE_OWNER:
		snprintf(text, text_bytes, "host or process");
		break;
	case STEAL:
		snprintf(text, text_bytes, "yes or no");
		break;
	case DIRECTORIES:
		snprintf(text, text_bytes, "paths below the mount, divided by blanks");
		break;
	case STORE_URL:
		snprintf(text, text_bytes, "%s", STORE_URL_FORMS);
		break;
	case ACL:
		snprintf(text, text_bytes, "auto, open, creator or private");
		break;
	case DIGEST_FILE:
	case TLS_FILE:
	case TLS_KEY_FILE:
	case PASSWORD_FILE:
		snprintf(text, text_bytes, "the absolute path of a file, or nothing");
		break;
	case WORD:
		snprintf(text, text_bytes, "a word, or nothing");
		break;
	}
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

	for (size_t i = 0; unit && i < UNIT_COUNT; i++) {
		if (strcmp(unit, units[i].name) == 0)
			return !__builtin_mul_overflow(number, units[i].ms, ret_ms);
	}
	return false;
}

/* Reads a number of the base and nothing behind it. */
static bool parse_plain(const char *text, int base, int64_t *ret)
{
	const char *end = parse_number(text, base, ret);

	return end && *end == '\0';
}

/* The signals that on_lost and on_revoke may be: those that end a program, that end it for certain,
 * or that a program acts on. */
static const struct {
	const char *name;
	int number;
} signals[] = {{"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},
	       {"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1},
	       {"SIGUSR2", SIGUSR2}};

#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

/* `none` is the word for no signal. */
static bool parse_signal(const char *text, const char *none, int64_t *ret)
{
	*ret = 0;
	if (strcmp(text, none) == 0)
		return true;
	for (size_t i = 0; i < SIGNAL_COUNT; i++) {
		if (strcmp(text, signals[i].name) == 0) {
			*ret = signals[i].number;
			return true;
		}
	}
	return false;
}

/* The value is the index of the word. */
static bool parse_word(const char *text, const char *const *words, size_t count, int64_t *ret)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, words[i]) == 0) {
			*ret = (int64_t)i;
			return true;
		}
	}
	return false;
}

static bool parse_log_level(const char *text, int64_t *ret)
{
	static const char *const words[] = {[LOG_LEVEL_ERROR] = "error",
					    [LOG_LEVEL_WARNING] = "warning",
					    [LOG_LEVEL_INFO] = "info",
					    [LOG_LEVEL_DEBUG] = "debug"};

	return parse_word(text, words, sizeof(words) / sizeof(words[0]), ret);
}

static bool parse_recipe(const char *text, int64_t *ret)
{
	return parse_word(text, claim_recipe_names, CLAIM_RECIPES, ret);
}

static bool parse_exclusive_open(const char *text, int64_t *ret)
{
	static const char *const words[] = {[EXCLUSIVE_OPEN_WAIT] = "wait",
					    [EXCLUSIVE_OPEN_REFUSE] = "refuse",
					    [EXCLUSIVE_OPEN_OPEN] = "open"};

	return parse_word(text, words, sizeof(words) / sizeof(words[0]), ret);
}

/* A word of the list that belongs to the type. */
static bool parse_choice(enum config_type type, const char *text, int64_t *ret)
{
	static const char *const styles[] = {[STYLE_LOCK] = "lock", [STYLE_FILE] = "file"};
	static const char *const owners[] = {
		[FILE_OWNER_HOST] = "host", [FILE_OWNER_PROCESS] = "process"};
	static const char *const answers[] = {[STEAL_YES] = "yes", [STEAL_NO] = "no"};
	const char *const *words = type == STYLE ? styles : type == FILE_OWNER ? owners : answers;

	return parse_word(text, words, 2, ret);
}

static bool parse_acl(const char *text, int64_t *ret)
{
	static const char *const words[] = {[STORE_ACL_AUTO] = "auto",
					    [STORE_ACL_OPEN] = "open",
					    [STORE_ACL_CREATOR] = "creator",
					    [STORE_ACL_PRIVATE] = "private"};

	return parse_word(text, words, sizeof(words) / sizeof(words[0]), ret);
}

bool config_is_path(const char *path)
{
	bool first = true;

	for (;; path++, first = false) {
		size_t bytes = strcspn(path, "/");

		if (bytes == 0 || bytes > COMPONENT_BYTES_MAX ||
		    (bytes <= 2 && strncmp(path, "..", bytes) == 0))
			return false;
		if (first && bytes == strlen(STATUS_DIRECTORY) &&
		    strncmp(path, STATUS_DIRECTORY, bytes) == 0)
			return false;
		path += bytes;
		if (*path == '\0')
			return true;
	}
}

void config_value_free_strings(char **strings)
{
	for (char **string = strings; string && *string; string++)
		free(*string);
	free(strings);
}

static int parse_directories(const char *text, char ***ret, char *why, size_t why_bytes)
{
	/* Each directory takes a byte and a blank at least; one more for the final NULL. */
	char **list = calloc(strlen(text) / 2 + 2, sizeof(*list));
	size_t count = 0;
	int error = list ? 0 : -ENOMEM;

	for (text += strspn(text, CONFIG_BLANKS); !error && *text;
	     text += strspn(text, CONFIG_BLANKS)) {
		size_t bytes = strcspn(text, CONFIG_BLANKS);

		list[count] = strndup(text, bytes);
		if (!list[count]) {
			error = -ENOMEM;
		} else if (strchr(list[count], ',')) {
			snprintf(why, why_bytes,
				 "a comma in \"%s\", expected paths divided by blanks alone",
				 list[count]);
			error = -EINVAL;
		} else if (!config_is_path(list[count])) {
			snprintf(why, why_bytes,
				 "bad directory \"%s\", expected a path like \"backup/daily\", not "
				 "\"/\", \".\", \"..\" or " STATUS_DIRECTORY,
				 list[count]);
			error = -EINVAL;
		}
		count++;
		text += bytes;
	}
	if (error) {
		config_value_free_strings(list);
		return error;
	}
	*ret = list;
	return 0;
}

static int set_directories(char ***target, const char *text, char *why, size_t why_bytes)
{
	char **list;
	int error = parse_directories(text, &list, why, why_bytes);

	if (error)
		return error;
	config_value_free_strings(*target);
	*target = list;
	return 0;
}

static int set_store(struct store_url *target, const char *text, char *why, size_t why_bytes)
{
	struct store_url url;
	int error = store_url_parse(text, &url, why, why_bytes);

	if (error)
		return error;
	store_url_finish(target);
	*target = url;
	return 0;
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

		if (!grown) {
			error = ENOMEM;
			break;
		}
		buffer = grown;
		error = type == USER ? getpwnam_r(name, &user, buffer, bytes, &found_user)
				     : getgrnam_r(name, &group, buffer, bytes, &found_group);
	}
	if (found_user)
		*ret = user.pw_uid;
	else if (found_group)
		*ret = group.gr_gid;
	/* Some sources of names report an unknown name by an error of their own. */
	else if (error == 0 || error == ESRCH || error == EBADF || error == EPERM)
		error = ENOENT;
	free(buffer);
	return -error;
}

static int set_account(const struct config_key *key, int64_t *target, const char *text, char *why,
		       size_t why_bytes)
{
	char expected[CONFIG_EXPECTED_BYTES];
	int64_t number = CONFIG_CREATOR;
	int error = 0;

	if (strcmp(text, "creator") != 0 && (!parse_plain(text, 10, &number) || number > key->max))
		error = text[strspn(text, "0123456789")] == '\0'
				? -EINVAL
				: find_account(key->type, text, &number);
	if (error == 0) {
		*target = number;
		return 0;
	}
	if (error == -ENOMEM)
		return error;
	config_value_describe(key, expected, sizeof(expected));
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

static int set_text(char **target, const char *text)
{
	char *copy = *text ? strdup(text) : NULL;

	if (*text && !copy)
		return -ENOMEM;
	free(*target);
	*target = copy;
	return 0;
}

/* Why a file cannot be read; NULL: it can. */
static const char *find_fault(const char *file)
{
	struct stat found;
	const char *wrong = NULL;
	int descriptor = opener_open(file, O_NONBLOCK | O_NOCTTY);

	if (descriptor < 0 || fstat(descriptor, &found) < 0)
		wrong = strerror(errno);
	else if (!S_ISREG(found.st_mode))
		wrong = "it is no plain file";
	if (descriptor >= 0)
		close(descriptor);
	return wrong;
}

/* Sets a file that a library for TLS reads. ZooKeeper's takes several names divided by commas,
 * and does not recover from a file that it cannot read. */
static int set_tls_file(char **target, bool is_key, const char *text, char *why, size_t why_bytes)
{
	const char *wrong = NULL;

	if (!*text)
		return set_text(target, text);
	if (off_limits_refuses(text, why, why_bytes))
		return -EINVAL;
	if (*text != '/')
		wrong = "it is relative";
	else if (strchr(text, ','))
		wrong = "it has a comma in its name";
	else if (!is_key)
		wrong = find_fault(text);
	if (wrong) {
		snprintf(why, why_bytes,
			 "bad file \"%s\": %s, expected the absolute path of a plain file", text,
			 wrong);
		return -EINVAL;
	}
	if (is_key && secret_check_file(text, why, why_bytes) < 0)
		return -EINVAL;
	return set_text(target, text);
}

/* Sets an absolute path: the daemon leaves the folder in which it was started, so a relative one
 * would lead nowhere. */
static int set_secret_file(struct secret_file *target, enum secret_form form, const char *text,
			   char *why, size_t why_bytes)
{
	struct secret_file fresh = {0};
	int error = 0;

	if (*text && *text != '/') {
		snprintf(why, why_bytes, "bad file \"%s\", expected an absolute path", text);
		return -EINVAL;
	}
	if (*text)
		error = secret_read(text, form, &fresh.secret, why, why_bytes);
	if (!error && *text && !(fresh.file = strdup(text)))
		error = -ENOMEM;
	if (error) {
		secret_destroy(fresh.secret);
		return error == -ENOMEM ? error : -EINVAL;
	}
	free(target->file);
	secret_destroy(target->secret);
	*target = fresh;
	return 0;
}

/* Reads a value of a type that is stored as a number, within its limits. */
static bool parse_number_value(const struct config_key *key, const char *text, int64_t *ret)
{
	bool valid;

	switch (key->type) {
	case MODE_OR_CREATOR:
		if (strcmp(text, "creator") == 0) {
			*ret = CONFIG_CREATOR;
			return true;
		}
		valid = parse_plain(text, 8, ret);
		break;
	case MODE:
		valid = parse_plain(text, 8, ret);
		break;
	case NUMBER:
		valid = parse_plain(text, 10, ret);
		break;
	case YES_OR_NO:
		*ret = strcmp(text, "yes") == 0;
		valid = *ret || strcmp(text, "no") == 0;
		break;
	case LOG_LEVEL:
		return parse_log_level(text, ret);
	case ACL:
		return parse_acl(text, ret);
	case EIO_OR_SIGNAL:
		return parse_signal(text, "eio", ret);
	case NONE_OR_SIGNAL:
		return parse_signal(text, "none", ret);
	case RECIPE:
		return parse_recipe(text, ret);
	case EXCLUSIVE_OPEN:
		return parse_exclusive_open(text, ret);
	case STYLE:
	case FILE_OWNER:
	case STEAL:
		return parse_choice(key->type, text, ret);
	case DURATION_OR_FOREVER:
		if (strcmp(text, "forever") == 0) {
			*ret = CONFIG_FOREVER;
			return true;
		}
		valid = parse_duration(text, ret);
		break;
	case DURATION_OR_AUTO:
	case NUMBER_OR_AUTO:
		if (strcmp(text, "auto") == 0) {
			*ret = CONFIG_AUTO;
			return true;
		}
		valid = key->type == NUMBER_OR_AUTO ? parse_plain(text, 10, ret)
						    : parse_duration(text, ret);
		break;
	default:
		valid = parse_duration(text, ret);
		break;
	}
	return valid && *ret >= key->min && *ret <= key->max;
}

int config_value_set(const struct config_key *key, void *target, const char *text, char *why,
		     size_t why_bytes)
{
	char expected[CONFIG_EXPECTED_BYTES];
	void *member = (char *)target + key->offset;
	int64_t number;

	if (key->type == DIRECTORIES)
		return set_directories(member, text, why, why_bytes);
	if (key->type == STORE_URL)
		return set_store(member, text, why, why_bytes);
	if (key->type == USER || key->type == GROUP)
		return set_account(key, member, text, why, why_bytes);
	if (key->type == DIGEST_FILE || key->type == PASSWORD_FILE)
		return set_secret_file(member,
				       key->type == DIGEST_FILE ? SECRET_DIGEST : SECRET_PASSWORD,
				       text, why, why_bytes);
	if (key->type == TLS_FILE || key->type == TLS_KEY_FILE)
		return set_tls_file(member, key->type == TLS_KEY_FILE, text, why, why_bytes);
	if (key->type == WORD)
		return set_text(member, text);

	if (!parse_number_value(key, text, &number)) {
		config_value_describe(key, expected, sizeof(expected));
		snprintf(why, why_bytes, "bad value \"%s\", expected %s", text, expected);
		return -EINVAL;
	}
	if (key->type == MODE)
		*(mode_t *)member = (mode_t)number;
	else if (key->type == YES_OR_NO)
		*(bool *)member = number != 0;
	else
		*(int64_t *)member = number;
	return 0;
}

size_t config_value_bytes(const struct config_key *key)
{
	switch (key->type) {
	case MODE:
		return sizeof(mode_t);
	case YES_OR_NO:
		return sizeof(bool);
	case DIRECTORIES:
		return sizeof(char **);
	default:
		return sizeof(int64_t);
	}
}

static bool text_equal(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool secret_file_equal(const struct secret_file *a, const struct secret_file *b)
{
	return text_equal(a->file, b->file) && secret_equal(a->secret, b->secret);
}

bool config_value_equal(const struct config_key *key, const void *a, const void *b)
{
	a = (const char *)a + key->offset;
	b = (const char *)b + key->offset;
	switch (key->type) {
	case STORE_URL:
		return store_url_equal(a, b);
	case DIGEST_FILE:
	case PASSWORD_FILE:
		return secret_file_equal(a, b);
	case TLS_FILE:
	case TLS_KEY_FILE:
	case WORD:
		return text_equal(*(char *const *)a, *(char *const *)b);
	default:
		return memcmp(a, b, config_value_bytes(key)) == 0;
	}
}
