/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the form of packets. Any thread.
 */
#include "peers/packet.h"

#include <string.h>

#define AT_VERSION 4
#define AT_KIND	   5
#define AT_FLAGS   6
#define AT_ZERO	   7
#define AT_STORE   8
#define AT_PROOF   16
#define AT_NONCE   32
#define AT_TEXTS   48

static const uint8_t mark[4] = {'d', 'l', 'k', 'p'};

/* How many texts a kind has at least, and at most. */
static const struct {
	size_t min, max;
	uint8_t flags;
} kinds[PACKET_KINDS] = {
	[PACKET_ASK] = {3, 3, PACKET_WANTS_ANSWER},
	[PACKET_TOLD] = {3, PACKET_TEXTS_MAX, 0},
	[PACKET_HEARD] = {0, 0, 0},
};

static uint64_t read_number(const uint8_t *bytes, size_t count)
{
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number = number << 8 | bytes[i];
	return number;
}

static void write_number(uint8_t *bytes, size_t count, uint64_t number)
{
	for (size_t i = count; i-- > 0; number >>= 8)
		bytes[i] = (uint8_t)number;
}

/* Reads what is between both. Returns false if that is not as it should be. */
static bool parse_texts(const uint8_t *at, const uint8_t *end, size_t max, struct packet *ret)
{
	ret->count = 0;
	while (at < end && *at != '\0') {
		const uint8_t *nul = memchr(at, '\0', (size_t)(end - at));

		if (nul == NULL || ret->count == max)
			return false;
		ret->texts[ret->count++] = (const char *)at;
		at = nul + 1;
	}
	while (at < end && *at == '\0')
		at++;
	return at == end;
}

bool packet_parse(const void *data, size_t count, struct packet *ret)
{
	const uint8_t *bytes = data;

	if (count < AT_TEXTS + PACKET_SEAL_BYTES || count > PACKET_BYTES_MAX ||
	    memcmp(bytes, mark, sizeof(mark)) != 0 || bytes[AT_VERSION] != PACKET_VERSION ||
	    bytes[AT_KIND] < PACKET_ASK || bytes[AT_KIND] >= PACKET_KINDS || bytes[AT_ZERO] != 0 ||
	    (bytes[AT_FLAGS] & ~kinds[bytes[AT_KIND]].flags) != 0)
		return false;
	ret->kind = bytes[AT_KIND];
	ret->flags = bytes[AT_FLAGS];
	ret->store = read_number(bytes + AT_STORE, 8);
	memcpy(ret->proof.bytes, bytes + AT_PROOF, PACKET_NONCE_BYTES);
	memcpy(ret->nonce.bytes, bytes + AT_NONCE, PACKET_NONCE_BYTES);
	return (ret->kind != PACKET_ASK || count >= PACKET_ASK_BYTES) &&
	       parse_texts(bytes + AT_TEXTS, bytes + count - PACKET_SEAL_BYTES,
			   kinds[ret->kind].max, ret) &&
	       ret->count >= kinds[ret->kind].min;
}

/* Writes as many texts as there is room for. Returns where they end. */
static uint8_t *write_texts(const struct packet *packet, uint8_t *at, const uint8_t *end,
			    size_t *ret_count)
{
	size_t i;

	for (i = 0; i < packet->count; i++) {
		size_t bytes = strlen(packet->texts[i]) + 1;

		if (bytes == 1 || bytes > (size_t)(end - at))
			break;
		memcpy(at, packet->texts[i], bytes);
		at += bytes;
	}
	*ret_count = i;
	return at;
}

size_t packet_write(const struct packet *packet, size_t limit, uint8_t bytes[PACKET_BYTES_MAX])
{
	size_t written, count;
	bool may_cut = packet->kind == PACKET_TOLD;

	if (limit < AT_TEXTS + PACKET_SEAL_BYTES || limit > PACKET_BYTES_MAX)
		return 0;
	memset(bytes, 0, limit);
	memcpy(bytes, mark, sizeof(mark));
	bytes[AT_VERSION] = PACKET_VERSION;
	bytes[AT_KIND] = (uint8_t)packet->kind;
	bytes[AT_FLAGS] = packet->flags;
	write_number(bytes + AT_STORE, 8, packet->store);
	memcpy(bytes + AT_PROOF, packet->proof.bytes, PACKET_NONCE_BYTES);
	memcpy(bytes + AT_NONCE, packet->nonce.bytes, PACKET_NONCE_BYTES);
	const uint8_t *end =
		write_texts(packet, bytes + AT_TEXTS, bytes + limit - PACKET_SEAL_BYTES, &written);
	if (written < (may_cut ? kinds[packet->kind].min : packet->count))
		return 0;
	count = (size_t)(end - bytes) + PACKET_SEAL_BYTES;
	if (packet->kind == PACKET_ASK && count < PACKET_ASK_BYTES)
		count = PACKET_ASK_BYTES;
	return count <= limit ? count : 0;
}
