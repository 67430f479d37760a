/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include <string.h>

/* Above ASCII: the general categories Cc, Cf, Cs, Zl and Zp, what is never a character, and what
 * has Default_Ignorable_Code_Point (UnicodeData.txt and DerivedCoreProperties.txt of Unicode 15).
 */
static const struct {
	uint32_t first, last;
} unseen[] = {
	{0x80, 0x9f},	    {0xad, 0xad},	{0x34f, 0x34f},	    {0x600, 0x605},
	{0x61c, 0x61c},	    {0x6dd, 0x6dd},	{0x70f, 0x70f},	    {0x890, 0x891},
	{0x8e2, 0x8e2},	    {0x115f, 0x1160},	{0x17b4, 0x17b5},   {0x180b, 0x180f},
	{0x200b, 0x200f},   {0x2028, 0x202e},	{0x2060, 0x206f},   {0x3164, 0x3164},
	{0xd800, 0xdfff},   {0xfdd0, 0xfdef},	{0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
	{0xffa0, 0xffa0},   {0xfff0, 0xfffb},	{0x110bd, 0x110bd}, {0x110cd, 0x110cd},
	{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool printable_is(uint32_t character)
{
	if (character < 0x80)
		return character >= ' ' && character < 0x7f;
	if (character > 0x10ffff || (character & 0xfffe) == 0xfffe)
		return false;
	for (size_t i = 0; i < sizeof(unseen) / sizeof(*unseen); i++) {
		if (character <= unseen[i].last)
			return character < unseen[i].first;
	}
	return true;
}

/* The character of UTF-8 (RFC 3629) that the text begins with. Returns its bytes; 0: it is none. */
static size_t decode(const unsigned char *text, size_t bytes, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = text[0];
	size_t length = first < 0x80   ? 1
			: first < 0xc0 ? 0
			: first < 0xe0 ? 2
			: first < 0xf0 ? 3
			: first < 0xf8 ? 4
				       : 0;

	if (length == 0 || length > bytes)
		return 0;
	uint32_t character = length == 1 ? first : first & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3fU);
	}
	*ret = character;
	return character >= least[length] ? length : 0;
}

/* Appends the first character, or byte, of the text, and moves that on. Returns the end. */
static char *append_next(char *to, const char **text, size_t *left)
{
	static const char hex[] = "0123456789ABCDEF";
	uint32_t character = 0;
	size_t length = decode((const unsigned char *)*text, *left, &character);
	unsigned char byte = (unsigned char)**text;

	if (length > 0 && printable_is(character)) {
		memcpy(to, *text, length);
		to += length;
	} else {
		length = 1;
		*to++ = '\\';
		*to++ = 'x';
		*to++ = hex[byte >> 4];
		*to++ = hex[byte & 15];
	}
	*text += length;
	*left -= length;
	return to;
}

char *printable_append(char *to, const char *text)
{
	for (size_t left = strlen(text); left > 0;)
		to = append_next(to, &text, &left);
	*to = '\0';
	return to;
}

void printable_write(FILE *out, const char *text)
{
	char part[PRINTABLE_BYTES_MAX] = "";

	for (size_t left = strlen(text); left > 0;)
		fwrite(part, 1, (size_t)(append_next(part, &text, &left) - part), out);
}
