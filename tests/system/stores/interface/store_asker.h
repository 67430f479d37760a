/* SPDX-License-Identifier: Apache-2.0
 *
 * What a store is asked about claims of any session, as people do, and about lock files. Those that
 * are not named send_... wait for the answer, and return its error.
 */
#ifndef DLOCKFS_STORE_ASKER_H
#define DLOCKFS_STORE_ASKER_H

#include "store_fixture.h"

enum { ASKER_NAMES = 16, ASKER_READS = 4 };

/* Who asks, and what came of it. */
struct asker {
	union {
		struct store_look look;
		struct store_read read;
		struct store_change change;
		struct store_files files;
	};
	int times;
	int turn; /* among the answers to all */
	int error;
	char names[ASKER_NAMES][64]; /* the first of them */
	size_t names_count;
	size_t claims;
	struct store_claim claim; /* or file */
	char *data;		  /* and a NUL; valid until ASKER_READS more reads are answered */
};

void send_look(struct host *host, struct asker *asker, const char *path);
int look(struct host *host, struct asker *asker, const char *path);

/* Whether that name is among the first. */
bool saw(const struct asker *asker, const char *name);

/* With the name NULL a file. */
void send_read(struct host *host, struct asker *asker, const char *path, const char *name);
int read_claim(struct host *host, struct asker *asker, const char *path, const char *name);
int read_file(struct host *host, struct asker *asker, const char *path);

void send_write(struct host *host, struct asker *asker, const char *path, const char *name,
		const char *text, uint32_t version);
int write_claim(struct host *host, const char *path, const char *name, const char *text,
		uint32_t version);
/* The data of a claim become these bytes by another hand: that of another client, where the service
 * knows the claim, or else of somebody on that host, who can write no NUL. */
void change_data(struct host *host, const char *path, const char *name, const void *data,
		 size_t bytes);

void send_remove(struct host *host, struct asker *asker, const char *path, const char *name);
int remove_claim(struct host *host, const char *path, const char *name);

void send_files(struct host *host, struct asker *asker, const char *directory);
int list_files(struct host *host, struct asker *asker, const char *directory);

/* The steps' strings are gone after the call. */
void send_alter(struct host *host, struct asker *asker, const struct store_step *steps,
		size_t count);
int alter(struct host *host, const struct store_step *steps, size_t count);

/* One step, whatever the version. */
void send_step(struct host *host, struct asker *asker, enum store_step_kind kind, const char *path,
	       const char *text);
int step(struct host *host, enum store_step_kind kind, const char *path, const char *text);

#endif
