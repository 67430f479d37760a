/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the form of keys and names; keys.h has it.
 */
#include "stores/etcd/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "claim/file_path.h"

#define READ	"read/"
#define WRITE	"write/"
#define DATA	"/data"
#define HELD	ETCD_PRIVATE "held/"
#define SESSION ETCD_PRIVATE "sessions/"
#define MARK	ETCD_PRIVATE "settled"
#define TOKENS	ETCD_PRIVATE "tokens"

enum { NUMBER_BYTES = 21 }; /* of 64 bits with its sign, and the final NUL */

/* Between what another client's key has and the number. */
#define MUTEX_TAG "-mutex-"
#define READ_TAG  "-read-"
#define WRITE_TAG "-write-"

/* Puts texts together: the root, what stands between, the path in its plain form, and others. */
#define join_below(ret, root, between, path, ...)                                                  \
	join_below_texts(ret, root, between, path, (const char *const[]){__VA_ARGS__, NULL})

static bool join_below_texts(struct etcd_key *ret, const char *root, const char *between,
			     const char *path, const char *const *texts)
{
	size_t room = strlen(root) + strlen(between) + strlen(path) + 1;
	char *at;

	for (size_t i = 0; texts[i] != NULL; i++)
		room += strlen(texts[i]);
	*ret = (struct etcd_key){.bytes = malloc(room)};
	if (ret->bytes == NULL)
		return false;
	at = file_path_put_plain(stpcpy(stpcpy(ret->bytes, root), between), path);
	for (size_t i = 0; texts[i] != NULL; i++)
		at = stpcpy(at, texts[i]);
	ret->count = (size_t)(at - ret->bytes);
	return true;
}

/* Of texts alone. */
#define join(ret, ...) join_below(ret, "", "", "", __VA_ARGS__)

static const char *between(const char *root)
{
	return *root ? "/" : "";
}

static const char *between_held(const char *root)
{
	return &HELD[!*root];
}

bool etcd_key_of_queue(struct etcd_key *ret, const char *root, const char *path)
{
	return join_below(ret, root, between(root), path, *path ? "/" : "");
}

bool etcd_key_of_file(struct etcd_key *ret, const char *root, const char *path)
{
	return join_below(ret, root, between(root), path, "");
}

bool etcd_key_of_markers(struct etcd_key *ret, const char *root, const char *path)
{
	return join_below(ret, root, between_held(root), path, "/");
}

enum { SLOT_BYTES = 24 }; /* a session, a dot, a number and the final NUL */

static void format_slot(char text[SLOT_BYTES], const struct claim_name *name)
{
	snprintf(text, SLOT_BYTES, "%016" PRIx64 ".%u", name->id.session, name->slot);
}

bool etcd_key_of_marker(struct etcd_key *ret, const char *root, const char *path,
			const struct claim_name *name)
{
	char slot[SLOT_BYTES];

	format_slot(slot, name);
	return join_below(ret, root, between_held(root), path, "/", slot);
}

bool etcd_key_of_slots(struct etcd_key *ret, const char *root, const char *path, uint64_t session,
		       enum claim_mode mode)
{
	char text[SLOT_BYTES];

	snprintf(text, sizeof(text), "%016" PRIx64 ".", session);
	return join_below(ret, root, between(root), path, "/", mode == CLAIM_SHARED ? READ : WRITE,
			  text);
}

bool etcd_key_of_marked_slots(struct etcd_key *ret, const char *root, const char *path,
			      uint64_t session)
{
	char text[SLOT_BYTES];

	snprintf(text, sizeof(text), "%016" PRIx64 ".", session);
	return join_below(ret, root, between_held(root), path, "/", text);
}

uint16_t etcd_key_slot(const char *rest, size_t bytes)
{
	unsigned slot = 0;

	for (size_t i = 0; i < bytes && rest[i] >= '0' && rest[i] <= '9' && slot <= UINT16_MAX; i++)
		slot = 10 * slot + (unsigned)(rest[i] - '0');
	return slot <= UINT16_MAX ? (uint16_t)slot : 0;
}

bool etcd_key_of_session(struct etcd_key *ret, const char *root, int64_t lease)
{
	char number[17];

	snprintf(number, sizeof(number), "%016" PRIx64, (uint64_t)lease);
	return join(ret, root, &SESSION[!*root], number);
}

bool etcd_key_of_mark(struct etcd_key *ret, const char *root)
{
	return join(ret, root, &MARK[!*root]);
}

bool etcd_key_of_tokens(struct etcd_key *ret, const char *root)
{
	return join(ret, root, &TOKENS[!*root]);
}

bool etcd_key_of_new(struct etcd_key *ret, const char *root, const char *path,
		     const struct claim_name *name)
{
	char slot[SLOT_BYTES];

	format_slot(slot, name);
	return join_below(ret, root, between(root), path, "/",
			  name->mode == CLAIM_SHARED ? READ : WRITE, slot);
}

/* Puts the bytes that a name's text stands for behind `count` others. Returns false, if no text
 * is ever encoded so. */
static bool decode(struct etcd_key *key, const char *text, size_t bytes)
{
	ssize_t decoded = escape_decode(key->bytes + key->count, text, bytes);

	if (decoded >= 0)
		key->count += (size_t)decoded;
	return decoded >= 0;
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
	if (!join_below(&named.key, root, between(root), path, "/", folder, name))
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
	parts.order = order;
	named.order = order;
	named.is_ours = true;
	named.parts = parts;
	if (parts.slot == 0 || !etcd_key_of_new(&named.key, root, path, &parts))
		named.key.bytes = NULL;
	return named;
}

bool etcd_key_end(struct etcd_key *ret, const struct etcd_key *key)
{
	size_t count = key->count;

	*ret = (struct etcd_key){malloc(count + 2), 0};
	if (ret->bytes == NULL)
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

bool etcd_key_of_clock(struct etcd_key *ret, const struct etcd_key *marker)
{
	return join(ret, marker->bytes, "/clock");
}

bool etcd_key_end_of_claim(struct etcd_key *ret, const struct etcd_key *claim)
{
	return join(ret, claim->bytes, "0"); /* the character behind '/' */
}

bool etcd_key_is_data(const char *rest, size_t bytes)
{
	return ends_in(rest, bytes, DATA);
}

bool etcd_key_is_data_alone(const char *rest, size_t bytes)
{
	return bytes == strlen(DATA) && memcmp(rest, DATA, bytes) == 0;
}

/* Encodes what another client's key has. NULL: out of memory. */
static char *format_other(const char *text, size_t bytes, const char *tag, int64_t revision)
{
	char *name = malloc(3 * bytes + strlen(tag) + NUMBER_BYTES);
	char *at = name;

	for (size_t i = 0; name != NULL && i < bytes; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c > ' ' && c < 0x7f && c != '%' && c != '/')
			*at++ = (char)c;
		else
			at = escape_put(at, c);
	}
	if (name != NULL)
		sprintf(at, "%s%010" PRId64, tag, revision);
	return name;
}

static bool begins_with(const char *text, size_t bytes, const char *begin)
{
	return bytes > strlen(begin) && memcmp(text, begin, strlen(begin)) == 0;
}

/* Where the part of the key that other clients choose begins, and what they do with it. */
struct folder {
	size_t bytes;
	const char *tag;
	enum claim_mode mode;
};

static struct folder find_folder(const char *rest, size_t bytes)
{
	if (begins_with(rest, bytes, READ))
		return (struct folder){strlen(READ), READ_TAG, CLAIM_SHARED};
	if (begins_with(rest, bytes, WRITE))
		return (struct folder){strlen(WRITE), WRITE_TAG, CLAIM_EXCLUSIVE};
	return (struct folder){0, MUTEX_TAG, CLAIM_EXCLUSIVE};
}

bool etcd_key_is_claim(const char *rest, size_t bytes)
{
	size_t folder = find_folder(rest, bytes).bytes;

	return bytes > folder && memchr(rest + folder, '/', bytes - folder) == NULL;
}

/* How many bytes of a value are its first line, without its end. */
static size_t value_line(const char *value, size_t bytes)
{
	const char *end = bytes > 0 ? memchr(value, '\n', bytes) : NULL;

	return end != NULL ? (size_t)(end - value) : bytes;
}

char *etcd_key_claim_value(const struct claim_name *claim)
{
	char line[CLAIM_NAME_PREFIX_BYTES], *value;

	claim_name_format(line, claim);
	return asprintf(&value, "%s\n", line) < 0 ? NULL : value;
}

/* The first line of a file's value. */
#define MADE	"made="
#define CHANGED "changed="

char *etcd_key_file_value(const char *text, int64_t now_ms, bool is_new)
{
	char *value;

	return asprintf(&value, "%s%" PRId64 "\n%s", is_new ? MADE : CHANGED, now_ms, text) < 0
		       ? NULL
		       : value;
}

size_t etcd_key_file_parse(const char *value, size_t bytes, int64_t *ret_ms, bool *ret_is_new)
{
	size_t line = value_line(value, bytes), at;
	bool is_new = begins_with(value, line, MADE);
	int64_t ms = 0;

	if (line == bytes || (!is_new && !begins_with(value, line, CHANGED)))
		return 0;
	at = is_new ? strlen(MADE) : strlen(CHANGED);
	if (line - at > 18)
		return 0;
	for (; at < line; at++) {
		if (value[at] < '0' || value[at] > '9')
			return 0;
		ms = 10 * ms + (value[at] - '0');
	}
	*ret_ms = ms;
	*ret_is_new = is_new;
	return line + 1;
}

static size_t count_digits(const char *text, size_t bytes, const char *digits)
{
	size_t count = 0;

	while (count < bytes && text[count] && strchr(digits, text[count]) != NULL)
		count++;
	return count;
}

/* What dlockfs, and RWMutex, have behind "read/" and "write/". */
static bool is_placed(const char *text, size_t bytes)
{
	const size_t session_bytes = 16, time_bytes = 19;

	if (bytes == time_bytes && count_digits(text, bytes, "0123456789") == bytes)
		return true;
	return bytes > session_bytes + 1 && text[session_bytes] == '.' &&
	       count_digits(text, bytes, "0123456789abcdef") == session_bytes &&
	       count_digits(text + session_bytes + 1, bytes - session_bytes - 1, "0123456789") ==
		       bytes - session_bytes - 1;
}

static bool is_text(const char *bytes, size_t count, const char *text)
{
	return count == strlen(text) && memcmp(bytes, text, count) == 0;
}

static bool is_folder(const char *text, size_t bytes, const char *folder)
{
	return bytes >= strlen(folder) &&
	       memcmp(text + bytes - strlen(folder), folder, strlen(folder)) == 0 &&
	       (bytes == strlen(folder) || text[bytes - strlen(folder) - 1] == '/');
}

bool etcd_key_is_of_lock(const char *rest, size_t bytes, int64_t lease)
{
	const char *slash;
	const char *stripped;
	char mutex[17];
	size_t folder;

	if (etcd_key_is_data(rest, bytes))
		bytes -= strlen(DATA);
	slash = memrchr(rest, '/', bytes);
	folder = slash != NULL ? (size_t)(slash - rest) + 1 : 0;
	snprintf(mutex, sizeof(mutex), "%016" PRIx64, (uint64_t)lease);
	stripped = mutex + strspn(mutex, "0");
	if (lease != 0 && (is_text(rest + folder, bytes - folder, mutex) ||
			   is_text(rest + folder, bytes - folder, stripped)))
		return true;
	return (is_folder(rest, folder, READ) || is_folder(rest, folder, WRITE)) &&
	       is_placed(rest + folder, bytes - folder);
}

/* Whether the value is that of the claim of dlockfs that has this key. */
static bool is_ours(const char *rest, size_t bytes, const char *value, size_t value_bytes,
		    struct claim_name *ret)
{
	char slot[SLOT_BYTES];

	if (value_bytes == 0 ||
	    !claim_name_parse_prefix(value, value_line(value, value_bytes), ret) || ret->slot == 0)
		return false;
	format_slot(slot, ret);
	return bytes == strlen(slot) && memcmp(rest, slot, bytes) == 0;
}

char *etcd_key_claim_parse(const char *rest, size_t bytes, const char *value, size_t value_bytes,
			   int64_t revision, struct claim_name *ret)
{
	struct folder folder = find_folder(rest, bytes);
	bool is_new;
	int64_t ms;
	char *name;

	if (revision <= 0 || !etcd_key_is_claim(rest, bytes) ||
	    etcd_key_file_parse(value, value_bytes, &ms, &is_new) > 0)
		return NULL;
	rest += folder.bytes;
	bytes -= folder.bytes;
	if (folder.bytes > 0 && is_ours(rest, bytes, value, value_bytes, ret) &&
	    ret->mode == folder.mode) {
		ret->order = revision;
		name = malloc(CLAIM_NAME_BYTES);
		if (name != NULL)
			claim_name_format_placed(name, ret);
		return name;
	}
	*ret = (struct claim_name){
		.span = CLAIM_SPAN_WHOLE,
		.mode = folder.mode,
		.order = revision,
	};
	return format_other(rest, bytes, folder.tag, revision);
}
