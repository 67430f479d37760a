/* SPDX-License-Identifier: Apache-2.0
 *
 * The grants of one lock, read from lines of the audit (fs/handles/audit.h) of one host or several.
 * The lines may come from a newer dlockfs, and from anywhere: what is not in their form is skipped.
 * Of each host the last grants are kept, up to a limit, so memory does not grow with the lines. No
 * I/O.
 *
 * In which order: of one host, that of its lines. Of several hosts, by fencing token where grants
 * have one, as tokens grow from grant to grant over all hosts; a grant without a token stands among
 * those of its own host, and as far as these leave it open, by the clocks of the hosts.
 */
#ifndef DLOCKCTL_GRANTS_H
#define DLOCKCTL_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many hosts are told apart. */
#define GRANTS_HOSTS_MAX 4096

enum grant_end {
	GRANT_GOES_ON, /* no line says that it has ended */
	GRANT_RELEASED,
	GRANT_LOST,
};

/* Texts are decoded, and empty if not known; numbers are -1 then. */
struct grant {
	const char *host; /* of the grants */
	char *kind, *mode, *range, *command;
	char *why; /* why it has ended, as the audit has it: "revoked", "broken" */
	int64_t pid, uid;
	uint64_t token;	  /* 0: none is known */
	int64_t since_us; /* by the clock of the host, since 1970 */
	int64_t until_us;
	int64_t waited_us, held_us;
	enum grant_end end;
	bool by_clock; /* stands where it does by the clocks of several hosts */
};

struct grants {
	char *lock;
	size_t limit;
	struct grants_host *hosts;
	size_t hosts_count;
	size_t lines; /* of the lock, so far */
};

/* Of each host the last `limit` grants are kept, which is above 0. The name is copied. */
void grants_begin(struct grants *grants, const char *lock, size_t limit);

/* A line of a log, up to its end, whatever stands in it; lines of one host in their order. The text
 * in front of "audit:" may begin with a time, as seconds since 1970 or in the form of ISO 8601 with
 * a time zone; else the line is of `time_us`, -1 if that is not known. Returns false if the line is
 * of one host more than GRANTS_HOSTS_MAX. */
bool grants_add_line(struct grants *grants, const char *line, int64_t time_us);

/* All grants in their order, of which the array is to be freed; *ret_count: how many. To be called
 * once, and no line is added then. */
struct grant **grants_order(struct grants *grants, size_t *ret_count);

void grants_finish(struct grants *grants);

#endif
