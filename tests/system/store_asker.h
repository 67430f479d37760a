/* SPDX-License-Identifier: Apache-2.0
 *
 * Who asks a store from outside of the engine, as people do: looks, reads, writes and removes.
 * Those that are not named send_... wait for the answer, and return its error.
 */
#ifndef DLOCKFS_STORE_ASKER_H
#define DLOCKFS_STORE_ASKER_H

#include "store_fixture.h"

/* Who asks from outside, and what came of it. */
struct asker {
	union {
		struct store_look look;
		struct store_read read;
		struct store_change change;
	};
	int times;
	int error;
	char names[8][64];
	size_t names_count;
	size_t claims;
	struct store_claim claim;
	char *data;
};

void send_look(struct host *host, struct asker *asker, const char *path);
int look(struct host *host, struct asker *asker, const char *path);

/* Whether the look has shown a lock, or a directory, of that name. */
bool saw(const struct asker *asker, const char *name);

/* The data is to be freed when its answer is no error. */
void send_read(struct host *host, struct asker *asker, const char *path, const char *name);
int read_claim(struct host *host, struct asker *asker, const char *path, const char *name);

void send_write(struct host *host, struct asker *asker, const char *path, const char *name,
		const char *text, uint32_t version);
int write_claim(struct host *host, const char *path, const char *name, const char *text,
		uint32_t version);
void send_remove(struct host *host, struct asker *asker, const char *path, const char *name);
int remove_claim(struct host *host, const char *path, const char *name);

#endif
