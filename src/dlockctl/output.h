/* SPDX-License-Identifier: Apache-2.0
 *
 * Output to stdout: tables that fit the terminal, colours, JSON; and the wording of claims.
 */
#ifndef DLOCKCTL_OUTPUT_H
#define DLOCKCTL_OUTPUT_H

#include <jansson.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/queue.h"

enum hue { HUE_NONE, HUE_BOLD, HUE_GREEN, HUE_YELLOW, HUE_RED };

/* Whether to use colours on the stream: by --color; else on a terminal, unless NO_COLOR is set.
 */
bool output_colored(const struct context *context, int fd);
const char *hue_begin(bool colored, enum hue hue);
const char *hue_end(bool colored, enum hue hue);

/* The columns of the terminal; 0, no limit, if the stream is no terminal, or with --wide. */
size_t output_width(const struct context *context, int fd);

struct column {
	const char *title;
	size_t least; /* columns to which it may be cut; 0: never cut */
	bool right;   /* numbers */
	bool hidden;
};

#define COLUMNS_MAX 16

struct table {
	struct column columns[COLUMNS_MAX];
	size_t columns_count;
	char **cells; /* printable, one row after the other */
	enum hue *hues;
	size_t cells_count;
};

void table_begin(struct table *table, const struct column *columns, size_t count);

/* The next cell. Takes the text, which is freed later. */
void table_add(struct table *table, char *text, enum hue hue);

/* Makes the columns fit: cuts the widest until the sum is at most width (0: any). */
void table_fit(const struct table *table, size_t width, size_t widths[COLUMNS_MAX]);

void table_print(const struct table *table, const struct context *context);
void table_finish(struct table *table);

/* The host, or the owner of a hold; "another client" for a claim that is not of dlockfs. These are
 * to be freed, printable, and empty if not known. */
char *claim_host(const struct claim *claim);
/* "4711", or "4711?" if that may be a former user of the claim. */
char *claim_pid(const struct claim *claim);
/* "1", "1.2". */
char *claim_position(const struct claim *claim);
/* "web1:4711 backup". */
char *claim_holder(const struct claim *claim);
/* "flock", "lock file", "directory". */
char *claim_kind(const struct claim *claim);
/* The command; the user by name, else by number; the age. */
char *claim_command(const struct claim *claim);
char *claim_user(const struct claim *claim);
char *claim_age(const struct claim *claim);
/* For how long nobody is granted the lock because its holder was lost, or
 * the claim rests. */
char *claim_delay(const struct claim *claim);
/* The holders of a queue in short, "web1:4711 backup +2"; "" if there is none. */
char *queue_holders(const struct queue *queue);

/* "exclusive", "shared"; or "slot 3 of 8", "of 8 slots". */
char *claim_mode_words(const struct claim *claim);

/* "held", "kept", "kept?", "resting", "lost" or "waiting". */
const char *claim_state(const struct claim *claim);
enum hue claim_hue(const struct claim *claim);

/* Seconds since the claim was placed; -1 if not known. */
int64_t claim_seconds(const struct claim *claim);

/* The object for one lock, see etc/dlockctl.schema.json. */
json_t *queue_json(const struct queue *queue);

/* A string, also of bytes that are no UTF-8. */
json_t *text_json(const char *text);

/* Writes the object and drops it. Returns the status. */
int print_json(json_t *object);

#endif
