/* SPDX-License-Identifier: Apache-2.0
 *
 * Learns how long a request may be; packets.h has the reason.
 */
#include "stores/zookeeper/session/packets.h"

size_t packets_connected(struct packets *packets, int64_t now_ms)
{
	if (packets->lost == 0)
		return 0;
	if (packets->suspect == 0 || packets->lost < packets->suspect)
		packets->suspect = packets->lost;
	packets->lost = 0;
	if (++packets->losses < PACKETS_LOSSES)
		return 0;
	packets->limit = packets->suspect;
	packets->until_ms = now_ms + PACKETS_FORGET_MS;
	packets->suspect = 0;
	packets->losses = 0;
	return packets->limit;
}

void packets_note(struct packets *packets, size_t bytes, bool answered)
{
	if (!answered) {
		if (bytes > PACKETS_LEAST_BYTES && bytes > packets->answered &&
		    bytes > packets->lost)
			packets->lost = bytes;
		return;
	}
	if (bytes > packets->answered)
		packets->answered = bytes;
	if (bytes >= packets->suspect) {
		packets->suspect = 0;
		packets->losses = 0;
	}
}

bool packets_refuse(const struct packets *packets, size_t bytes, int64_t now_ms)
{
	return packets->limit != 0 && bytes >= packets->limit && now_ms < packets->until_ms;
}
