/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the form of keys and names; keys.h has it.
 */
#include "stores/etcd/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ	"read/"
#define WRITE	"write/"
#define DATA	"/data"
#define HELD	ETCD_PRIVATE "held/"
#define SESSION ETCD_PRIVATE "sessions/"

/* Between what another client's key has and the number. */
#define MUTEX_TAG "-mutex-"
#define READ_TAG  "-read-"
#define WRITE_TAG "-write-"

/* Puts texts together. */
#define join(ret, ...) join_texts(ret, (const char *const[]){__VA_ARGS__, NULL})

static bool join_texts(struct etcd_key *ret, const char *const *texts)
{
	size_t count = 0;
	char *at;

	for (size_t i = 0; texts[i]; i++)
		count += strlen(texts[i]);
	*ret = (struct etcd_key){malloc(count + 1), count};
	if (!ret->bytes)
		return false;
	at = ret->bytes;
	*at = '\0';
	for (size_t i = 0; texts[i]; i++)
		at = stpcpy(at, texts[i]);
	return true;
}

bool etcd_key_of_queue(struct etcd_key *ret, const char *root, const char *path)
{
	return join(ret, root, *root ? "/" : "", path, *path ? "/" : "");
}

bool etcd_key_of_markers(struct etcd_key *ret, const char *root, const char *path)
{
	return join(ret, root, &HELD[!*root], path, "/");
}

bool etcd_key_of_marker(struct etcd_key *ret, const char *root, const char *path, const char *name)
{
	return join(ret, root, &HELD[!*root], path, "/", name);
}

bool etcd_key_of_session(struct etcd_key *ret, const char *root, int64_t lease)
{
	char number[17];

	snprintf(number, sizeof(number), "%016" PRIx64, (uint64_t)lease);
	return join(ret, root, &SESSION[!*root], number);
}

bool etcd_key_of_new(struct etcd_key *ret, const char *root, const char *path,
		     const struct claim_name *name)
{
	char prefix[CLAIM_NAME_PREFIX_BYTES];

	claim_name_format(prefix, name);
	return join(ret, root, *root ? "/" : "", path, "/",
		    name->mode == CLAIM_SHARED ? READ : WRITE, prefix);
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789ABCDEF";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Puts the bytes that a name's text stands for behind `count` others. Returns false, if no text
 * is ever encoded so. */
static bool decode(struct etcd_key *key, const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		char c = text[i];

		if (c == '%') {
			int high = i + 2 < bytes ? hex_digit(text[i + 1]) : -1;
			int low = high < 0 ? -1 : hex_digit(text[i + 2]);

			if (low < 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		key->bytes[key->count++] = c;
	}
	key->bytes[key->count] = '\0';
	return true;
}

static bool ends_in(const char *text, size_t bytes, const char *end)
{
	size_t end_bytes = strlen(end);

	return bytes > end_bytes && memcmp(text + bytes - end_bytes, end, end_bytes) == 0;
}

/* The number at the end of a name: ten digits or more, of which more than ten do not begin with a
 * zero. Returns where it begins; 0: there is none. */
static size_t find_number(const char *name, int64_t *ret)
{
	size_t bytes = strlen(name), at = bytes;
	const char *end;

	while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9' && bytes - at < 19)
		at--;
	if (bytes - at < 10 || (bytes - at > 10 && name[at] == '0'))
		return 0;
	end = name + at;
	*ret = 0;
	for (; *end; end++) {
		if (__builtin_mul_overflow(*ret, 10, ret) ||
		    __builtin_add_overflow(*ret, *end - '0', ret))
			return 0;
	}
	return at;
}

static struct etcd_named named_of_other(const char *root, const char *path, const char *name,
					size_t at, int64_t order)
{
	struct etcd_named named = {.order = order};
	const char *folder;
	size_t bytes;

	if (ends_in(name, at, MUTEX_TAG)) {
		folder = "";
		bytes = at - strlen(MUTEX_TAG);
	} else if (ends_in(name, at, READ_TAG)) {
		folder = READ;
		bytes = at - strlen(READ_TAG);
	} else if (ends_in(name, at, WRITE_TAG)) {
		folder = WRITE;
		bytes = at - strlen(WRITE_TAG);
	} else {
		return named;
	}
	/* The name makes room for what is decoded. */
	if (!join(&named.key, root, *root ? "/" : "", path, "/", folder, name))
		return named;
	named.key.count -= strlen(name);
	if (!decode(&named.key, name, bytes)) {
		free(named.key.bytes);
		named.key = (struct etcd_key){0};
	}
	return named;
}

struct etcd_named etcd_key_of_claim(const char *root, const char *path, const char *name)
{
	struct etcd_named named = {0};
	struct claim_name parts;
	int64_t order;
	size_t at = find_number(name, &order);

	if (at == 0)
		return named;
	if (!claim_name_parse_prefix(name, at, &parts))
		return named_of_other(root, path, name, at, order);
	named.order = order;
	named.is_ours = true;
	if (!etcd_key_of_new(&named.key, root, path, &parts))
		named.key.bytes = NULL;
	return named;
}

bool etcd_key_end(struct etcd_key *ret, const struct etcd_key *key)
{
	size_t count = key->count;

	*ret = (struct etcd_key){malloc(count + 2), 0};
	if (!ret->bytes)
		return false;
	memcpy(ret->bytes, key->bytes, count);
	while (count > 0 && (unsigned char)ret->bytes[count - 1] == 0xff)
		count--;
	if (count > 0)
		ret->bytes[count - 1]++;
	else
		ret->bytes[count++] = '\0'; /* all keys */
	ret->bytes[count] = '\0';
	ret->count = count;
	return true;
}

bool etcd_key_of_data(struct etcd_key *ret, const struct etcd_key *claim)
{
	return join(ret, claim->bytes, DATA);
}

bool etcd_key_end_of_claim(struct etcd_key *ret, const struct etcd_key *claim)
{
	return join(ret, claim->bytes, "0"); /* the character behind '/' */
}

bool etcd_key_is_data(const char *rest, size_t bytes)
{
	return ends_in(rest, bytes, DATA);
}

/* Encodes what another client's key has. NULL: out of memory. */
static char *format_other(const char *text, size_t bytes, const char *tag, int64_t revision)
{
	char *name = malloc(3 * bytes + strlen(tag) + 20);
	char *at = name;

	for (size_t i = 0; name && i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > ' ' && c < 0x7f && c != '%' && c != '/')
			*at++ = (char)c;
		else
			at += sprintf(at, "%%%02X", c);
	}
	if (name)
		sprintf(at, "%s%010" PRId64, tag, revision);
	return name;
}

static bool begins_with(const char *text, size_t bytes, const char *begin)
{
	return bytes > strlen(begin) && memcmp(text, begin, strlen(begin)) == 0;
}

char *etcd_claim_parse(const char *rest, size_t bytes, int64_t revision, struct claim_name *ret)
{
	const char *tag = MUTEX_TAG;
	enum claim_mode mode = CLAIM_EXCLUSIVE;
	char *name;

	if (begins_with(rest, bytes, READ)) {
		tag = READ_TAG;
		mode = CLAIM_SHARED;
		rest += strlen(READ);
		bytes -= strlen(READ);
	} else if (begins_with(rest, bytes, WRITE)) {
		tag = WRITE_TAG;
		rest += strlen(WRITE);
		bytes -= strlen(WRITE);
	}
	if (bytes == 0 || memchr(rest, '/', bytes))
		return NULL;
	if (strcmp(tag, MUTEX_TAG) != 0 && claim_name_parse_prefix(rest, bytes, ret) &&
	    ret->mode == mode) {
		ret->order = revision;
		name = malloc(CLAIM_NAME_BYTES);
		if (name)
			claim_name_format_placed(name, ret);
		return name;
	}
	*ret = (struct claim_name){
		.span = CLAIM_SPAN_WHOLE,
		.mode = mode,
		.order = revision,
	};
	return format_other(rest, bytes, tag, revision);
}
