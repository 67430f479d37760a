/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the text forms of the values of configuration keys. Must not know any key. Loop thread only.
 */
#include "config/value.h"
#include "base/address.h"
#include "base/off_limits.h"
#include "base/opener.h"
#include "config/scalar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if HAVE_PEERS
const bool config_can_have_peers = true;
#else
const bool config_can_have_peers = false;
#endif

#define STATUS_DIRECTORY    ".dlockfs"
#define COMPONENT_BYTES_MAX 255

void config_value_describe(const struct config_key *key, char *text, size_t text_bytes)
{
	switch (key->type) {
	case DIRECTORIES:
		snprintf(text, text_bytes, "paths below the mount, divided by blanks");
		break;
	case STORE_URL:
		snprintf(text, text_bytes, "%s", STORE_URL_FORMS);
		break;
	case DIGEST_FILE:
	case TLS_FILE:
	case TLS_KEY_FILE:
	case PASSWORD_FILE:
		snprintf(text, text_bytes, "the absolute path of a file, or nothing");
		break;
	case ADDRESS:
		snprintf(text, text_bytes, "an address of this host, or nothing");
		break;
	case WORD:
		snprintf(text, text_bytes, "a word, or nothing");
		break;
	default:
		config_scalar_describe(key, text, text_bytes);
		break;
	}
}

bool config_value_is_list(const struct config_key *key)
{
	return key->type == DIRECTORIES || key->type == STORE_URL;
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
	for (char **string = strings; string != NULL && *string != NULL; string++)
		free(*string);
	free(strings);
}

static int parse_directories(const char *text, char ***ret, char *why, size_t why_bytes)
{
	/* Each directory takes a byte and a blank at least; one more for the final NULL. */
	char **list = calloc(strlen(text) / 2 + 2, sizeof(*list));
	size_t count = 0;
	int error = list != NULL ? 0 : -ENOMEM;

	for (text += strspn(text, CONFIG_BLANKS); !error && *text;
	     text += strspn(text, CONFIG_BLANKS)) {
		size_t bytes = strcspn(text, CONFIG_BLANKS);

		list[count] = strndup(text, bytes);
		if (list[count] == NULL) {
			error = -ENOMEM;
		} else if (strchr(list[count], ',') != NULL) {
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

static int set_text(char **target, const char *text)
{
	char *copy = *text ? strdup(text) : NULL;

	if (*text && copy == NULL)
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
	else if (strchr(text, ',') != NULL)
		wrong = "it has a comma in its name";
	else if (!is_key)
		wrong = find_fault(text);
	if (wrong != NULL) {
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
	if (!error && *text && (fresh.file = strdup(text)) == NULL)
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

/* Sets the address that other hosts are told: no name, which would have to be looked up, and none
 * of many interfaces, of which others do not know which one they reach. */
static int set_address(char **target, const char *text, char *why, size_t why_bytes)
{
	union address address;
	const char *fault = NULL;

	if (*text && !config_can_have_peers) {
		snprintf(why, why_bytes,
			 "this build has no OpenSSL, expected the key to be left out");
		return -EINVAL;
	}
	if (*text && !address_parse(text, CONFIG_PEERS_PORT, &address))
		fault = "no numeric address";
	else if (*text)
		fault = address_fault(&address);
	if (fault != NULL) {
		snprintf(why, why_bytes,
			 "bad address \"%s\": it is %s, expected the address of this host that "
			 "other hosts reach, such as 10.0.0.7, 10.0.0.7:%d or [2001:db8::7]",
			 text, fault, CONFIG_PEERS_PORT);
		return -EINVAL;
	}
	return set_text(target, text);
}

/* Sets a value that is stored as a number. */
static int set_scalar(const struct config_key *key, void *target, const char *text, char *why,
		      size_t why_bytes)
{
	int64_t number;
	int error = config_scalar_parse(key, text, &number, why, why_bytes);

	if (error)
		return error;
	if (key->type == MODE)
		*(mode_t *)target = (mode_t)number;
	else if (key->type == YES_OR_NO)
		*(bool *)target = number != 0;
	else
		*(int64_t *)target = number;
	return 0;
}

int config_value_set(const struct config_key *key, void *target, const char *text, char *why,
		     size_t why_bytes)
{
	void *member = (char *)target + key->offset;

	switch (key->type) {
	case DIRECTORIES:
		return set_directories(member, text, why, why_bytes);
	case STORE_URL:
		return set_store(member, text, why, why_bytes);
	case DIGEST_FILE:
		return set_secret_file(member, SECRET_DIGEST, text, why, why_bytes);
	case PASSWORD_FILE:
		return set_secret_file(member, SECRET_PASSWORD, text, why, why_bytes);
	case TLS_FILE:
	case TLS_KEY_FILE:
		return set_tls_file(member, key->type == TLS_KEY_FILE, text, why, why_bytes);
	case ADDRESS:
		return set_address(member, text, why, why_bytes);
	case WORD:
		return set_text(member, text);
	default:
		return set_scalar(key, member, text, why, why_bytes);
	}
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
	return a != NULL && b != NULL ? strcmp(a, b) == 0 : a == b;
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
	case ADDRESS:
	case WORD:
		return text_equal(*(char *const *)a, *(char *const *)b);
	default:
		return memcmp(a, b, config_value_bytes(key)) == 0;
	}
}
