/* SPDX-License-Identifier: Apache-2.0
 *
 * Escaped values: what is written is one, fits, and says the beginning of the text; to a stream,
 * all of it.
 */
#include "fuzz.h"

#include "base/escape.h"

/* Whether the value means the first bytes of the text; returns how many. */
static size_t check_means(const char *value, const char *text)
{
	size_t count = 0;

	for (; *value; count++) {
		unsigned byte = (unsigned char)*value;

		if (*value == '%') {
			REQUIRE(sscanf(value, "%%%2X", &byte) == 1);
			value += 3;
		} else {
			value++;
		}
		REQUIRE((unsigned char)text[count] == byte && byte != 0);
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	size_t room = 1 + (size_t)fuzz_byte(&data, &bytes), written_bytes;
	char *text = fuzz_text(data, bytes), *value = malloc(room), *written;
	FILE *out = open_memstream(&written, &written_bytes);

	REQUIRE(value && out);
	escape_format(value, room, text);
	REQUIRE(strnlen(value, room) < room);
	REQUIRE(*value == '\0' || escape_is_valid(value, strlen(value)));
	check_means(value, text);

	escape_write(out, text);
	fclose(out);
	REQUIRE(check_means(written, text) == strlen(text));
	REQUIRE(escape_is_valid(written, written_bytes) == (written_bytes > 0));
	REQUIRE(strncmp(written, value, strlen(value)) == 0);

	REQUIRE(escape_decode(written, written, written_bytes) == (ssize_t)strlen(text));
	REQUIRE(strcmp(written, text) == 0);

	/* Of any other text: what is decoded fits; a byte that is not printable, or half an escape,
	 * is never valid. */
	escape_decode_lenient(value, room, text, strlen(text));
	REQUIRE(strnlen(value, room) < room);
	if (escape_is_valid(text, strlen(text)))
		for (const char *at = text; *at; at++)
			REQUIRE(*at > ' ' && *at < 0x7f);
	free(written);
	free(value);
	free(text);
	return 0;
}
