/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/fields.h"

#include <errno.h>
#include <string.h>

/* The value of a member that is a flag, a number or a pointer. */

static int64_t load(const struct field *field, const char *member)
{
	uint32_t narrow;
	uint64_t wide;

	if (field->kind == FIELD_KIND_FLAG)
		return *(const bool *)member;
	if (field->bytes == sizeof(wide)) {
		memcpy(&wide, member, sizeof(wide));
		return (int64_t)wide;
	}
	memcpy(&narrow, member, sizeof(narrow));
	return field->kind == FIELD_KIND_NUMBER ? (int32_t)narrow : (int64_t)narrow;
}

static void store(const struct field *field, char *member, int64_t value)
{
	uint32_t narrow = (uint32_t)value;
	uint64_t wide = (uint64_t)value;

	if (field->kind == FIELD_KIND_FLAG)
		*(bool *)member = value != 0;
	else if (field->bytes == sizeof(wide))
		memcpy(member, &wide, sizeof(wide));
	else
		memcpy(member, &narrow, sizeof(narrow));
}

static void save(const struct field *field, const char *member, FILE *out)
{
	const char *text;

	switch (field->kind) {
	case FIELD_KIND_FLAG:
	case FIELD_KIND_NUMBER:
		state_number(out, field->key, load(field, member));
		break;
	case FIELD_KIND_UNSIGNED:
		state_unsigned(out, field->key, (uint64_t)load(field, member));
		break;
	case FIELD_KIND_TIME:
		state_time(out, field->key, *(const struct timespec *)member);
		break;
	case FIELD_KIND_WORD:
		state_text(out, field->key, field->words[load(field, member)]);
		break;
	case FIELD_KIND_TEXT:
		memcpy(&text, member, sizeof(text));
		state_text(out, field->key, text);
		break;
	case FIELD_KIND_CHARS:
		state_text(out, field->key, member);
	}
}

void fields_save(const struct field *fields, const void *whole, FILE *out)
{
	for (const struct field *field = fields; field->key != NULL; field++) {
		const char *member = (const char *)whole + field->offset;
		if (!field->may_be_missing || load(field, member) != field->missing)
			save(field, member, out);
	}
}

static void restore(const struct field *field, char *member, struct state_reader *in)
{
	const char *text;

	switch (field->kind) {
	case FIELD_KIND_FLAG:
	case FIELD_KIND_NUMBER:
		store(field, member,
		      state_get_number(in, field->key, field->least, (int64_t)field->most));
		break;
	case FIELD_KIND_UNSIGNED:
		store(field, member, (int64_t)state_get_unsigned(in, field->key, field->most));
		break;
	case FIELD_KIND_TIME:
		*(struct timespec *)member = state_get_time(in, field->key);
		break;
	case FIELD_KIND_WORD:
		store(field, member,
		      (int64_t)state_get_word(in, field->key, field->words, field->most + 1));
		break;
	case FIELD_KIND_TEXT:
		text = state_get_text(in, field->key);
		memcpy(member, &text, sizeof(text));
		break;
	case FIELD_KIND_CHARS:
		snprintf(member, field->bytes, "%s", state_get_text(in, field->key));
	}
}

int fields_restore(const struct field *fields, void *whole, struct state_reader *in)
{
	for (const struct field *field = fields; field->key != NULL; field++) {
		char *member = (char *)whole + field->offset;
		if (field->may_be_missing && !state_has(in, field->key))
			store(field, member, field->missing);
		else
			restore(field, member, in);
	}
	return state_failed(in) ? -EINVAL : 0;
}
