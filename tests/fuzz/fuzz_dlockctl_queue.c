/* SPDX-License-Identifier: Apache-2.0
 *
 * What dlockctl reads of queues: every lock has a name and every claim its position; nothing of it
 * is past the limits of its numbers.
 */
#include "fuzz.h"

#include "dlockctl/queue.h"

static void check_claim(const struct claim *claim)
{
	REQUIRE(claim->position >= 0);
	REQUIRE(claim->pid >= -1 && claim->uid >= -1 && claim->since >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1); /* so that a byte too many is seen */
	struct queues queues;

	REQUIRE(text);
	memcpy(text, data, bytes);
	queues_parse(text, bytes, &queues);
	free(text);
	for (size_t i = 0; i < queues.count; i++) {
		const struct queue *queue = &queues.list[i];
		size_t holders = 0;

		REQUIRE(queue->name && queue->name_encoded && queue->name_encoded[0] != '\0');
		REQUIRE(strlen(queue->name) <= strlen(queue->name_encoded));
		for (size_t j = 0; j < queue->count; j++) {
			check_claim(&queue->claims[j]);
			holders += queue->claims[j].held;
		}
		REQUIRE(holders == queue->holders);
		REQUIRE(!queue_holder(queue) == (holders + queue->lost + queue->kept == 0));
	}
	queues_finish(&queues);
	return 0;
}
