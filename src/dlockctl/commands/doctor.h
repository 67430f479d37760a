/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of dlockctl doctor share.
 */
#ifndef DLOCKCTL_COMMANDS_DOCTOR_H
#define DLOCKCTL_COMMANDS_DOCTOR_H

#include <stddef.h>

#include <jansson.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/mount.h"
#include "dlockctl/probe.h"

enum result { RESULT_OK, RESULT_WARNING, RESULT_ERROR };

extern const char *const doctor_words[]; /* by the result */

struct doctor {
	const struct context *context;
	json_t *checks;
	size_t counts[3]; /* by the result */
};

/* Says what was found; the text is for people, in one line. */
void doctor_say(struct doctor *doctor, enum result result, const char *check, const char *format,
		...) __attribute__((format(printf, 4, 5)));

/* What the file status says: of the store of the mount, and in an array of the others. */
void doctor_check_status(struct doctor *doctor, const struct probe *probe, const json_t *first,
			 const json_t *others);

/* The configuration: what of it stands in the mount, the file, and the servers of so many stores.
 */
void doctor_check_config(struct doctor *doctor, const struct place *place,
			 const struct probe *probe, const json_t *status, size_t stores);

/* What the file hosts says. */
void doctor_check_hosts(struct doctor *doctor, const char *mount);

#endif
