/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of fencing tokens; tokens.h has the reason.
 */
#include "stores/tokens.h"

/* The offset is not negative. A stamp may be, if the servers lie: then it counts as none. */
static int64_t add(int64_t offset, int64_t stamp)
{
	if (stamp < 0)
		return offset;
	return offset > INT64_MAX - stamp ? INT64_MAX : offset + stamp;
}

int64_t tokens_floor(const struct store_tokens *tokens, int64_t seen)
{
	int64_t told = add(tokens->offset, seen);

	return told > tokens->floor ? told : tokens->floor;
}

void tokens_note(struct store_tokens *tokens, int64_t seen)
{
	tokens->floor = tokens_floor(tokens, seen);
}

int64_t tokens_make(const struct store_tokens *tokens, int64_t stamp)
{
	int64_t token = add(tokens->offset, stamp);

	return token > tokens->floor ? token : 0;
}

int64_t tokens_raise(const struct store_tokens *tokens, int64_t reached)
{
	int64_t offset;

	if (reached < 0 || add(tokens->offset, reached) >= tokens->floor)
		return 0;
	offset = add(tokens->floor - reached, TOKENS_MARGIN);
	if (offset > TOKENS_OFFSET_MAX)
		offset = TOKENS_OFFSET_MAX;
	return offset > tokens->offset ? offset : 0;
}

int64_t tokens_parse(const char *text, size_t bytes)
{
	int64_t offset = 0;

	for (size_t i = 0; i < bytes && text[i] != '\n'; i++) {
		if (text[i] < '0' || text[i] > '9' || offset > TOKENS_OFFSET_MAX / 10)
			return 0;
		offset = 10 * offset + (text[i] - '0');
	}
	return offset > TOKENS_OFFSET_MAX ? 0 : offset;
}
