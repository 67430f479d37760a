/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets of other hosts: what is read is within the packet, and is written again as it was.
 */
#include "fuzz.h"

#include "peers/packet.h"

static void check_texts(const struct packet *packet, const char *bytes, size_t count)
{
	for (size_t i = 0; i < packet->count; i++) {
		const char *text = packet->texts[i];

		REQUIRE(text >= bytes && text < bytes + count - PACKET_SEAL_BYTES);
		REQUIRE(text[0] != '\0');
		REQUIRE(text + strlen(text) < bytes + count - PACKET_SEAL_BYTES);
	}
}

static void check_written(const struct packet *packet)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	struct packet again;
	size_t count = packet_write(packet, PACKET_BYTES_MAX, bytes);

	REQUIRE(count > 0 && packet_parse(bytes, count, &again));
	REQUIRE(again.kind == packet->kind && again.flags == packet->flags &&
		again.store == packet->store && again.count == packet->count);
	REQUIRE(memcmp(&again.proof, &packet->proof, sizeof(again.proof)) == 0);
	REQUIRE(memcmp(&again.nonce, &packet->nonce, sizeof(again.nonce)) == 0);
	for (size_t i = 0; i < again.count; i++)
		REQUIRE(strcmp(again.texts[i], packet->texts[i]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct packet packet;
	char *copy = malloc(bytes > 0 ? bytes : 1); /* of just that size */

	REQUIRE(copy);
	memcpy(copy, data, bytes);
	if (packet_parse(copy, bytes, &packet)) {
		REQUIRE(bytes <= PACKET_BYTES_MAX && packet.count <= PACKET_TEXTS_MAX);
		check_texts(&packet, copy, bytes);
		check_written(&packet);
	}
	free(copy);
	return 0;
}
