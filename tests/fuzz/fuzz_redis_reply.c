/* SPDX-License-Identifier: Apache-2.0
 *
 * Replies of a Redis server, which may be any bytes, in pieces as long as the first byte says: each
 * is one that there is room for, or the end; and what INFO and errors have in them is read.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "stores/redis/wire/info.h"
#include "stores/redis/wire/reply.h"
#include "stores/redis/wire/word.h"

static void check_value(const struct reply_value *value)
{
	struct info info;
	bool has_text = value->kind == REPLY_STATUS || value->kind == REPLY_ERROR ||
			value->kind == REPLY_STRING;

	REQUIRE(has_text == (value->text != NULL));
	if (!has_text)
		return;
	REQUIRE(value->bytes <= REPLY_BYTES_MAX && value->text[value->bytes] == '\0');
	info_read(&info, value->text);
	REQUIRE(memchr(info.version, '\0', sizeof(info.version)));
	word_find(value->text);
	word_is_noscript(value->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reply_reader *reader = reply_reader_create();
	size_t piece = size > 0 && data[0] > 0 ? data[0] : 1;
	int error = 0;

	REQUIRE(reader);
	for (size_t at = 1; at < size && !error; at += piece) {
		const struct reply *reply = NULL;

		error = reply_reader_give(reader, (const char *)data + at,
					  piece < size - at ? piece : size - at);
		while (!error && (error = reply_reader_take(reader, &reply)) == 0 && reply) {
			REQUIRE(reply->count <= REPLY_ELEMENTS_MAX);
			check_value(&reply->value);
			for (size_t i = 0; i < reply->count; i++)
				check_value(&reply->elements[i]);
		}
	}
	REQUIRE(error == 0 || error == -EPROTO || error == -ENOMEM);
	reply_reader_destroy(reader);
	return 0;
}
