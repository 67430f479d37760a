/* SPDX-License-Identifier: Apache-2.0
 *
 * The hosts of a mount's stores for programs.
 */
#ifndef DLOCKCTL_HOSTS_JSON_H
#define DLOCKCTL_HOSTS_JSON_H

#include <jansson.h>

#include "dlockctl/hosts.h"

/* The object of dlockctl hosts --json. */
json_t *hosts_json(const struct hosts *hosts, const char *mount);

#endif
